/** Every route of the API, once: what is served, checked and documented. */
import { z } from 'zod';
import { costReport, jobCost } from './costs.ts';
import { cancelJob } from './cancel.ts';
import { listInstances, listPools } from './capacity.ts';
import { forecastDrift, listForecasts } from './forecasts.ts';
import { LAST_EVENT_HEADER, streamEvents } from './events.ts';
import { batchExample, jobExample, jobFileBody } from './job-input.ts';
import { listJobs, showHealth, showJob, explainJob, listPlans } from './jobs.ts';
import { readLogs } from './logs.ts';
import { ok, operation, type AnswerShape, type Operation } from './operation.ts';
import * as request from './requests.ts';
import * as schema from './schemas.ts';
import { jobsOfBatch, keyOf, submitBatch, submitJob } from './submit.ts';
import { listAttempts, listTasks } from './tasks.ts';

const json = (description: string, shape: z.ZodType, example?: unknown): AnswerShape => ({
  description,
  contentType: 'application/json',
  schema: shape,
  ...(example === undefined ? {} : { example }),
});
const NO_PARAMS = z.strictObject({});
const { jobPath, noQuery } = request;

const idempotency = z.object({
  'Idempotency-Key': request.idempotencyKey.optional(),
});
const PROVIDES_JOB = { job: '$response.body#/job/id' };
const location = z.object({ location: z.string().describe('Path of the job.') });

export const INTAKE_OPERATIONS: readonly Operation[] = [
  operation({
    id: 'submitJob',
    handler: 'intake',
    method: 'POST',
    path: request.JOBS_PATH,
    summary: 'Submit a job.',
    description: 'The answer is sent when the job is durable. With an `Idempotency-Key`, sending it again is safe.',
    params: NO_PARAMS,
    query: noQuery,
    headers: idempotency,
    body: { schema: jobFileBody, description: 'A job file as JSON.', examples: { job: jobExample } },
    answers: {
      201: { ...json('The job was created.', schema.submitAnswer), headers: location, provides: PROVIDES_JOB },
      200: {
        ...json('The same key with the same body was here before.', schema.submitAnswer),
        headers: location,
        provides: PROVIDES_JOB,
      },
    },
    problems: [400, 409, 413, 415, 422, 429],
    run: async (call, backend) => {
      const answer = await submitJob(backend, call.body, keyOf(call.header('idempotency-key')), call.bodyText);
      return {
        status: answer.outcome === 'created' ? 201 : 200,
        body: answer,
        headers: { location: `/api/jobs/${answer.job.id}` },
      };
    },
  }),
  operation({
    id: 'submitJobs',
    handler: 'intake',
    method: 'POST',
    path: request.BATCH_PATH,
    summary: `Submit up to ${request.MAX_BATCH_JOBS} jobs, each for itself.`,
    description:
      'One outcome per job, in order; a refused job does not hold up the others. A job may depend on an earlier one of the batch by name.',
    params: NO_PARAMS,
    query: noQuery,
    headers: idempotency,
    body: {
      schema: request.batchEnvelope.extend({
        jobs: z
          .array(jobFileBody)
          .min(1)
          .max(request.MAX_BATCH_JOBS)
          .describe('Job files. With an Idempotency-Key, job number i is known as `key/i`.'),
      }),
      description: '{"jobs": [...]}',
      examples: { batch: batchExample },
    },
    answers: { 200: json('What became of each job.', schema.batchAnswer) },
    problems: [400, 413, 415, 429],
    run: async (call, backend) => {
      const key = keyOf(call.header('idempotency-key'));
      return ok(await submitBatch(backend, jobsOfBatch(call.body), { key, id: call.requestId }));
    },
  }),
];

const cancel = {
  handler: 'api',
  summary: 'Ask to cancel a job.',
  description: 'Tasks get their checkpoint signal and grace. Asking again changes nothing.',
  params: jobPath,
  query: noQuery,
  answers: { 202: json('The engine will end it, or it is cancelled already.', schema.cancelAnswer) },
  problems: [404, 409, 410, 413, 415],
} as const;

export const API_OPERATIONS: readonly Operation[] = [
  operation({
    id: 'listJobs',
    handler: 'api',
    method: 'GET',
    path: '/api/jobs',
    summary: 'List jobs, newest first.',
    params: NO_PARAMS,
    query: request.jobsQuery,
    answers: { 200: json('A page of jobs.', schema.jobList) },
    problems: [],
    run: async ({ query }, backend) => ok(await listJobs(backend, query)),
  }),
  operation({
    id: 'getJob',
    handler: 'api',
    method: 'GET',
    path: '/api/jobs/{job}',
    summary: 'One job with its stages.',
    params: jobPath,
    query: noQuery,
    answers: { 200: json('The job.', schema.jobView) },
    problems: [404, 409, 410],
    run: async ({ params }, backend) => ok(await showJob(backend, params.job)),
  }),
  operation({
    ...cancel,
    id: 'deleteJob',
    method: 'DELETE',
    path: '/api/jobs/{job}',
    run: async ({ params }, backend) => ({ status: 202, body: await cancelJob(backend, params.job) }),
  }),
  operation({
    ...cancel,
    id: 'cancelJob',
    method: 'POST',
    path: '/api/jobs/{job}/cancel',
    run: async ({ params }, backend) => ({ status: 202, body: await cancelJob(backend, params.job) }),
  }),
  operation({
    id: 'listTasks',
    handler: 'api',
    method: 'GET',
    path: '/api/jobs/{job}/tasks',
    summary: 'Tasks of a job, those never tried included.',
    params: jobPath,
    query: request.tasksQuery,
    answers: { 200: json('A page of tasks.', schema.taskList) },
    problems: [404, 409, 410],
    run: async ({ params, query }, backend) => ok(await listTasks(backend, params.job, query)),
  }),
  operation({
    id: 'listAttempts',
    handler: 'api',
    method: 'GET',
    path: '/api/jobs/{job}/attempts',
    summary: 'Attempts of a job, oldest first.',
    params: jobPath,
    query: request.attemptsQuery,
    answers: { 200: json('A page of attempts.', schema.attemptList) },
    problems: [404, 409, 410],
    run: async ({ params, query }, backend) => ok(await listAttempts(backend, params.job, query)),
  }),
  operation({
    id: 'explainJob',
    handler: 'api',
    method: 'GET',
    path: '/api/jobs/{job}/explain',
    summary: 'Why the job is where it is, and what was considered.',
    params: jobPath,
    query: noQuery,
    answers: { 200: json('The latest explanation.', schema.explanationView) },
    problems: [404, 409, 410],
    run: async ({ params }, backend) => ok(await explainJob(backend, params.job)),
  }),
  operation({
    id: 'getJobCost',
    handler: 'api',
    method: 'GET',
    path: '/api/jobs/{job}/cost',
    summary: 'What the job has cost until now, per pool.',
    params: jobPath,
    query: noQuery,
    answers: { 200: json('Settled and accrued cost.', schema.jobCostView) },
    problems: [404, 409, 410],
    run: async ({ params }, backend) => ok(await jobCost(backend, params.job)),
  }),
  operation({
    id: 'readLogs',
    handler: 'api',
    method: 'GET',
    path: '/api/jobs/{job}/logs',
    summary: 'A range of what an attempt wrote.',
    description: 'To follow, ask again with `offset` set to `nextOffset`.',
    params: jobPath,
    query: request.logsQuery,
    answers: { 200: json('The range.', schema.logView) },
    problems: [404, 409, 410],
    run: async ({ params, query }, backend) => ok(await readLogs(backend, params.job, query)),
  }),
  operation({
    id: 'getCosts',
    handler: 'api',
    method: 'GET',
    path: '/api/costs',
    summary: 'What everything has cost until now.',
    params: NO_PARAMS,
    query: request.costsQuery,
    answers: { 200: json('One row per job, owner, pool or template.', schema.costReport) },
    problems: [],
    run: async ({ query }, backend) => ok(await costReport(backend, query.by)),
  }),
  operation({
    id: 'listPools',
    handler: 'api',
    method: 'GET',
    path: '/api/pools',
    summary: 'Pools and their prices now.',
    params: NO_PARAMS,
    query: request.poolsQuery,
    answers: { 200: json('A page of pools.', schema.poolList) },
    problems: [],
    run: async ({ query }, backend) => ok(await listPools(backend, query)),
  }),
  operation({
    id: 'listForecasts',
    handler: 'api',
    method: 'GET',
    path: '/api/forecasts',
    summary: 'How likely each spot pool is to be lost within a time, for the bids that decisions try.',
    params: NO_PARAMS,
    query: request.forecastsQuery,
    answers: { 200: json('A page of pools.', schema.forecastList) },
    problems: [],
    run: async ({ query }, backend) => ok(await listForecasts(backend, query)),
  }),
  operation({
    id: 'getForecastDrift',
    handler: 'api',
    method: 'GET',
    path: '/api/forecasts/drift',
    summary: 'Whether spot instances are interrupted as often as was forecast when they were bought.',
    description:
      'Of the instances that are held or still known, in all and by pool. Capacity and price are in both, unless it is asked of capacity alone.',
    params: NO_PARAMS,
    query: request.driftQuery,
    answers: { 200: json('What was forecast, and what came.', schema.driftView) },
    problems: [],
    run: async ({ query }, backend) => ok(await forecastDrift(backend, query)),
  }),
  operation({
    id: 'listInstances',
    handler: 'api',
    method: 'GET',
    path: '/api/instances',
    summary: 'Instances, newest first.',
    params: NO_PARAMS,
    query: request.instancesQuery,
    answers: { 200: json('A page of instances.', schema.instanceList) },
    problems: [],
    run: async ({ query }, backend) => ok(await listInstances(backend, query)),
  }),
  operation({
    id: 'listPlans',
    handler: 'api',
    method: 'GET',
    path: '/api/plans',
    summary: 'Plans, newest first, with what each did and why.',
    params: NO_PARAMS,
    query: request.plansQuery,
    answers: { 200: json('A page of plans.', schema.planList) },
    problems: [],
    run: async ({ query }, backend) => ok(await listPlans(backend, query)),
  }),
  operation({
    id: 'streamEvents',
    handler: 'api',
    method: 'GET',
    path: '/api/events',
    summary: 'What happened, as server-sent events.',
    description:
      'Behind API Gateway each answer is one batch and the client reconnects after `retry`; in local mode the connection stays open. The data of each event is an Event as JSON.',
    params: NO_PARAMS,
    query: request.eventsQuery,
    headers: z.object({
      'Last-Event-ID': z
        .string()
        .regex(/^\d{1,15}$/)
        .optional()
        .describe('Id of the last event seen.'),
    }),
    answers: {
      200: {
        description: 'Events after the last one seen.',
        contentType: 'text/event-stream',
        // OpenAPI 3.1 describes a whole body; readers of streams take this for each event, which is no string.
        schema: z.unknown().describe('Server-sent events: `id` is the sequence number, `data` an Event as JSON.'),
        headers: z.object({ [LAST_EVENT_HEADER]: z.string() }),
      },
    },
    problems: [404, 409, 410],
    run: ({ query, header }, backend) => streamEvents(backend, query, header('last-event-id')),
  }),
  operation({
    id: 'getHealth',
    handler: 'api',
    method: 'GET',
    path: '/api/health',
    summary: 'Whether the engine works, and on which market.',
    params: NO_PARAMS,
    query: noQuery,
    answers: { 200: json('The engine answers; `status` says how it is.', schema.healthView) },
    problems: [],
    run: async (_call, backend) => ok(await showHealth(backend)),
  }),
  operation({
    id: 'getOpenApi',
    handler: 'api',
    method: 'GET',
    path: '/api/openapi.json',
    summary: 'This description.',
    params: NO_PARAMS,
    query: noQuery,
    answers: { 200: json('OpenAPI 3.1.', z.record(z.string(), z.unknown())) },
    problems: [],
    run: async () => ok((await import('./openapi.ts')).openApiDocument(OPERATIONS)),
  }),
];

export const OPERATIONS: readonly Operation[] = [...INTAKE_OPERATIONS, ...API_OPERATIONS];
