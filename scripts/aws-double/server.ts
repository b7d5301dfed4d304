import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import type { Actions } from './api.ts';
import { AwsFault, NotPlayed, type InputFaults } from './fault.ts';
import { Kept } from './kept.ts';
import { decodeJson, encodeJson, jsonError, jsonFaults } from './json.ts';
import type { Fault, KnobBoard } from './knobs.ts';
import {
  decodeQuery,
  EC2_VERSION,
  ec2Answer,
  ec2Error,
  ec2Faults,
  ELB_VERSION,
  queryAnswer,
  queryError,
  queryFaults,
  type XmlValue,
} from './query.ts';

/** All services at one address, told apart by the marks of AWS's clients. */
export interface Services {
  readonly ec2: Actions<{ readonly [name: string]: XmlValue }>;
  readonly ecs: Actions<object>;
  readonly logs: Actions<object>;
  readonly pricing: Actions<object>;
  readonly elasticloadbalancing: Actions<{ readonly [name: string]: XmlValue }>;
  /** CloudWatch. */
  readonly monitoring: Actions<object>;
}

/** Answered call, for counting requests. */
export interface Call {
  readonly service: string;
  readonly action: string;
  readonly status: number;
  readonly code: string | null;
}

/** Hook after a call's effect. `callerPort`: the caller's end of the connection, which identifies its process. */
export type BeforeAnswer = (call: {
  readonly service: string;
  readonly action: string;
  readonly callerPort: number;
}) => void | Promise<void>;

interface Protocol {
  readonly service: keyof Services;
  readonly action: string;
  readonly input: unknown;
  readonly faults: InputFaults;
  answer(content: object, requestId: string): string;
  error(fault: AwsFault, requestId: string): string;
  readonly contentType: string;
  /** Fault for a caller who is too fast. */
  readonly throttled: AwsFault;
  readonly unknown: AwsFault;
}

const JSON_TARGETS: Readonly<Record<string, 'ecs' | 'logs' | 'pricing' | 'monitoring'>> = {
  AmazonEC2ContainerServiceV20141113: 'ecs',
  Logs_20140328: 'logs',
  AWSPriceListService: 'pricing',
  GraniteServiceVersion20100801: 'monitoring',
};
/** Number of kept calls; all are counted. */
const KEPT_CALLS = 20_000;
const MOST_BODY_BYTES = 2 ** 20;

/**
 * HTTP server of the double. `other` receives requests that are no calls of a service, and returns true for those that
 * it handles.
 */
export class AwsServer {
  readonly calls = new Kept<Call>(KEPT_CALLS);
  /** Number of calls by `service:action`. */
  readonly counts = new Map<string, number>();
  /** Hook between a call's effect and its answer. */
  beforeAnswer: BeforeAnswer | null = null;
  readonly #services: Services;
  readonly #knobs: KnobBoard;
  readonly #server: Server;

  constructor(
    services: Services,
    knobs: KnobBoard,
    other: (request: IncomingMessage, body: string, response: ServerResponse) => boolean,
  ) {
    this.#services = services;
    this.#knobs = knobs;
    // No keep-alive time-out: a connection that closes while a call goes out looks like a fault of the call.
    this.#server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
      bodyOf(request)
        .then(async (body) => {
          if (!other(request, body, response)) await this.#serve(request, body, response);
        })
        .catch((error: unknown) => {
          process.stderr.write(
            `aws-double: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
          );
          if (!response.headersSent) response.writeHead(500);
          response.end();
        });
    });
  }

  /** Starts on this machine only, because callers can run commands. Resolves to the URL. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, body: string, response: ServerResponse): Promise<void> {
    const requestId = randomUUID();
    const send = (status: number, protocol: Pick<Protocol, 'contentType'>, text: string): void => {
      response.writeHead(status, { 'content-type': protocol.contentType, 'x-amzn-requestid': requestId }).end(text);
    };
    let protocol: Protocol;
    try {
      protocol = protocolOf(request, body);
    } catch (error) {
      if (!(error instanceof AwsFault)) throw error;
      this.#complain('?', request.url ?? '', error);
      send(error.status, { contentType: 'application/x-amz-json-1.1' }, jsonError(error));
      return;
    }
    const { service, action } = protocol;
    try {
      const lost = await this.#answer(request, protocol);
      if ('cut' in lost) {
        this.#note({ service, action, status: 0, code: null });
        response.destroy();
        return;
      }
      this.#note({ service, action, status: 200, code: null });
      send(200, protocol, protocol.answer(lost.content, requestId));
    } catch (error) {
      const fault = error instanceof AwsFault ? error : new AwsFault('InternalError', String(error), { status: 500 });
      if (!(error instanceof AwsFault))
        process.stderr.write(`aws-double: ${service} ${action}: ${(error as Error).stack ?? String(error)}\n`);
      if (error instanceof NotPlayed) this.#complain(service, action, error);
      this.#note({ service, action, status: fault.status, code: fault.code });
      send(fault.status, protocol, protocol.error(fault, requestId));
    }
  }

  async #answer(
    request: IncomingMessage,
    protocol: Protocol,
  ): Promise<{ readonly cut: true } | { readonly content: object }> {
    const { service, action } = protocol;
    authenticate(request, service);
    if (!this.#knobs.admits(action, performance.now())) throw protocol.throttled;
    const before = this.#knobs.takeFault(action, 'before');
    if (before !== null) return lostBy(before);
    const known = Object.hasOwn(this.#services[service], action) ? this.#services[service][action] : undefined;
    if (known === undefined) throw protocol.unknown;
    const content = await known.run(protocol.input, protocol.faults);
    await this.beforeAnswer?.({ service, action, callerPort: request.socket.remotePort ?? 0 });
    const after = this.#knobs.takeFault(action, 'after');
    return after === null ? { content } : lostBy(after);
  }

  #note(call: Call): void {
    this.calls.add(call);
    const name = `${call.service}:${call.action}`;
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  /** Complaint about calls that the double does not play: they must not pass for refusals of AWS. */
  #complain(service: string, action: string, fault: AwsFault): void {
    process.stderr.write(`aws-double: refused ${service} ${action}: ${fault.message}\n`);
  }
}

function lostBy(fault: Fault): { readonly cut: true } {
  if (fault.code === null) return { cut: true };
  throw new AwsFault(fault.code, fault.message, { status: fault.status });
}

function protocolOf(request: IncomingMessage, body: string): Protocol {
  const target = request.headers['x-amz-target'];
  if (typeof target === 'string') {
    const [prefix = '', action = ''] = target.split('.');
    const service = JSON_TARGETS[prefix];
    if (service === undefined) throw new AwsFault('UnknownOperationException', `the double has no service ${prefix}`);
    return {
      service,
      action,
      input: decodeJson(body),
      faults: jsonFaults,
      answer: encodeJson,
      error: jsonError,
      contentType: 'application/x-amz-json-1.1',
      // https://docs.aws.amazon.com/AmazonECS/latest/APIReference/CommonErrors.html
      throttled: new AwsFault('ThrottlingException', 'Rate exceeded'),
      unknown: new NotPlayed('UnknownOperationException', `the double does not play ${service} ${action}`),
    };
  }
  const { Action: action, Version: version, ...input } = decodeQuery(body);
  if (typeof action !== 'string')
    throw new AwsFault('MissingAction', 'The request names no action: neither X-Amz-Target nor Action');
  if (version === ELB_VERSION) return elbProtocol(action, input);
  return {
    service: 'ec2',
    action,
    input,
    faults: ec2Faults,
    answer: (content, requestId) => ec2Answer(action, requestId, content as { readonly [name: string]: XmlValue }),
    error: ec2Error,
    contentType: 'text/xml;charset=UTF-8',
    // https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
    throttled: new AwsFault('RequestLimitExceeded', 'Request limit exceeded.', { status: 503 }),
    unknown: new NotPlayed(
      'InvalidAction',
      version === EC2_VERSION
        ? `The action ${action} is not valid for this web service: the double does not play it`
        : `The double speaks version ${EC2_VERSION}, not ${String(version)}`,
    ),
  };
}

function elbProtocol(action: string, input: unknown): Protocol {
  return {
    service: 'elasticloadbalancing',
    action,
    input,
    faults: queryFaults,
    answer: (content, requestId) => queryAnswer(action, requestId, content as { readonly [name: string]: XmlValue }),
    error: queryError,
    contentType: 'text/xml',
    throttled: new AwsFault('Throttling', 'Rate exceeded'),
    unknown: new NotPlayed('InvalidAction', `the double does not play elasticloadbalancing ${action}`),
  };
}

/** Check of the signature's form and service. Its value is not verified. */
function authenticate(request: IncomingMessage, service: keyof Services): void {
  const scope = /Credential=[^,]*\/(\w+)\/aws4_request/.exec(request.headers.authorization ?? '')?.[1];
  if (scope === service) return;
  throw new AwsFault(
    service === 'ec2' ? 'AuthFailure' : 'MissingAuthenticationTokenException',
    scope === undefined ? 'The request is not signed' : `The request is signed for ${scope}, not for ${service}`,
    { status: service === 'ec2' ? 401 : 400 },
  );
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > MOST_BODY_BYTES) throw new Error('a request of more than 1 MiB');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
