/**
 * The middleware that each Lambda of the cycle wears, outermost first: errors under the names that the state machine
 * retries by, the log with its context, traces, metrics written at the end, and an input that was checked.
 */
import { Logger } from '@aws-lambda-powertools/logger';
import { Metrics } from '@aws-lambda-powertools/metrics';
import { Tracer } from '@aws-lambda-powertools/tracer';
import { captureLambdaHandler } from '@aws-lambda-powertools/tracer/middleware';
import type { MiddlewareObj, Request } from '@middy/core';
import type { z } from 'zod';
import { EbbError, type ErrorCode, type Issue } from '../../../kernel/errors.ts';
import { classify } from '../errors.ts';
import { METRIC_NAMESPACE, METRICS, type MetricKey } from '../metrics/metrics.ts';
import { timed } from './remaining.ts';

export const logger = new Logger();
const metrics = new Metrics({ namespace: METRIC_NAMESPACE });
const tracer = new Tracer();

/** Adds a number to the metric of that name; `by` is the value of its further dimension. */
export function measure(key: MetricKey, value: number, by?: string): void {
  if (!Number.isFinite(value)) return;
  const facts = METRICS[key];
  if (by === undefined || !('by' in facts)) {
    metrics.addMetric(facts.name, facts.unit, value);
    return;
  }
  const single = metrics.singleMetric();
  single.addDimension(facts.by, by);
  single.addMetric(facts.name, facts.unit, value);
}

/** Pass to `middy().use(...)` before `.handler(...)`. The handler sees what `input` made of the event. */
export function lambdaStack(name: string, input: z.ZodType): MiddlewareObj[] {
  return [
    namedErrors(name),
    requestInLog(),
    captureLambdaHandler(tracer, { captureResponse: false }) as MiddlewareObj,
    writtenMetrics(),
    timed(),
    checked(name, input),
  ];
}

/**
 * An error whose name is its code: the Lambda service reports `name` as the error's type, and the state machine retries
 * and catches by it ("Error handling in Step Functions workflows").
 */
export class NamedError extends Error {
  constructor(error: EbbError) {
    const { next } = error.facts;
    super(next === undefined ? error.message : `${error.message}; next: ${next}`, { cause: error });
    this.name = error.code satisfies ErrorCode;
  }
}

function namedErrors(name: string): MiddlewareObj {
  return {
    onError: (request: Request) => {
      const error = classify(request.error, name);
      logger.error(`${name} failed`, { code: error.code, error });
      request.error = new NamedError(error);
    },
  };
}

/**
 * Lines bear the request that they are of. Not what Powertools' middleware adds besides, some 300 bytes a line: whose
 * log it is says the function's name, size and ARN.
 */
function requestInLog(): MiddlewareObj {
  return {
    before: ({ context }) => {
      logger.resetKeys();
      logger.appendKeys({ request: context.awsRequestId });
    },
  };
}

/** As Powertools' own middleware does, without a warning where a call had nothing to measure. */
function writtenMetrics(): MiddlewareObj {
  const write = (): void => {
    if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
  };
  return { after: write, onError: write };
}

function checked(name: string, input: z.ZodType): MiddlewareObj {
  return {
    before: (request: Request) => {
      const parsed = input.safeParse(request.event);
      if (!parsed.success) {
        const issues = parsed.error.issues.map(issueOf);
        throw new EbbError('usage', {
          what: `${name} was given an event that it does not understand`,
          got: issues.map(written).join('; '),
          issues,
        });
      }
      request.event = parsed.data;
    },
  };
}

/** Of an event that may have several forms, which is none of them: what each of them misses. */
function issueOf(issue: z.core.$ZodIssue): Issue {
  const at = issue.path.join('.') || 'event';
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return { at, message: issue.message };
  const forms = issue.errors.map((form) => form.map((i) => written(issueOf(i))).join(', '));
  return { at, message: `has none of its forms: ${forms.join('; or ')}` };
}

const written = ({ at, message }: Issue): string => `${at}: ${message}`;
