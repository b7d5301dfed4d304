/**
 * Questions to services of AWS of which nothing else here needs a client: three requests do not warrant three packages.
 * Requests are signed by the library that signs them everywhere else (Signature Version 4).
 */
import { Hash } from '@smithy/core/serde';
import { HttpRequest } from '@smithy/core/transport';
import { SignatureV4 } from '@smithy/signature-v4';

export interface Caller {
  readonly region: string;
  readonly credentials: () => Promise<{ readonly accessKeyId: string; readonly secretAccessKey: string }>;
}

export type Service = 'sts' | 'iam' | 'servicequotas';

/** What a service answered: its text, and the name of the error where it is one. */
export interface Said {
  readonly status: number;
  readonly text: string;
  /** Such as `AccessDenied`; null where the status is below 300. */
  readonly error: string | null;
  readonly message: string;
}

/** "Service endpoints" of each service in the AWS General Reference; IAM has one for all regions, signed for us-east-1. */
function placeOf(service: Service, region: string): { readonly url: URL; readonly region: string } {
  const own = process.env[`AWS_ENDPOINT_URL_${service === 'servicequotas' ? 'SERVICE_QUOTAS' : service.toUpperCase()}`];
  if (service === 'iam') return { url: new URL(own ?? 'https://iam.amazonaws.com/'), region: 'us-east-1' };
  return { url: new URL(own ?? `https://${service}.${region}.amazonaws.com/`), region };
}

/** One call of a Query API (`Action=...`). */
export const askQuery = (caller: Caller, service: Service, form: Readonly<Record<string, string>>): Promise<Said> =>
  ask(caller, service, {
    body: new URLSearchParams(form).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });

/** One call of a JSON API, by its target. */
export const askJson = (caller: Caller, service: Service, target: string, input: object): Promise<Said> =>
  ask(caller, service, {
    body: JSON.stringify(input),
    headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target },
  });

async function ask(
  caller: Caller,
  service: Service,
  { body, headers }: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
): Promise<Said> {
  const { url, region } = placeOf(service, caller.region);
  const signer = new SignatureV4({
    service,
    region,
    credentials: caller.credentials,
    sha256: Hash.bind(null, 'sha256'),
  });
  const request = new HttpRequest({
    method: 'POST',
    protocol: url.protocol,
    hostname: url.hostname,
    ...(url.port === '' ? {} : { port: Number(url.port) }),
    path: url.pathname,
    headers: { ...headers, host: url.host },
    body,
  });
  const signed = await signer.sign(request);
  const { host: _, ...rest } = signed.headers;
  const answer = await fetch(url, { method: 'POST', headers: rest, body });
  const text = await answer.text();
  return { status: answer.status, text, ...(answer.ok ? { error: null, message: '' } : faultIn(text, answer.status)) };
}

/** Query APIs say `<Code>` and `<Message>`, JSON APIs `__type` and `message`. */
function faultIn(text: string, status: number): { readonly error: string; readonly message: string } {
  const [, code = /"__type"\s*:\s*"(?:[^"#]*#)?([^"]+)"/.exec(text)?.[1] ?? `HTTP ${status}`] =
    /<Code>([^<]+)<\/Code>/.exec(text) ?? [];
  const [, message = /"[Mm]essage"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text.slice(0, 200)] =
    /<Message>([^<]+)<\/Message>/.exec(text) ?? [];
  return { error: code, message };
}
