import { EbbError, type ErrorCode } from '../../kernel/errors.ts';
import type { EffectOutcome, RefusedWhy } from '../../domain/plan.ts';

/**
 * Meaning of AWS errors for Ebbtide; the one place that knows their names. Each kind has one consequence, which callers
 * respect:
 *
 * - `throttled`, `unavailable`: nothing happened, or the outcome is unknown, after several tries of the SDK with
 *   growing, jittered pauses. The call is repeated later under the same key.
 * - `capacity`: the pool has no capacity now. The pool goes into back-off, and another pool is asked.
 * - `quota`: the account's vCPUs or fleet requests are used up for this purchase option and class of families
 *   (lib/domain/quota.ts). All pools of the quota go into back-off. Others are asked, for example on-demand in place of
 *   spot.
 * - `limit`: another limit of the account is reached. The pool goes into back-off, as for `capacity`. Which other pools
 *   share the limit is unknown, so the next plan may try one of them in vain.
 * - `bid`: the price is above the bid. The next plan bids more or chooses another pool.
 * - `unsupported`: the zone does not offer the type. The pool quotes no price until version, families or zones of the
 *   deployment change (prices.ts).
 * - `gone`: the subject of the call does not exist. Everything that depended on it ends.
 * - `conflict`: another writer has changed the subject. Read and decide again.
 * - `denied`: the role lacks a right. A person must act, and an alarm says so. A launch is over and its pool goes into
 *   back-off. Work that has begun is tried again until it is allowed.
 * - `missing`: a table, bucket, cluster, template or capacity reservation of the deployment is missing. Same
 *   consequence as `denied`.
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
 * Error names by service: DynamoDB "Error handling", EC2 "Error codes for the Amazon EC2 API" (CreateFleet returns them
 * as `Errors[].ErrorCode`), ECS "StartTask" errors and failure reasons, S3 "Error responses".
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
  // Elastic Load Balancing: "Errors" of each action.
  ListenerNotFoundException: 'gone',
  TargetGroupNotFoundException: 'gone',
  InvalidTargetException: 'gone',
  DuplicateListenerException: 'conflict',
  DuplicateTargetGroupNameException: 'conflict',
  ResourceInUseException: 'conflict',
  TooManyListenersException: 'limit',
  TooManyTargetGroupsException: 'limit',
  TooManyTargetsException: 'limit',
  TooManyRegistrationsForTargetIdException: 'limit',
  LoadBalancerNotFoundException: 'missing',
  CertificateNotFoundException: 'missing',
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
  // Capacity reservation that is full or not active.
  ReservationCapacityExceeded: 'capacity',
  InvalidCapacityReservationState: 'capacity',
  // Quotas of vCPUs ("Spot Instance quotas", "On-Demand Instance quotas").
  MaxSpotInstanceCountExceeded: 'quota',
  VcpuLimitExceeded: 'quota',
  // Fleet requests: one quota for all pools ("Quotas for EC2 Fleet and Spot Fleet").
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
  // TerminateInstances under termination protection.
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
  // RunTask on an instance that is not registered (yet or any more).
  'MemberOf placement constraint unsatisfied.': 'gone',
  'No Container Instances were found in your cluster.': 'gone',
  'RESOURCE:CPU': 'capacity',
  'RESOURCE:MEMORY': 'capacity',
  'RESOURCE:GPU': 'capacity',
  'RESOURCE:ENI': 'capacity',
  'RESOURCE:PORTS': 'capacity',
};

/** Errors of the connection: the request may have arrived. */
const NETWORK = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH']);

/** Kinds that leave the outcome of the request unknown. */
const UNKNOWN_OUTCOME: ReadonlySet<AwsFault> = new Set<AwsFault>(['unavailable']);

/**
 * Meaning of an error name or code: of a response, of CreateFleet's errors, or of StartTask's failures. Null: unknown.
 */
export function faultNamed(name: string): AwsFault | null {
  if (Object.hasOwn(FAULTS, name)) return FAULTS[name] ?? null;
  // Families of codes: ECS says `RESOURCE:CPU` and may add others, and EC2's codes share endings.
  if (name.startsWith('RESOURCE:')) return 'capacity';
  if (name.startsWith('AuthFailure.')) return 'denied';
  if (name.endsWith('.NotFound')) return 'gone';
  if (name.endsWith('.Malformed')) return 'invalid';
  if (name.endsWith('CountExceeded')) return 'quota';
  if (/(?:Limit|Quota)Exceeded(?:Exception)?$/.test(name)) return 'limit';
  return null;
}

/** Message of CreateFleet for a type that the zone does not offer; the code does not tell. */
const NOT_OFFERED = /not supported in your requested Availability Zone/i;

/** Meaning of an error of CreateFleet. */
export const faultOfLaunch = (code: string, message: string): AwsFault | null =>
  code === 'InvalidFleetConfiguration' && NOT_OFFERED.test(message) ? 'unsupported' : faultNamed(code);

/** Meaning of a thrown error; null if no AWS call threw it. */
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
    throttled: { code: 'too-many-requests', what: 'AWS throttles requests now', next: 'try again in some seconds' },
    unavailable: { code: 'aws.unavailable', what: 'AWS does not answer', next: 'try again in some seconds' },
    capacity: { code: 'aws.unavailable', what: 'AWS has no capacity of this kind now', next: 'try another pool' },
    quota: { code: 'aws.refused', what: 'a quota of the account is used up', next: 'raise it in Service Quotas' },
    limit: { code: 'aws.refused', what: 'a limit of the account is reached', next: 'raise it in Service Quotas' },
    bid: { code: 'aws.refused', what: 'the price is above the bid', next: 'bid more' },
    unsupported: { code: 'aws.refused', what: 'AWS does not offer this here', next: 'leave this type or zone out' },
    gone: { code: 'not-found', what: 'the subject of the request no longer exists' },
    conflict: { code: 'conflict', what: 'another writer changed it meanwhile', next: 'try again' },
    denied: {
      code: 'aws.refused',
      what: 'AWS refuses the request: a right or valid credentials are missing',
      next: 'check the role and the credentials; docs/deploy.md lists the rights',
    },
    missing: {
      code: 'aws.refused',
      what: 'a part of the deployment is missing',
      next: 'check region and names, or deploy again',
    },
    'too-large': { code: 'internal', what: 'a request is larger than AWS accepts' },
    invalid: { code: 'internal', what: 'AWS does not understand a request' },
  };

/** EbbError for an error of an AWS call. `doing`: the call, such as `dynamodb TransactWriteItems`. */
export function classify(error: unknown, doing: string): EbbError {
  if (error instanceof EbbError) return error;
  const fault = faultOf(error);
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  if (fault === null) return new EbbError('internal', { what: `${doing} failed: ${said}`, cause: error });
  const { code, what, next } = MEANING[fault];
  return new EbbError(code, { what, got: `${doing}: ${said}`, ...(next === undefined ? {} : { next }), cause: error });
}

/**
 * Consequences of a fault for an effect, and so for the next cycle (lib/cycle/act/intents.ts):
 * - `refused` closes the effect. A refused launch ends its instance, and its pool goes into back-off for 5 minutes; for
 *   a quota, all pools of the quota do. A replacement is decided at once. After a refused start the task waits again.
 * - `failed` leaves the effect open: the next cycle repeats it under the same key.
 */
const CONSEQUENCE: Readonly<Record<AwsFault, 'failed' | RefusedWhy>> = {
  throttled: 'failed',
  unavailable: 'failed',
  conflict: 'failed',
  // Faults that a person must remove. Until then nothing is lost: the effect stays open.
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

/** Outcome of an effect with a fault. An unknown error may pass, so it is tried again. */
export function outcomeOfFault(fault: AwsFault | null, detail: string): Unsuccessful {
  const consequence = fault === null ? 'failed' : CONSEQUENCE[fault];
  if (consequence !== 'failed') return { status: 'refused', why: consequence, detail };
  return { status: 'failed', detail, ...(needsPerson(fault) ? { why: 'denied' } : {}) };
}

/** Faults that last until a person acts. */
const needsPerson = (fault: AwsFault | null): boolean => fault === 'denied' || fault === 'missing';

/**
 * Outcome of a launch that certainly bought nothing: an error in CreateFleet's `Errors[]`, or a call refused for a
 * missing right or resource. CreateFleet's client token stays bound to its answer, so the effect is closed in any case.
 * The next launch has another token.
 */
export function outcomeOfNoLaunch(fault: AwsFault | null, detail: string): Unsuccessful {
  const outcome = outcomeOfFault(fault, detail);
  return outcome.status === 'refused'
    ? outcome
    : { status: 'refused', why: outcome.why ?? 'insufficient-capacity', detail };
}

/** Outcome of a call that threw. */
export function outcomeOfThrown(error: EbbError): Unsuccessful {
  const fault = faultOf(error.cause);
  return { status: 'failed', detail: error.message, ...(needsPerson(fault) ? { why: 'denied' } : {}) };
}
