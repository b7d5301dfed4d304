import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { API_URL_DESCRIPTION } from '../../../lib/drivers/aws/compose/stack-outputs.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { deploymentClient, rootOf, type Deployment } from '../../../lib/cli/deployment.ts';

/**
 * A server in place of API Gateway and CloudFormation, and AWS's signature computed a second time, from its
 * documentation.
 */

const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const ENV = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: SECRET, AWS_REGION: 'eu-central-1' };
const KEYS = [...Object.keys(ENV), 'AWS_ENDPOINT_URL_CLOUDFORMATION', 'AWS_PROFILE', 'AWS_CONFIG_FILE', 'HOME'];

interface Seen {
  readonly request: IncomingMessage;
  readonly body: string;
}
let seen: Seen[];
let server: Server;
let answer: (seen: Seen) => { readonly status: number; readonly body: string };
const before = new Map(KEYS.map((key) => [key, process.env[key]]));

beforeEach(async () => {
  Object.assign(process.env, ENV);
  seen = [];
  answer = () => ({ status: 200, body: '{"items":[],"next":null}' });
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString('utf8')));
    request.on('end', () => {
      const one = { request, body };
      seen.push(one);
      const { status, body: text } = answer(one);
      response.writeHead(status).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  for (const [key, value] of before) {
    if (value === undefined) Reflect.deleteProperty(process.env, key);
    else process.env[key] = value;
  }
  await new Promise((resolve) => server.close(resolve));
});

const address = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const client = (over: Partial<Deployment> = {}) =>
  deploymentClient({ stack: 'Ebbtide', profile: null, region: null, url: `${address()}/prod/`, token: null, ...over });

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** IAM User Guide, "Create a signed AWS API request". */
function signatureOf({ request, body }: Seen): string {
  const [, date = '', region = '', service = '', names = ''] =
    /Credential=[^/]+\/(\d+)\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+)/.exec(
      request.headers.authorization ?? '',
    ) ?? [];
  const url = new URL(request.url ?? '', 'http://host');
  const encoded = (text: string): string =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const query = [...url.searchParams]
    .map(([key, value]) => `${encoded(key)}=${encoded(value)}`)
    .sort()
    .join('&');
  const headers = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`);
  const path = url.pathname.split('/').map(encoded).join('/');
  const canonical = [request.method, path, query, headers.join(''), names, sha256(body)].join('\n');
  const scope = `${date}/${region}/${service}/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  const key = [date, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${SECRET}`);
  return createHmac('sha256', key).update(toSign).digest('hex');
}

async function refusal(of: Promise<unknown>): Promise<EbbError> {
  const error = await of.then(
    () => null,
    (e: unknown) => e,
  );
  if (error instanceof EbbError) return error;
  throw new Error(`not refused: ${String(error)}`);
}

describe('the address of a stack', () => {
  const of: Deployment = { stack: 'Ebbtide', profile: null, region: null, url: null, token: null };
  const told = 'https://abc123.execute-api.us-east-1.amazonaws.com/prod/';

  it('is that of the output, on AWS', () => {
    expect(rootOf(of, told, '').href).toBe(told);
    expect(rootOf(of, told, 'https://vpce.example.com').href).toBe(told);
  });

  it('is a path of the stand-in for AWS on this machine', () => {
    const local = 'http://127.0.0.1:4566';
    expect(rootOf(of, told, local).href).toBe(`${local}/_aws/execute-api/abc123/prod`);
    expect(rootOf(of, 'https://abc123.execute-api.127.0.0.1:4566/prod/', local).pathname).toBe(
      '/_aws/execute-api/abc123/prod',
    );
  });

  it('says what is missing where it is none', () => {
    expect(() => rootOf(of, 'unknown', '')).toThrow(/tells no address/);
    expect(() => rootOf(of, 'https://:::/prod', '')).toThrow(EbbError);
  });
});

describe('a client of a deployment', () => {
  it('signs what it sends, below the stage of the API', async () => {
    await client().get('/api/jobs', { state: ['pending', 'running'], limit: 5, label: 'a=b c' });
    await client().post('/api/jobs', { body: { name: 'x y' }, headers: { 'idempotency-key': 'k' } });
    expect(seen.map((s) => s.request.url)).toEqual([
      '/prod/api/jobs?state=pending&state=running&limit=5&label=a%3Db+c',
      '/prod/api/jobs',
    ]);
    for (const one of seen) {
      const { authorization = '' } = one.request.headers;
      expect(authorization).toContain('Credential=AKIDEXAMPLE/');
      expect(authorization).toContain('/eu-central-1/execute-api/aws4_request');
      expect(authorization.split('Signature=')[1]).toBe(signatureOf(one));
    }
    expect(seen[1]?.body).toBe('{"name":"x y"}');
  });

  describe('of a stack', () => {
    const output = (key: string, value: string): string =>
      `<member><OutputKey>${key}</OutputKey><OutputValue>${value}</OutputValue></member>`;
    const described = (...outputs: readonly string[]): string =>
      `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member><StackName>Ebbtide</StackName><StackStatus>CREATE_COMPLETE</StackStatus><CreationTime>2026-01-01T00:00:00Z</CreationTime><Outputs>${outputs.join('')}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`;
    const has = (...outputs: readonly string[]): void => {
      process.env['AWS_ENDPOINT_URL_CLOUDFORMATION'] = address();
      answer = ({ request }) => ({
        status: 200,
        body: request.url === '/' ? described(...outputs) : '{"items":[],"next":null}',
      });
    };

    it('asks CloudFormation for the address, once', async () => {
      has(output('TheirApiUrl', 'https://theirs/'), output('ApiUrl', `${address()}/prod/`));
      const asking = client({ url: null });
      await asking.get('/api/jobs');
      await asking.get('/api/pools');
      expect(seen.map((s) => s.request.url)).toEqual(['/', '/prod/api/jobs', '/prod/api/pools']);
    });

    it('takes the name that the CDK makes up, where there is no other', async () => {
      has(output('NightOutputsApiUrl0A1B2C3D', `${address()}/prod/`));
      await client({ url: null }).get('/api/jobs');
      expect(seen.map((s) => s.request.url)).toEqual(['/', '/prod/api/jobs']);
    });

    it('knows it by its description, whatever the name, from an output of the app', async () => {
      const ours = output('NightOutputsApiUrl0A1B2C3D', `${address()}/prod/`);
      const description = `<Description>${API_URL_DESCRIPTION}</Description>`;
      has(output('ApiUrl', 'https://theirs/'), ours.replace('</member>', `${description}</member>`));
      await client({ url: null }).get('/api/jobs');
      expect(seen.map((s) => s.request.url)).toEqual(['/', '/prod/api/jobs']);
    });

    it('does not choose among several deployments', async () => {
      has(output('ApiUrl', 'https://one/'), output('NightOutputsApiUrl0A1B2C3D', 'https://two/'));
      const { code, facts } = await refusal(client({ url: null }).get('/api/jobs'));
      expect(code).toBe('usage');
      expect(facts.got).toBe('ApiUrl: https://one/, NightOutputsApiUrl0A1B2C3D: https://two/');
      expect(facts.next).toContain('--url');
    });

    it('says that there is no deployment in it', async () => {
      has(output('TheirApiUrl', 'https://theirs/'));
      const other = await refusal(client({ url: null, stack: 'Other' }).get('/api/jobs'));
      expect(other).toMatchObject({ code: 'engine.absent' });
      expect(other.facts.what).toBe('the stack Other is not an Ebbtide deployment');
      expect(other.facts.next).toContain('--url');
    });
  });

  it('says who does not let it in, and passes on what the engine itself refuses', async () => {
    answer = () => ({
      status: 403,
      body: '{"Message":"User: arn:aws:iam::1:user/u is not authorized to perform: execute-api:Invoke"}',
    });
    const denied = await refusal(client().get('/api/jobs'));
    expect(denied).toMatchObject({ code: 'aws.refused' });
    expect(denied.facts.got).toContain('not authorized to perform: execute-api:Invoke');
    answer = () => ({ status: 404, body: '{"code":"not-found","what":"there is no job x","status":404}' });
    expect(await refusal(client().get('/api/jobs/x'))).toMatchObject({ code: 'not-found' });
  });

  it('bears a token in place of a signature where one is given', async () => {
    for (const key of Object.keys(ENV)) Reflect.deleteProperty(process.env, key);
    await client({ token: 'header.claims.sum', region: 'eu-central-1' }).get('/api/jobs');
    expect(seen.map((s) => s.request.headers.authorization)).toEqual(['Bearer header.claims.sum']);
  });

  it('signs each request with credentials that are valid then', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'ebb-credentials-'));
    try {
      // A process that gives other credentials each time that it is asked, each for a moment only.
      const ask = join(dir, 'ask.mjs');
      writeFileSync(
        ask,
        `import { readFileSync, writeFileSync } from 'node:fs';
         const file = ${JSON.stringify(join(dir, 'times'))};
         let n = 0;
         try { n = Number(readFileSync(file, 'utf8')); } catch {}
         writeFileSync(file, String(n + 1));
         const Expiration = new Date(Date.now() + 1000).toISOString();
         console.log(JSON.stringify({ Version: 1, AccessKeyId: 'AK' + n, SecretAccessKey: 'x', SessionToken: 't', Expiration }));`,
      );
      writeFileSync(
        join(dir, 'config'),
        `[profile brief]\nregion = eu-central-1\ncredential_process = "${process.execPath}" "${ask}"\n`,
      );
      for (const key of Object.keys(ENV)) Reflect.deleteProperty(process.env, key);
      process.env['AWS_CONFIG_FILE'] = join(dir, 'config');
      const brief = client({ profile: 'brief' });
      const keyOf = (s: Seen | undefined) => /Credential=(\w+)/.exec(s?.request.headers.authorization ?? '')?.[1];
      // The next ones may be fetched while the last ones are still used.
      do await brief.get('/api/jobs');
      while (keyOf(seen.at(-1)) === 'AK0' && seen.length < 2_000);
      expect(keyOf(seen[0])).toBe('AK0');
      expect(keyOf(seen.at(-1))).toMatch(/^AK[1-9]/);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it('goes on with the events after a bad moment of the service', async () => {
    const stop = new AbortController();
    const event = { sequence: 1, at: '2026-01-01T00:00:00.000Z', type: 'job-succeeded', text: 'done', data: {} };
    answer = () =>
      seen.length === 1
        ? { status: 503, body: '{"code":"aws.unavailable","what":"passing","status":503}' }
        : { status: 200, body: `data: ${JSON.stringify(event)}\n\n` };
    const told: number[] = [];
    for await (const { sequence } of client().events(0, stop.signal)) {
      told.push(sequence);
      stop.abort();
    }
    expect(told).toEqual([1]);
    expect(seen).toHaveLength(2);
  });

  it('names a profile that is not there, and a missing region', async () => {
    for (const key of Object.keys(ENV)) Reflect.deleteProperty(process.env, key);
    process.env['AWS_CONFIG_FILE'] = '/nowhere/config';
    process.env['HOME'] = '/nowhere';
    const absent = await refusal(client({ profile: 'nobody', region: 'eu-central-1' }).get('/api/jobs'));
    expect(absent).toMatchObject({ code: 'aws.refused' });
    expect(absent.facts.got).toMatch(/^profile nobody: /);
    Object.assign(process.env, ENV);
    Reflect.deleteProperty(process.env, 'AWS_REGION');
    expect(await refusal(client().get('/api/jobs'))).toMatchObject({
      code: 'usage',
      facts: { what: 'no AWS region is known' },
    });
  });
});
