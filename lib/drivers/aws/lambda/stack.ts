/**
 * Middleware of the cycle's Lambdas, outermost first: errors under the names that the state machine retries, logs with
 * context, traces, metrics at the end, and a checked input.
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

/** Adds a number to a metric. `by`: value of its further dimension. */
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

/** Middleware for `middy().use(...)` before `.handler(...)`. The handler receives the event as parsed by `input`. */
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
 * Error whose name is its code. The Lambda service reports `name` as the error's type, and the state machine retries
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
 * Log lines with the id of their request. Powertools' middleware would add some 300 bytes per line: name, size and ARN
 * of the function, which the log group already tells.
 */
function requestInLog(): MiddlewareObj {
  return {
    before: ({ context }) => {
      logger.resetKeys();
      logger.appendKeys({ request: context.awsRequestId });
    },
  };
}

/** Writes metrics as Powertools' middleware does, but without a warning for a call that measured nothing. */
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

/** Issues of an event that matches none of several forms: what each form misses. */
function issueOf(issue: z.core.$ZodIssue): Issue {
  const at = issue.path.join('.') || 'event';
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return { at, message: issue.message };
  const forms = issue.errors.map((form) => form.map((i) => written(issueOf(i))).join(', '));
  return { at, message: `matches none of its forms: ${forms.join('; or ')}` };
}

const written = ({ at, message }: Issue): string => `${at}: ${message}`;
