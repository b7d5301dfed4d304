/**
 * Client of an AWS deployment. Its address is an output of the CloudFormation stack. Requests are signed with the
 * caller's credentials (Signature Version 4, service execute-api). With `auth: jwt` they bear a token instead. The API
 * is that of a local engine, and so are the commands.
 *
 * --url (or EBB_URL) beside --stack names the address without CloudFormation, for callers with the right to invoke the
 * API only.
 */
import type { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { API_URL_DESCRIPTION } from '../drivers/aws/compose/stack-outputs.ts';
import { EbbError } from '../kernel/errors.ts';
import { clientOver, type Client, type Send } from './client.ts';

export interface Deployment {
  /** CloudFormation stack. */
  readonly stack: string;
  /** Profile of ~/.aws/config; null: the usual chain (environment, SSO, container, instance). */
  readonly profile: string | null;
  readonly region: string | null;
  /** Address of the API; null: read from CloudFormation. */
  readonly url: string | null;
  /** JSON Web Token; null: requests are signed. */
  readonly token: string | null;
}

/**
 * Names of stack outputs with the address of an API, for stacks without a described one (lib/infra/outputs.ts). The
 * first construct has `ApiUrl`; the CDK names those of others.
 */
const API_URL_OUTPUT = /^(?:ApiUrl|\w*OutputsApiUrl[\dA-F]{8})$/;
/** Wall time between two polls of the events: each one is billed. */
const EVENTS_POLL_MS = 2_000;

/** Client without a request before the first call. Credentials and address are looked up once. */
export function deploymentClient(deployment: Deployment): Client {
  let opened: Promise<Send> | null = null;
  const send: Send = async (request) => {
    opened ??= open(deployment);
    return (await opened)(request);
  };
  return clientOver(send, EVENTS_POLL_MS);
}

async function open(deployment: Deployment): Promise<Send> {
  const { defaultProvider } = await import('@aws-sdk/credential-provider-node');
  const sdk = await import('@aws-sdk/client-cloudformation');
  const { profile, region, url, token } = deployment;
  const of = { ...(profile === null ? {} : { profile }), ...(region === null ? {} : { region }) };
  const cloudFormation = new sdk.CloudFormationClient({ ...of, credentials: defaultProvider(of) });
  try {
    const authorized = token === null ? await signed(deployment, cloudFormation) : bearing(token);
    const root =
      url === null
        ? rootOf(deployment, await found(deployment, () => addressOf(deployment, cloudFormation)))
        : new URL(url);
    return async ({ method, path, headers, body }) => {
      const asked = new URL(root.pathname.replace(/\/+$/, '') + path, root);
      const answer = await fetch(asked, {
        method,
        headers: await authorized({ method, url: asked, headers, body }),
        body,
      }).catch((cause: unknown) => {
        throw new EbbError('engine.absent', {
          what: `the deployment ${deployment.stack} does not answer`,
          got: asked.origin,
          next: 'check the network, and that the stack is deployed in this region',
          cause,
        });
      });
      return judged(deployment, answer.status, await answer.text());
    };
  } finally {
    cloudFormation.destroy();
  }
}

type Headers = Readonly<Record<string, string>>;
/** Headers that authorise a request. */
type Authorized = (
  request: Omit<Parameters<Send>[0], 'path'> & { readonly url: URL },
) => Promise<Record<string, string>>;

const bearing =
  (token: string): Authorized =>
  async ({ headers }) => ({ ...headers, authorization: `Bearer ${token}` });

/** Signs with fresh credentials for each request: those of SSO and roles expire within hours. */
async function signed(deployment: Deployment, cloudFormation: CloudFormationClient): Promise<Authorized> {
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const { HttpRequest } = await import('@smithy/core/transport');
  const { Hash } = await import('@smithy/core/serde');
  const { credentials, region } = cloudFormation.config;
  const [, regionName] = await found(deployment, () => Promise.all([credentials(), region()]));
  const sha256 = Hash.bind(null, 'sha256');
  const signer = new SignatureV4({ service: 'execute-api', region: regionName, credentials, sha256 });
  return async ({ method, url, headers, body }) => {
    const request = new HttpRequest({
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port === '' ? {} : { port: Number(url.port) }),
      path: url.pathname,
      query: queryOf(url),
      headers: { ...headers, host: url.host },
      ...(body === null ? {} : { body }),
    });
    const { headers: all } = await found(deployment, () => signer.sign(request));
    const { host: _, ...rest } = all as Headers;
    return rest;
  };
}

/** Query of a URL. Repeated parameters become lists. */
function queryOf(url: URL): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  for (const key of new Set(url.searchParams.keys())) {
    const values = url.searchParams.getAll(key);
    query[key] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return query;
}

/** Turns refusals of API Gateway itself into problem documents. */
function judged(deployment: Deployment, status: number, body: string): { status: number; body: string } {
  if (status !== 403 || body.includes('"code"')) return { status, body };
  throw new EbbError('aws.refused', {
    what: `the deployment ${deployment.stack} does not let you in`,
    got: body.slice(0, 300),
    allowed:
      'callers with execute-api:Invoke on its API or, where its `auth` is jwt, with --token-file (see docs/deploy.md, "Who may submit")',
    next: 'use another --profile, or have the right granted: `ebbtide.grantSubmit(role)`',
  });
}

async function addressOf({ stack }: Deployment, cloudFormation: CloudFormationClient): Promise<string> {
  const { DescribeStacksCommand } = await import('@aws-sdk/client-cloudformation');
  const { Stacks } = await cloudFormation.send(new DescribeStacksCommand({ StackName: stack }));
  const all = Stacks?.[0]?.Outputs ?? [];
  const described = all.filter(({ Description }) => Description === API_URL_DESCRIPTION);
  const outputs = described.length > 0 ? described : all.filter((o) => API_URL_OUTPUT.test(o.OutputKey ?? ''));
  // No guess among several: jobs would run, and cost, in another deployment.
  if (outputs.length > 1) {
    throw new EbbError('usage', {
      what: `the stack ${stack} holds ${outputs.length} Ebbtide deployments`,
      got: outputs.map(({ OutputKey, OutputValue }) => `${OutputKey}: ${OutputValue}`).join(', '),
      next: 'name the intended one by its address, with --url (or EBB_URL) beside --stack',
    });
  }
  const address = outputs[0]?.OutputValue;
  if (address !== undefined) return address;
  throw new EbbError('engine.absent', {
    what: `the stack ${stack} is not an Ebbtide deployment`,
    got: 'it has no output ApiUrl',
    next: 'name the stateless stack of the deployment with --stack (`npx cdk list` shows its name), or the address of its API with --url',
  });
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '[::1]']);

/**
 * Address of the API. A stand-in for AWS on this machine (AWS_ENDPOINT_URL) serves it under a path: the host in the
 * output needs a name server (docs/localstack.md).
 */
export function rootOf(
  { stack }: Deployment,
  address: string,
  standIn: string = process.env['AWS_ENDPOINT_URL'] ?? '',
): URL {
  const [, api, stage] = /^https?:\/\/(\w+)\.execute-api\..*\/(\w+)\/?$/.exec(address) ?? [];
  if (api !== undefined && stage !== undefined && URL.canParse(standIn) && LOOPBACK.has(new URL(standIn).hostname)) {
    return new URL(`/_aws/execute-api/${api}/${stage}`, standIn);
  }
  if (URL.canParse(address)) return new URL(address);
  throw new EbbError('engine.absent', {
    what: `the stack ${stack} tells no address at which its API could be asked`,
    got: address,
    next: 'name the address of its API with --url (or EBB_URL)',
  });
}

/** Turns SDK errors on credentials, region and address into errors with a remedy. */
async function found<T>(deployment: Deployment, look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (cause) {
    if (cause instanceof EbbError) throw cause;
    const { name, message } = cause as Error;
    const { profile, stack } = deployment;
    if (name === 'CredentialsProviderError' || name === 'TokenProviderError') {
      throw new EbbError('aws.refused', {
        what: 'no AWS credentials were found',
        got: `${profile === null ? 'the default chain' : `profile ${profile}`}: ${message}`,
        next: 'log in (`aws sso login`), or name a profile with --profile',
        cause,
      });
    }
    if (/region is missing/i.test(message)) {
      throw new EbbError('usage', {
        what: 'no AWS region is known',
        next: 'give --region, AWS_REGION, or a profile with one',
        cause,
      });
    }
    if (/does not exist/.test(message)) {
      throw new EbbError('engine.absent', {
        what: `no stack ${stack} in this account and region`,
        got: message,
        next: 'check --stack, --profile and --region; `npx cdk list` shows the names of the stacks',
        cause,
      });
    }
    if (/invalid (hostname|region)|ENOTFOUND|not a valid (host|region)/i.test(`${name} ${message}`)) {
      throw new EbbError('usage', {
        what: 'AWS has no such region, or its name cannot be resolved',
        got: `${deployment.region ?? 'the region of the environment or profile'}: ${message}`,
        allowed: 'for example us-east-1 or eu-central-1',
        next: 'correct --region (or AWS_REGION), or check the network',
        cause,
      });
    }
    throw new EbbError('aws.unavailable', {
      what: `the stack ${stack} could not be looked up`,
      got: `${name}: ${message}`,
      next: 'give the address of the API with --url to do without the look-up, or check your rights (cloudformation:DescribeStacks)',
      cause,
    });
  }
}
