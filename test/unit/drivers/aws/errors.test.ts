import { describe, expect, it } from '@jest/globals';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import {
  classify,
  faultNamed,
  faultOf,
  faultOfLaunch,
  isOutcomeUnknown,
  type AwsFault,
} from '../../../../lib/drivers/aws/errors.ts';

/** An error as the SDK throws it. */
const thrown = (name: string, more: Record<string, unknown> = {}): Error =>
  Object.assign(new Error(`${name} said the service`), { name, ...more });

describe('what AWS errors mean', () => {
  it.each<[string, AwsFault]>([
    // DynamoDB
    ['ProvisionedThroughputExceededException', 'throttled'],
    ['ThrottlingException', 'throttled'],
    ['TransactionConflictException', 'conflict'],
    ['ConditionalCheckFailedException', 'conflict'],
    ['ResourceNotFoundException', 'missing'],
    ['MaxFleetCountExceeded', 'quota'],
    ['MaxSomethingCountExceeded', 'quota'],
    ['ServiceQuotaExceededException', 'limit'],
    ['ValidationException', 'invalid'],
    ['ItemCollectionSizeLimitExceededException', 'too-large'],
    // EC2, as exceptions and as codes within an answer of CreateFleet
    ['RequestLimitExceeded', 'throttled'],
    ['InsufficientInstanceCapacity', 'capacity'],
    ['UnfulfillableCapacity', 'capacity'],
    ['MaxSpotInstanceCountExceeded', 'quota'],
    ['VcpuLimitExceeded', 'quota'],
    ['InstanceLimitExceeded', 'limit'],
    ['SpotMaxPriceTooLow', 'bid'],
    ['Unsupported', 'unsupported'],
    ['UnauthorizedOperation', 'denied'],
    ['AuthFailure.ServiceLinkedRoleCreationNotPermitted', 'denied'],
    ['InvalidInstanceID.NotFound', 'gone'],
    ['InvalidLaunchTemplateId.NotFound', 'missing'],
    // ECS, as exceptions and as reasons of failures
    ['ClusterNotFoundException', 'missing'],
    ['RESOURCE:MEMORY', 'capacity'],
    ['RESOURCE:SOMETHING-NEW', 'capacity'],
    ['AGENT', 'gone'],
    ['ServerException', 'unavailable'],
    // Families of names that are not listed singly
    ['InvalidVolume.NotFound', 'gone'],
    ['InvalidRouteTableID.Malformed', 'invalid'],
    ['SomeNewLimitExceeded', 'limit'],
  ])('%s: %s', (name, fault) => {
    expect(faultNamed(name)).toBe(fault);
    expect(faultOf(thrown(name))).toBe(fault);
  });

  it('takes names of objects every object has, and unknown ones, for unknown', () => {
    expect(faultNamed('constructor')).toBeNull();
    expect(faultNamed('toString')).toBeNull();
    expect(faultOf(thrown('SomethingNobodyKnows'))).toBeNull();
    expect(faultOf('text')).toBeNull();
    expect(faultOf(null)).toBeNull();
  });

  it('goes by the code within, the status, the connection or the cause when the name says nothing', () => {
    expect(faultOf(thrown('Error', { Code: 'InsufficientInstanceCapacity' }))).toBe('capacity');
    expect(faultOf(thrown('Error', { code: 'ECONNRESET' }))).toBe('unavailable');
    expect(faultOf(thrown('Unknown', { $metadata: { httpStatusCode: 429 } }))).toBe('throttled');
    expect(faultOf(thrown('Unknown', { $metadata: { httpStatusCode: 503 } }))).toBe('unavailable');
    expect(faultOf(thrown('Unknown', { $metadata: { httpStatusCode: 403 } }))).toBe('denied');
    expect(faultOf(thrown('Unknown', { $metadata: { httpStatusCode: 400 } }))).toBe('invalid');
    expect(faultOf(new Error('outer', { cause: thrown('SlowDown') }))).toBe('throttled');
  });

  it('knows after which errors a request may have been carried out', () => {
    for (const name of ['InternalServerError', 'TimeoutError', 'ServiceUnavailable']) {
      expect([name, isOutcomeUnknown(thrown(name))]).toEqual([name, true]);
      expect([name, isOutcomeUnknown(classify(thrown(name), 'dynamodb X'))]).toEqual([name, true]);
    }
    for (const name of ['ThrottlingException', 'ValidationException', 'ConditionalCheckFailedException']) {
      expect([name, isOutcomeUnknown(thrown(name))]).toEqual([name, false]);
    }
    expect(isOutcomeUnknown(new EbbError('internal', { what: 'a defect' }))).toBe(false);
  });
});

describe('AWS errors as errors of Ebbtide', () => {
  it.each([
    ['ThrottlingException', 'too-many-requests', true],
    ['InternalServerError', 'aws.unavailable', true],
    ['InsufficientInstanceCapacity', 'aws.unavailable', true],
    ['AccessDeniedException', 'aws.refused', false],
    ['ResourceNotFoundException', 'aws.refused', false],
    ['VcpuLimitExceeded', 'aws.refused', false],
    ['NoSuchKey', 'not-found', false],
    ['ValidationException', 'internal', false],
    ['SomethingNobodyKnows', 'internal', false],
  ])('%s becomes %s, to be repeated: %s', (name, code, retryable) => {
    const cause = thrown(name);
    const error = classify(cause, 'dynamodb Query');
    expect([error.code, error.retryable]).toEqual([code, retryable]);
    expect(error.message).toContain('dynamodb Query');
    expect(error.message).toContain(`${name} said the service`);
    expect(error.cause).toBe(cause);
  });

  it('leaves an EbbError as it is', () => {
    const error = new EbbError('fenced', { what: 'another engine has taken over' });
    expect(classify(error, 'anything')).toBe(error);
  });
});

describe('an error of CreateFleet', () => {
  it('that is about what a zone does not offer says so by its text alone', () => {
    const text =
      'Your requested instance type (c7g.large) is not supported in your requested Availability Zone (us-east-1e).';
    expect(faultOfLaunch('InvalidFleetConfiguration', text)).toBe('unsupported');
    expect(faultOfLaunch('InvalidFleetConfiguration', 'The launch template has no image')).toBe('invalid');
    expect(faultOfLaunch('InsufficientInstanceCapacity', '')).toBe('capacity');
  });
});
