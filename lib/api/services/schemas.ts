/** Answers about services. */
import { z } from 'zod';
import { admissionView, explanationView } from '../schemas.ts';

const instant = z.iso.datetime().describe('Engine time, ISO 8601, UTC.').meta({ example: '2026-03-01T12:00:00.000Z' });
const count = z.int().nonnegative();
const latency = z.number().nullable().describe('Wall seconds; null without a request.');

const replicaView = z
  .object({
    number: count.describe('Ascends; never used again.'),
    revision: count,
    phase: z.enum(['starting', 'healthy', 'unhealthy', 'draining', 'stopping']),
    sinceAt: instant,
    detail: z.string().nullable().describe('Why it is going, or not healthy.'),
    job: z.string().describe('Its job, for logs and explanations.'),
    port: count,
    instance: z.string().nullable().describe('Where it runs; null while it waits.'),
    pool: z.string().nullable(),
  })
  .meta({ id: 'Replica' });
export type ReplicaView = z.infer<typeof replicaView>;

const periodView = z
  .object({
    fromAt: instant,
    toAt: instant,
    requests: count.describe('Answered by a replica.'),
    slow: count.describe('Answered later than the target’s latency.'),
    failed: count.describe('Without an answer of a replica.'),
    p50S: latency,
    p95S: latency,
    p99S: latency,
    queued: count.describe('Requests that waited for a replica at the end.'),
    replicas: count.describe('Healthy replicas at the end.'),
  })
  .meta({ id: 'ServicePeriod' });

const summaryFields = {
  name: z.string(),
  owner: z.string(),
  labels: z.record(z.string(), z.string()),
  state: z.enum(['deploying', 'healthy', 'degraded', 'failing', 'deleting']),
  detail: z.string(),
  revision: count,
  url: z.string().nullable().describe('Where it is reached; null: nowhere yet.'),
  replicas: z.object({ healthy: count, wanted: count, all: count, min: count, max: count }),
  rps: z.number().nullable().describe('Requests per second of the last monitoring period; null: not measured.'),
  slowShare: z.number().nullable().describe('Share of slow and failed requests since it began; null without any.'),
  createdAt: instant,
};

export const serviceSummary = z.object(summaryFields).meta({ id: 'ServiceSummary' });
export type ServiceSummaryView = z.infer<typeof serviceSummary>;

export const serviceList = z.object({ items: z.array(serviceSummary), asOf: instant }).meta({ id: 'ServiceList' });
export type ServiceListView = z.infer<typeof serviceList>;

export const serviceView = z
  .object({
    ...summaryFields,
    asOf: instant,
    target: z.object({ latencyS: z.number(), percent: z.number() }),
    scaling: z.object({
      policy: z.string(),
      reason: z.string().describe('Why so many replicas are wanted.'),
      fixed: count.nullable().describe('Set by a person in place of the policy; null: the policy decides.'),
      capacityRps: z.number().nullable().describe('Requests per second of one replica, as told or learned.'),
      learned: z.boolean(),
    }),
    update: z
      .object({ revision: count, from: count.nullable(), sinceAt: instant, failures: count })
      .nullable()
      .describe('The update that goes on; null: none does.'),
    lastFailure: z.string().nullable(),
    lastPeriod: periodView.nullable(),
    load: z.object({
      periodS: z.number(),
      rps: z.array(z.number().nullable()).describe('Of the last monitoring periods, oldest first.'),
      requests: count,
      slow: count,
      failed: count,
    }),
    replicaList: z.array(replicaView),
    revisions: z.array(
      z.object({
        number: count,
        at: instant,
        by: z.string().nullable(),
        of: count.nullable(),
        command: z.array(z.string()),
      }),
    ),
    cost: z
      .object({
        totalUsd: z.number(),
        idleUsd: z.number().describe('Part of it for idle time.'),
        onDemandUsd: z.number().describe('What its work would have cost on demand.'),
        instanceHours: z.number(),
      })
      .describe('Of all its replicas since it began.'),
  })
  .meta({ id: 'Service' });
export type ServiceView = z.infer<typeof serviceView>;

export const applyAnswer = z
  .object({
    outcome: z.enum(['created', 'updated', 'unchanged']),
    service: serviceSummary,
    admission: admissionView.describe('Findings about a replica.'),
  })
  .meta({ id: 'ApplyAnswer' });
export type ApplyAnswer = z.infer<typeof applyAnswer>;

export const serviceAnswer = z.object({ service: serviceSummary }).meta({ id: 'ServiceAnswer' });
export type ServiceAnswer = z.infer<typeof serviceAnswer>;

export const serviceExplanation = z
  .object({
    name: z.string(),
    headline: z.string(),
    scaling: z.string(),
    replicas: z.array(
      z.object({
        number: count,
        phase: z.string(),
        detail: z.string().nullable(),
        explanation: explanationView
          .nullable()
          .describe('Of its job: where it runs and why; null: no plan has been made.'),
      }),
    ),
  })
  .meta({ id: 'ServiceExplanation' });
export type ServiceExplanationView = z.infer<typeof serviceExplanation>;
