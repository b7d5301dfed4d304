/**
 * Signed requests to AWS services without an SDK client here. One or two requests per service do not justify four
 * packages. Signatures are Version 4, by the SDK's own library.
 */
import { Hash } from '@smithy/core/serde';
import { HttpRequest } from '@smithy/core/transport';
import { SignatureV4 } from '@smithy/signature-v4';
import { EbbError } from '../../../kernel/errors.ts';

export interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Token of temporary credentials. */
  readonly sessionToken?: string;
}

export interface Caller {
  readonly region: string;
  readonly credentials: () => Promise<Keys>;
}

type Service = 'sts' | 'iam' | 'ssm' | 'servicequotas' | 'cloudformation' | 'lambda';

/** Answer of a service: its text, and the name of an error. */
export interface Said {
  readonly status: number;
  readonly text: string;
  /** Name such as `AccessDenied`; null for a status below 300. */
  readonly error: string | null;
  readonly message: string;
}

/**
 * Address and signing region ("Service endpoints" in the AWS General Reference). IAM has one endpoint for all regions,
 * signed for us-east-1.
 */
function placeOf(service: Service, region: string): { readonly url: URL; readonly region: string } {
  const name = service === 'servicequotas' ? 'SERVICE_QUOTAS' : service.toUpperCase();
  // Endpoint overrides as in the SDK ("Service-specific endpoints", AWS SDKs and Tools reference).
  const own = process.env[`AWS_ENDPOINT_URL_${name}`] ?? process.env['AWS_ENDPOINT_URL'];
  if (service === 'iam') return { url: new URL(own ?? 'https://iam.amazonaws.com/'), region: 'us-east-1' };
  return { url: new URL(own ?? `https://${service}.${region}.amazonaws.com/`), region };
}

/** Call of a Query API (`Action=...`). */
export const askQuery = (caller: Caller, service: Service, form: Readonly<Record<string, string>>): Promise<Said> =>
  ask(caller, service, {
    body: new URLSearchParams(form).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });

/** Call of a REST API. */
export const askPath = (caller: Caller, service: Service, path: string): Promise<Said> =>
  ask(caller, service, { method: 'GET', path, headers: {} });

/** Call of a JSON API, by its target. */
export const askJson = (caller: Caller, service: Service, target: string, input: object): Promise<Said> =>
  ask(caller, service, {
    body: JSON.stringify(input),
    headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target },
  });

interface Question {
  readonly method?: 'GET' | 'POST';
  readonly path?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function ask(caller: Caller, service: Service, question: Question): Promise<Said> {
  const { method = 'POST', path, headers, body } = question;
  const { url, region } = placeOf(service, caller.region);
  if (path !== undefined) url.pathname = path;
  const signer = new SignatureV4({
    service,
    region,
    credentials: caller.credentials,
    sha256: Hash.bind(null, 'sha256'),
  });
  const request = new HttpRequest({
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    ...(url.port === '' ? {} : { port: Number(url.port) }),
    path: url.pathname,
    headers: { ...headers, host: url.host },
    ...(body === undefined ? {} : { body }),
  });
  const signed = await signer.sign(request);
  const { host: _, ...rest } = signed.headers;
  const sent = { method, headers: rest, ...(body === undefined ? {} : { body }) };
  const answer = await fetch(url, sent).catch((cause: unknown) => {
    throw new EbbError('aws.unavailable', {
      what: `${url.host} does not answer`,
      got: String((cause as Error).cause ?? cause),
      next: 'check the network, and the name of the region',
      cause,
    });
  });
  const text = await answer.text();
  return { status: answer.status, text, ...(answer.ok ? { error: null, message: '' } : faultIn(text, answer.status)) };
}

export const wordsOf = ({ error, message }: Said): string => `${error ?? 'no readable answer'}: ${message}`;

/** True if the right to ask was missing. */
export const isDenied = ({ error }: Said): boolean =>
  /^(?:AccessDenied|AccessDeniedException|UnauthorizedOperation)$/.test(error ?? '');

/** Text of the first element with this name. */
export const textOf = (name: string, xml: string): string | null =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? null;

/** Fault in an answer. Query APIs have `<Code>` and `<Message>`, JSON APIs `__type` and `message`. */
function faultIn(text: string, status: number): { readonly error: string; readonly message: string } {
  const [, type = `HTTP ${status}`] = /"__type"\s*:\s*"(?:[^"#]*#)?([^"]+)"/.exec(text) ?? [];
  const [, words = text.slice(0, 200)] = /"[Mm]essage"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text) ?? [];
  return { error: textOf('Code', text) ?? type, message: textOf('Message', text) ?? words };
}
