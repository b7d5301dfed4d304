import { EbbError, type ErrorCode } from '../../kernel/errors.ts';
import type { EffectOutcome, RefusedWhy } from '../../domain/plan.ts';

/**
 * What an AWS call's error means to Ebbtide: the one place where names of AWS errors are known. Each kind has one
 * consequence, which the callers keep to:
 *
 * - `throttled`, `unavailable`: nothing happened or it is not known whether it did; the SDK has tried several times
 *   with growing, jittered pauses. The call is repeated later under the same key.
 * - `capacity`: the pool has no capacity now. It rests; another pool is asked meanwhile.
 * - `quota`: the account has no vCPUs or no fleet requests left for this purchase option and class of families
 *   (lib/domain/quota.ts). All pools under that quota rest; others, on-demand in place of spot, are asked meanwhile.
 * - `limit`: another limit of the account is reached. The pool rests, as for `capacity`; which other pools share the
 *   limit is not known, so the next plan may ask one of them, and have it refused too.
 * - `bid`: the price is above the highest one offered. The next plan offers more, or chooses another pool.
 * - `unsupported`: the pool's type is not offered in its zone. The pool quotes no price any more, and so is not asked
 *   again, until version, families or zones of the deployment change (prices.ts).
 * - `gone`: what the call is about does not exist (any more). What depended on it ends.
 * - `conflict`: somebody else has changed it meanwhile. Read again and decide again.
 * - `denied`: the role lacks a right. A person must act, and an alarm says so. A launch is over, and its pool rests;
 *   what has begun already is asked again until it is allowed.
 * - `missing`: a table, bucket, cluster, template or capacity reservation of the deployment is not there. The same.
 * - `too-large`, `invalid`: the request can never succeed: a defect of Ebbtide.
 */
export type AwsFault =
  | 'throttled'
  | 'unavailable'
  | 'capacity'
  | 'quota'
  | 'limit'
  | 'bid'
  | 'unsupported'
  | 'gone'
  | 'conflict'
  | 'denied'
  | 'missing'
  | 'too-large'
  | 'invalid';

/**
 * Error names by service documentation: DynamoDB "Error handling", EC2 "Error codes for the Amazon EC2 API" (those of
 * CreateFleet come as `Errors[].ErrorCode`), ECS "StartTask" errors and failure reasons, S3 "Error responses".
 */
const FAULTS: Readonly<Record<string, AwsFault>> = {
  // Every service.
  ThrottlingException: 'throttled',
  Throttling: 'throttled',
  ThrottledException: 'throttled',
  TooManyRequestsException: 'throttled',
  RequestThrottled: 'throttled',
  RequestThrottledException: 'throttled',
  SlowDown: 'throttled',
  InternalServerError: 'unavailable',
  InternalFailure: 'unavailable',
  InternalError: 'unavailable',
  ServiceUnavailable: 'unavailable',
  ServiceUnavailableException: 'unavailable',
  Unavailable: 'unavailable',
  RequestTimeout: 'unavailable',
  RequestTimeoutException: 'unavailable',
  TimeoutError: 'unavailable',
  AccessDenied: 'denied',
  AccessDeniedException: 'denied',
  UnauthorizedOperation: 'denied',
  UnrecognizedClientException: 'denied',
  InvalidClientTokenId: 'denied',
  InvalidAccessKeyId: 'denied',
  SignatureDoesNotMatch: 'denied',
  AuthFailure: 'denied',
  ExpiredToken: 'denied',
  ExpiredTokenException: 'denied',
  CredentialsProviderError: 'denied',
  ValidationException: 'invalid',
  ValidationError: 'invalid',
  SerializationException: 'invalid',
  // DynamoDB.
  ProvisionedThroughputExceededException: 'throttled',
  RequestLimitExceeded: 'throttled',
  LimitExceededException: 'throttled',
  TransactionInProgressException: 'throttled',
  ConditionalCheckFailedException: 'conflict',
  TransactionCanceledException: 'conflict',
  TransactionConflictException: 'conflict',
  IdempotentParameterMismatchException: 'invalid',
  ItemCollectionSizeLimitExceededException: 'too-large',
  ResourceNotFoundException: 'missing',
  // S3.
  NoSuchBucket: 'missing',
  NoSuchKey: 'gone',
  NotFound: 'gone',
  EntityTooLarge: 'too-large',
  PreconditionFailed: 'conflict',
  // EC2: launching.
  InsufficientInstanceCapacity: 'capacity',
  InsufficientCapacity: 'capacity',
  InsufficientHostCapacity: 'capacity',
  InsufficientReservedInstanceCapacity: 'capacity',
  UnfulfillableCapacity: 'capacity',
  // Of a capacity reservation: it is full, or not active (any more).
  ReservationCapacityExceeded: 'capacity',
  InvalidCapacityReservationState: 'capacity',
  // vCPUs of spot instances, and of on-demand ones ("Spot Instance quotas", "On-Demand Instance quotas").
  MaxSpotInstanceCountExceeded: 'quota',
  VcpuLimitExceeded: 'quota',
  // Fleet requests, of which there is one quota for all pools ("Quotas for EC2 Fleet and Spot Fleet").
  MaxFleetCountExceeded: 'quota',
  MaxSpotFleetRequestCountExceeded: 'quota',
  InstanceLimitExceeded: 'limit',
  VolumeLimitExceeded: 'limit',
  MaxIOPSLimitExceeded: 'limit',
  AddressLimitExceeded: 'limit',
  InsufficientFreeAddressesInSubnet: 'limit',
  SpotMaxPriceTooLow: 'bid',
  InvalidSpotMaxPrice: 'bid',
  Unsupported: 'unsupported',
  UnsupportedOperation: 'unsupported',
  InvalidAvailabilityZone: 'unsupported',
  'InvalidFleetConfiguration.Unsupported': 'unsupported',
  OptInRequired: 'unsupported',
  PendingVerification: 'limit',
  InvalidFleetConfiguration: 'invalid',
  InvalidParameterValue: 'invalid',
  InvalidParameterCombination: 'invalid',
  MissingParameter: 'invalid',
  IdempotentParameterMismatch: 'invalid',
  'InvalidLaunchTemplateId.NotFound': 'missing',
  'InvalidLaunchTemplateId.VersionNotFound': 'missing',
  'InvalidLaunchTemplateName.NotFoundException': 'missing',
  'InvalidSubnetID.NotFound': 'missing',
  'InvalidGroup.NotFound': 'missing',
  'InvalidAMIID.NotFound': 'missing',
  'InvalidCapacityReservationId.NotFound': 'missing',
  'InvalidInstanceID.NotFound': 'gone',
  'InvalidInstanceID.Malformed': 'invalid',
  IncorrectInstanceState: 'gone',
  // TerminateInstances of one under termination protection.
  OperationNotPermitted: 'denied',
  IncorrectState: 'gone',
  // ECS.
  ServerException: 'unavailable',
  ClientException: 'invalid',
  InvalidParameterException: 'invalid',
  ClusterNotFoundException: 'missing',
  ClusterContainsContainerInstancesException: 'conflict',
  ConflictException: 'conflict',
  AGENT: 'gone',
  MISSING: 'gone',
  INACTIVE: 'gone',
  // RunTask on an instance that is not registered any more, or not yet.
  'MemberOf placement constraint unsatisfied.': 'gone',
  'No Container Instances were found in your cluster.': 'gone',
  'RESOURCE:CPU': 'capacity',
  'RESOURCE:MEMORY': 'capacity',
  'RESOURCE:GPU': 'capacity',
  'RESOURCE:ENI': 'capacity',
  'RESOURCE:PORTS': 'capacity',
};

/** Errors of the connection: it is not known whether the request arrived. */
const NETWORK = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH']);

/** Kinds after which it is not known whether the request was carried out. */
const UNKNOWN_OUTCOME: ReadonlySet<AwsFault> = new Set<AwsFault>(['unavailable']);

/**
 * What an error name or code (of a response, of `CreateFleet`'s errors, of `StartTask`'s failures) means; null: not
 * known.
 */
export function faultNamed(name: string): AwsFault | null {
  if (Object.hasOwn(FAULTS, name)) return FAULTS[name] ?? null;
  // ECS says `RESOURCE:CPU`, and newer ones may come; EC2's families of codes end alike.
  if (name.startsWith('RESOURCE:')) return 'capacity';
  if (name.startsWith('AuthFailure.')) return 'denied';
  if (name.endsWith('.NotFound')) return 'gone';
  if (name.endsWith('.Malformed')) return 'invalid';
  if (name.endsWith('CountExceeded')) return 'quota';
  if (/(?:Limit|Quota)Exceeded(?:Exception)?$/.test(name)) return 'limit';
  return null;
}

/** CreateFleet says by its text alone that a zone does not offer a type. */
const NOT_OFFERED = /not supported in your requested Availability Zone/i;

/** What one of CreateFleet's errors means. */
export const faultOfLaunch = (code: string, message: string): AwsFault | null =>
  code === 'InvalidFleetConfiguration' && NOT_OFFERED.test(message) ? 'unsupported' : faultNamed(code);

/** What a thrown error means; null for one that no AWS call throws. */
export function faultOf(error: unknown): AwsFault | null {
  if (typeof error !== 'object' || error === null) return null;
  const { name, Code, code, $metadata, cause } = error as {
    name?: string;
    Code?: string;
    code?: string;
    $metadata?: { httpStatusCode?: number };
    cause?: unknown;
  };
  for (const text of [Code, name, code]) {
    const known = typeof text === 'string' ? faultNamed(text) : null;
    if (known !== null) return known;
  }
  if (typeof code === 'string' && NETWORK.has(code)) return 'unavailable';
  const status = $metadata?.httpStatusCode;
  if (status === 429) return 'throttled';
  if (status !== undefined && status >= 500) return 'unavailable';
  if (status === 403) return 'denied';
  if (status !== undefined && status >= 400) return 'invalid';
  return cause === undefined ? null : faultOf(cause);
}

export const isOutcomeUnknown = (error: unknown): boolean => {
  const fault = error instanceof EbbError ? faultOf(error.cause) : faultOf(error);
  return fault !== null && UNKNOWN_OUTCOME.has(fault);
};

const MEANING: Readonly<Record<AwsFault, { readonly code: ErrorCode; readonly what: string; readonly next?: string }>> =
  {
    throttled: { code: 'too-many-requests', what: 'AWS takes no more requests now', next: 'try again in some seconds' },
    unavailable: { code: 'aws.unavailable', what: 'AWS does not answer', next: 'try again in some seconds' },
    capacity: { code: 'aws.unavailable', what: 'AWS has no capacity of this kind now', next: 'try another pool' },
    quota: { code: 'aws.refused', what: 'a quota of the account is used up', next: 'raise it in Service Quotas' },
    limit: { code: 'aws.refused', what: 'a limit of the account is reached', next: 'raise it in Service Quotas' },
    bid: { code: 'aws.refused', what: 'the price is above the highest one offered', next: 'offer more' },
    unsupported: { code: 'aws.refused', what: 'AWS does not offer this here', next: 'leave this type or zone out' },
    gone: { code: 'not-found', what: 'what the request is about is not there any more' },
    conflict: { code: 'conflict', what: 'somebody else changed it meanwhile', next: 'try again' },
    denied: {
      code: 'aws.refused',
      what: 'AWS refuses the request: a right or valid credentials are missing',
      next: 'check the role and the credentials; docs/deploy.md lists the rights',
    },
    missing: {
      code: 'aws.refused',
      what: 'a part of the deployment is not there',
      next: 'check region and names, or deploy again',
    },
    'too-large': { code: 'internal', what: 'a request is larger than AWS takes' },
    invalid: { code: 'internal', what: 'AWS does not understand a request' },
  };

/** The EbbError of what an AWS call threw; `doing` says what it was about, e.g. `dynamodb TransactWriteItems`. */
export function classify(error: unknown, doing: string): EbbError {
  if (error instanceof EbbError) return error;
  const fault = faultOf(error);
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  if (fault === null) return new EbbError('internal', { what: `${doing} failed: ${said}`, cause: error });
  const { code, what, next } = MEANING[fault];
  return new EbbError(code, { what, got: `${doing}: ${said}`, ...(next === undefined ? {} : { next }), cause: error });
}

/**
 * What a fault means for an effect, and so for the next cycle (lib/cycle/act/intents.ts):
 * - `refused` closes it. A refused launch ends the instance that was to be, and its pool rests for 5 minutes, for want
 *   of a quota all pools under that; what is to be bought instead is decided at once. A refused start makes the task
 *   wait again.
 * - `failed` leaves it open: the next cycle does it again under the same key.
 */
const CONSEQUENCE: Readonly<Record<AwsFault, 'failed' | RefusedWhy>> = {
  throttled: 'failed',
  unavailable: 'failed',
  conflict: 'failed',
  // A person must act. Until then nothing is lost: what was begun is gone on with once it can be.
  denied: 'failed',
  missing: 'failed',
  capacity: 'insufficient-capacity',
  quota: 'quota',
  limit: 'limit',
  bid: 'bid-below-price',
  unsupported: 'unsupported',
  gone: 'instance-gone',
  'too-large': 'invalid',
  invalid: 'invalid',
};

export type Unsuccessful = Exclude<EffectOutcome, { status: 'done' }>;

/** The outcome of an effect that met a fault. An error that is not known may pass: it is tried again. */
export function outcomeOfFault(fault: AwsFault | null, detail: string): Unsuccessful {
  const consequence = fault === null ? 'failed' : CONSEQUENCE[fault];
  if (consequence !== 'failed') return { status: 'refused', why: consequence, detail };
  return { status: 'failed', detail, ...(needsPerson(fault) ? { why: 'denied' } : {}) };
}

/** Faults that last until a person has acted. */
const needsPerson = (fault: AwsFault | null): boolean => fault === 'denied' || fault === 'missing';

/**
 * The outcome of a launch that certainly bought nothing: what CreateFleet says in `Errors[]`, to which its client token
 * stays bound, or a call that was turned away for lack of a right or of a part of the deployment. Closed whatever it
 * was, so that the next launch is another one, under another token.
 */
export function outcomeOfNoLaunch(fault: AwsFault | null, detail: string): Unsuccessful {
  const outcome = outcomeOfFault(fault, detail);
  return outcome.status === 'refused'
    ? outcome
    : { status: 'refused', why: outcome.why ?? 'insufficient-capacity', detail };
}

/** The outcome of a call that threw. */
export function outcomeOfThrown(error: EbbError): Unsuccessful {
  const fault = faultOf(error.cause);
  return { status: 'failed', detail: error.message, ...(needsPerson(fault) ? { why: 'denied' } : {}) };
}
