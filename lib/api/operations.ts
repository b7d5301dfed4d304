/** All routes of the API, each written once: served, checked and documented from here. */
import { z } from 'zod';
import { costReport, jobCost } from './costs.ts';
import { cancelJob, releaseJob } from './cancel.ts';
import { listInstances, listPools } from './pools-and-instances.ts';
import { forecastDrift, listForecasts } from './forecasts.ts';
import { listFailures } from './failures.ts';
import { LAST_EVENT_HEADER, streamEvents } from './events.ts';
import { batchExample, jobExample, jobFileBody } from './job-input.ts';
import { listJobs, showHealth, showRoot, showJob, explainJob, listPlans } from './jobs.ts';
import { readLogs } from './logs.ts';
import { showNeighbours } from './neighbours.ts';
import { ok, operation, type AnswerShape, type Operation } from './operation.ts';
import * as request from './requests.ts';
import * as schema from './schemas.ts';
import { SERVICE_OPERATIONS } from './services/operations.ts';
import { batchOf, keyOf, submitBatch, submitJob } from './submit.ts';
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
      const { caller, bodyText } = call;
      const key = keyOf(call.header('idempotency-key'));
      const answer = await submitJob(backend, call.body, { key, caller, bodyText });
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
      'One outcome per job, in order; a refused job does not stop the others. A job may depend on an earlier one of the batch by name. Sending it again under the same keys is safe: existing jobs are answered as repeated. In the answers to very large batches some notes and findings are left out.',
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
    answers: { 200: json('The outcome of each job.', schema.batchAnswer) },
    problems: [400, 413, 415, 429],
    run: async (call, backend) => {
      const key = keyOf(call.header('idempotency-key'));
      const { requestId: id, caller } = call;
      return ok(await submitBatch(backend, batchOf(call.body, key), { id, caller }));
    },
  }),
];

/** Common part of read operations. */
const question = { handler: 'api', method: 'GET', params: NO_PARAMS, problems: [] } as const;
const ofJob = { ...question, params: jobPath, problems: [404, 409, 410] } as const;

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
  ...SERVICE_OPERATIONS,
  operation({
    id: 'getRoot',
    ...question,
    path: '/',
    summary: 'Where to go from here.',
    query: noQuery,
    answers: { 200: json('Links, relative to this address.', schema.rootView) },
    run: async (_call, backend) => ok(await showRoot(backend)),
  }),
  operation({
    id: 'listJobs',
    ...question,
    path: '/api/jobs',
    summary: 'List jobs, newest first.',
    query: request.jobsQuery,
    answers: { 200: json('A page of jobs.', schema.jobList) },
    run: async ({ query }, backend) => ok(await listJobs(backend, query)),
  }),
  operation({
    id: 'getJob',
    ...ofJob,
    path: '/api/jobs/{job}',
    summary: 'One job with its stages.',
    query: noQuery,
    answers: { 200: json('The job.', schema.jobView) },
    run: async ({ params }, backend) => ok(await showJob(backend, params.job)),
  }),
  operation({
    ...cancel,
    id: 'deleteJob',
    method: 'DELETE',
    path: '/api/jobs/{job}',
    run: async ({ params, caller }, backend) => ({
      status: 202,
      body: await cancelJob(backend, params.job, caller),
    }),
  }),
  operation({
    ...cancel,
    id: 'cancelJob',
    method: 'POST',
    path: '/api/jobs/{job}/cancel',
    run: async ({ params, caller }, backend) => ({
      status: 202,
      body: await cancelJob(backend, params.job, caller),
    }),
  }),
  operation({
    id: 'releaseJob',
    handler: 'api',
    method: 'POST',
    path: '/api/jobs/{job}/release',
    summary: 'Ask to decide on a held job again.',
    description: 'A job is held when no decision can be made for it. Should that be so again, it is held again.',
    params: jobPath,
    query: noQuery,
    answers: { 202: json('The engine will decide on it again.', schema.releaseAnswer) },
    problems: [404, 409, 410, 413, 415],
    run: async ({ params, caller }, backend) => ({
      status: 202,
      body: await releaseJob(backend, params.job, caller),
    }),
  }),
  operation({
    id: 'listTasks',
    ...ofJob,
    path: '/api/jobs/{job}/tasks',
    summary: 'Tasks of a job, those never tried included.',
    query: request.tasksQuery,
    answers: { 200: json('A page of tasks.', schema.taskList) },
    run: async ({ params, query }, backend) => ok(await listTasks(backend, params.job, query)),
  }),
  operation({
    id: 'listAttempts',
    ...ofJob,
    path: '/api/jobs/{job}/attempts',
    summary: 'Attempts of a job, oldest first.',
    query: request.attemptsQuery,
    answers: { 200: json('A page of attempts.', schema.attemptList) },
    run: async ({ params, query }, backend) => ok(await listAttempts(backend, params.job, query)),
  }),
  operation({
    id: 'explainJob',
    ...ofJob,
    path: '/api/jobs/{job}/explain',
    summary: 'Reasons for the state of the job, and the considered offers.',
    query: noQuery,
    answers: { 200: json('The latest explanation.', schema.explanationView) },
    run: async ({ params }, backend) => ok(await explainJob(backend, params.job)),
  }),
  operation({
    id: 'getJobCost',
    ...ofJob,
    path: '/api/jobs/{job}/cost',
    summary: 'What the job has cost until now, per pool.',
    query: noQuery,
    answers: { 200: json('Settled and accrued cost.', schema.jobCostView) },
    run: async ({ params }, backend) => ok(await jobCost(backend, params.job)),
  }),
  operation({
    id: 'listFailures',
    ...ofJob,
    path: '/api/jobs/{job}/failures',
    summary: 'Why tasks of the job failed: exit status, signal, missing output, last lines of standard error.',
    description: 'Tasks whose last attempt failed, those that are tried again included. Interruptions are no failures.',
    query: request.failuresQuery,
    answers: { 200: json('The failures.', schema.failureList) },
    run: async ({ params, query }, backend) => ok(await listFailures(backend, params.job, query)),
  }),
  operation({
    id: 'readLogs',
    ...ofJob,
    path: '/api/jobs/{job}/logs',
    summary: 'A range of what an attempt wrote.',
    description: 'To follow, ask again with `offset` set to `nextOffset`.',
    query: request.logsQuery,
    answers: { 200: json('The range.', schema.logView) },
    run: async ({ params, query }, backend) => ok(await readLogs(backend, params.job, query)),
  }),
  operation({
    id: 'getCosts',
    ...question,
    path: '/api/costs',
    summary: 'What everything has cost until now, in pages.',
    query: request.costsQuery,
    answers: { 200: json('A page with one row per job, owner, caller, pool or template.', schema.costReport) },
    run: async ({ query }, backend) => ok(await costReport(backend, query)),
  }),
  operation({
    id: 'listPools',
    ...question,
    path: '/api/pools',
    summary: 'Pools and their prices now.',
    query: request.poolsQuery,
    answers: { 200: json('A page of pools.', schema.poolList) },
    run: async ({ query }, backend) => ok(await listPools(backend, query)),
  }),
  operation({
    id: 'listForecasts',
    ...question,
    path: '/api/forecasts',
    summary: 'How likely each spot pool is to be lost within a time, for the bids that decisions try.',
    query: request.forecastsQuery,
    answers: { 200: json('A page of pools.', schema.forecastList) },
    run: async ({ query }, backend) => ok(await listForecasts(backend, query)),
  }),
  operation({
    id: 'getForecastDrift',
    ...question,
    path: '/api/forecasts/drift',
    summary: 'Whether spot instances are interrupted as often as was forecast when they were bought.',
    description:
      'Of the instances that are held or still known, in all and by pool. Capacity and price are in both, unless it is asked of capacity alone.',
    query: request.driftQuery,
    answers: { 200: json('Interruptions, forecast and observed.', schema.driftView) },
    run: async ({ query }, backend) => ok(await forecastDrift(backend, query)),
  }),
  operation({
    id: 'listInstances',
    ...question,
    path: '/api/instances',
    summary: 'Instances, newest first.',
    query: request.instancesQuery,
    answers: { 200: json('A page of instances.', schema.instanceList) },
    run: async ({ query }, backend) => ok(await listInstances(backend, query)),
  }),
  operation({
    id: 'listPlans',
    ...question,
    path: '/api/plans',
    summary: 'Plans, newest first, with what each did and why.',
    query: request.plansQuery,
    answers: { 200: json('A page of plans.', schema.planList) },
    run: async ({ query }, backend) => ok(await listPlans(backend, query)),
  }),
  operation({
    id: 'showNeighbours',
    ...question,
    path: '/api/neighbours',
    summary: 'What was learned of programs that share machines.',
    query: request.neighboursQuery,
    answers: { 200: json('Groups of programs, and how well they share machines.', schema.neighboursView) },
    run: async ({ query }, backend) => ok(await showNeighbours(backend, query)),
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
        // OpenAPI 3.1 describes a whole body; stream readers apply this schema to each event, which is not a string.
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
    ...question,
    path: '/api/openapi.json',
    summary: 'This description.',
    query: noQuery,
    answers: { 200: json('OpenAPI 3.1.', z.record(z.string(), z.unknown())) },
    run: async () => ok((await import('./openapi.ts')).openApiDocument(OPERATIONS)),
  }),
];

export const OPERATIONS: readonly Operation[] = [...INTAKE_OPERATIONS, ...API_OPERATIONS];
