/**
 * One error type for people and machines. `code` is stable and documented (docs/reference/errors.md is generated from
 * this table); the four texts answer: what failed, what it got, what is allowed, what to do next.
 */
export const ERROR_CODES = {
  usage: { http: 400, exit: 2, retryable: false, about: 'The command line or request is not of the expected form.' },
  'job-file.syntax': { http: 400, exit: 2, retryable: false, about: 'The job file is not valid YAML or JSON.' },
  'job-file.invalid': {
    http: 400,
    exit: 2,
    retryable: false,
    about: 'The job file has unknown keys or values that are not allowed.',
  },
  'service-file.invalid': {
    http: 400,
    exit: 2,
    retryable: false,
    about: 'The service file has unknown keys or values that are not allowed.',
  },
  'job-file.cycle': {
    http: 400,
    exit: 2,
    retryable: false,
    about: 'Stages or jobs depend on one another in a circle.',
  },
  'job-file.dependency': {
    http: 400,
    exit: 2,
    retryable: false,
    about: 'A stage or job that is depended on does not exist.',
  },
  'job.unplaceable': {
    http: 422,
    exit: 2,
    retryable: false,
    about: 'No pool satisfies the resources and constraints.',
  },
  'job.deadline-past': { http: 422, exit: 2, retryable: false, about: 'The deadline lies in the past.' },
  'job.deadline-impossible': {
    http: 422,
    exit: 2,
    retryable: false,
    about: 'The deadline cannot be met even on on-demand capacity started now.',
  },
  'job.not-in-version': { http: 422, exit: 2, retryable: false, about: 'This version does not run this class of job.' },
  'job.input-missing': {
    http: 422,
    exit: 2,
    retryable: false,
    about: 'The working directory is missing, or an input pattern matches no file in it.',
  },
  'job.secret-missing': {
    http: 422,
    exit: 2,
    retryable: false,
    about: 'A secret that the job names is not there, or others may read it.',
  },
  'job.failed': { http: 409, exit: 3, retryable: false, about: 'The job failed.' },
  'job.held': {
    http: 409,
    exit: 3,
    retryable: false,
    about: 'No decision can be made for the job: it is set aside until it is released or cancelled.',
  },
  'job.late': {
    http: 409,
    exit: 4,
    retryable: false,
    about: 'The job finished after its deadline, or was given up as worthless.',
  },
  'job.cancelled': { http: 409, exit: 5, retryable: false, about: 'The job was cancelled.' },
  'not-found': { http: 404, exit: 6, retryable: false, about: 'No such job, instance, pool, plan or route.' },
  gone: {
    http: 410,
    exit: 6,
    retryable: false,
    about: 'What was asked for is older than what is kept: it has aged out, if it ever was.',
  },
  conflict: {
    http: 409,
    exit: 6,
    retryable: false,
    about: 'The request contradicts what is stored, e.g. an idempotency key used for another body.',
  },
  'body-too-large': { http: 413, exit: 2, retryable: false, about: 'The request body is over the limit.' },
  'answer-too-large': {
    http: 400,
    exit: 2,
    retryable: false,
    about: 'The answer would be larger than can be sent: ask for less at a time.',
  },
  'media-type': { http: 415, exit: 2, retryable: false, about: 'The request body is of a type that is not accepted.' },
  'method-not-allowed': { http: 405, exit: 2, retryable: false, about: 'The route exists, the method does not.' },
  unauthorized: { http: 401, exit: 7, retryable: false, about: 'A token is needed and was missing or wrong.' },
  forbidden: { http: 403, exit: 7, retryable: false, about: 'The request came from where none may come from.' },
  'too-many-requests': { http: 429, exit: 8, retryable: true, about: 'Too much at once; try again later.' },
  'market.invalid': {
    http: 400,
    exit: 2,
    retryable: false,
    about: 'A market file cannot be read or holds nothing usable.',
  },
  'workload.invalid': {
    http: 400,
    exit: 2,
    retryable: false,
    about: 'A workload cannot be read or holds no usable job.',
  },
  'store.newer': { http: 409, exit: 9, retryable: false, about: 'The database was written by a newer version.' },
  'store.corrupt': {
    http: 409,
    exit: 9,
    retryable: false,
    about: 'The database cannot be read: restore a backup (docs/local-mode.md, docs/deploy.md).',
  },
  'store.full': {
    http: 429,
    exit: 9,
    retryable: true,
    about: 'The disk is full, or its budget (`--disk`) is used up.',
  },
  'engine.running': { http: 409, exit: 9, retryable: false, about: 'Another engine already works on this directory.' },
  'engine.absent': { http: 404, exit: 10, retryable: true, about: 'No engine answers at this address.' },
  'port-in-use': { http: 409, exit: 9, retryable: false, about: 'The address to listen on is taken.' },
  'aws.unavailable': { http: 503, exit: 9, retryable: true, about: 'AWS does not answer, or has no room now.' },
  'aws.refused': {
    http: 502,
    exit: 9,
    retryable: false,
    about: 'AWS refuses a request: a right, a quota or a part of the deployment is missing.',
  },
  fenced: { http: 409, exit: 9, retryable: true, about: 'Another engine took over; this one may no longer act.' },
  late: {
    http: 409,
    exit: 9,
    retryable: false,
    about: 'A cycle on AWS ran out of time between two steps; the next one goes on with what is recorded.',
  },
  superseded: {
    http: 409,
    exit: 9,
    retryable: false,
    about: 'A deployment came between two steps of a cycle on AWS; the next cycle begins anew.',
  },
  'model.unusable': {
    http: 409,
    exit: 9,
    retryable: false,
    about: 'A version of the trained model lacks a part, is damaged, or cannot be run here.',
  },
  'model.training': {
    http: 409,
    exit: 9,
    retryable: false,
    about: 'A model cannot be trained here, or its training failed.',
  },
  'node-version': {
    http: 409,
    exit: 9,
    retryable: false,
    about: 'This Node cannot run Ebbtide and the packaged one is missing.',
  },
  internal: { http: 500, exit: 1, retryable: false, about: 'A broken invariant: a defect in Ebbtide.' },
} as const satisfies Record<string, { http: number; exit: number; retryable: boolean; about: string }>;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface ErrorFacts {
  /** Failure, one sentence. */
  readonly what: string;
  /** Actual value. */
  readonly got?: string;
  /** Allowed values. */
  readonly allowed?: string;
  /** The next step. */
  readonly next?: string;
  /** Place in the input: a path such as `stages[1].resources.memory`, or `file:line`. */
  readonly at?: string;
  /** Every further finding, when several were reported at once. */
  readonly issues?: readonly Issue[];
  readonly cause?: unknown;
}

export interface Issue {
  readonly at: string;
  readonly message: string;
}

export class EbbError extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, facts: ErrorFacts) {
    super(describe(facts), { cause: facts.cause });
    this.name = 'EbbError';
    this.code = code;
    this.facts = facts;
  }

  get http(): number {
    return ERROR_CODES[this.code].http;
  }

  get exit(): number {
    return ERROR_CODES[this.code].exit;
  }

  get retryable(): boolean {
    return ERROR_CODES[this.code].retryable;
  }
}

function describe(f: ErrorFacts): string {
  const lines = [f.at === undefined ? f.what : `${f.at}: ${f.what}`];
  if (f.got !== undefined) lines.push(`got ${f.got}`);
  if (f.allowed !== undefined) lines.push(`allowed: ${f.allowed}`);
  return lines.join('; ');
}

/** For `default:` of an exhaustive switch: does not compile when a case is missing. */
export function unreachable(value: never, where: string): never {
  throw new EbbError('internal', { what: `${where} met a value it does not know`, got: JSON.stringify(value) });
}

/** Narrows away `undefined` where an invariant says there is a value. */
export function invariant<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new EbbError('internal', { what });
  return value;
}

/** The message of anything thrown, without its stack. */
export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
