/** Routes of services. */
import { z } from 'zod';
import type { Issue } from '../../kernel/errors.ts';
import { SERVICE_LIMITS, serviceFileSchema } from '../../domain/service-file/schema.ts';
import { ok, operation, type AnswerShape, type Operation } from '../operation.ts';
import { noQuery } from '../requests.ts';
import { check, refuse } from '../validate.ts';
import * as schema from './schemas.ts';
import { applyService, deleteService, explainService, listServices, scaleService, showService } from './services.ts';

const json = (description: string, shape: z.ZodType): AnswerShape => ({
  description,
  contentType: 'application/json',
  schema: shape,
});

const servicePath = z.strictObject({
  service: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be the name of a service')
    .describe('Name.')
    .meta({ example: 'web' }),
});

const serviceExample = {
  name: 'web',
  command: './serve',
  workdir: '/srv/web',
  resources: { cpu: 1, memory: '512MiB' },
  target: { latency: '1s', percent: 95 },
  capacity: { perReplica: '20 rps' },
  min: 2,
  max: 20,
  health: { path: '/healthz' },
};

const replicasBody = z.strictObject({
  replicas: z
    .int()
    .min(0)
    .max(SERVICE_LIMITS.replicas)
    .nullable()
    .describe('A fixed number; null: the scaling policy decides.'),
});

const base = { handler: 'api', query: noQuery } as const;
const ofService = { ...base, params: servicePath } as const;
const problems = [400, 404, 422];
const changing = [...problems, 409, 413, 415, 429];

export const SERVICE_OPERATIONS: readonly Operation[] = [
  operation({
    ...base,
    id: 'applyService',
    method: 'POST',
    path: '/api/services',
    summary: 'Make a service be as a file says.',
    description:
      'Creates it, or updates it: replicas of the new revision take the place of the others, and the earlier revision comes back if they do not get healthy. The same file again changes nothing.',
    params: z.strictObject({}),
    body: {
      schema: serviceFileSchema.meta({ id: 'ServiceFile' }),
      description: 'A service file as JSON.',
      examples: { service: serviceExample },
    },
    answers: {
      200: json('It was updated, or is as the file says already.', schema.applyAnswer),
      201: json('It was created.', schema.applyAnswer),
    },
    problems: changing,
    run: async ({ body, bodyText, caller }, backend) => {
      const answer = await applyService(backend, { body, bodyText, caller });
      return { status: answer.outcome === 'created' ? 201 : 200, body: answer };
    },
  }),
  operation({
    ...base,
    id: 'listServices',
    method: 'GET',
    path: '/api/services',
    summary: 'List services, by name.',
    params: z.strictObject({}),
    answers: { 200: json('The services.', schema.serviceList) },
    problems: [422],
    run: async (_call, backend) => ok(await listServices(backend)),
  }),
  operation({
    ...ofService,
    id: 'getService',
    method: 'GET',
    path: '/api/services/{service}',
    summary: 'One service with its replicas, load and cost.',
    answers: { 200: json('The service.', schema.serviceView) },
    problems,
    run: async ({ params }, backend) => ok(await showService(backend, params.service)),
  }),
  operation({
    ...ofService,
    id: 'explainService',
    method: 'GET',
    path: '/api/services/{service}/explain',
    summary: 'Why so many replicas, and why each is where it is.',
    answers: { 200: json('The reasons.', schema.serviceExplanation) },
    problems,
    run: async ({ params }, backend) => ok(await explainService(backend, params.service)),
  }),
  operation({
    ...ofService,
    id: 'scaleService',
    method: 'POST',
    path: '/api/services/{service}/scale',
    summary: 'Set the number of replicas, or let the scaling policy decide again.',
    body: { schema: replicasBody, description: '{"replicas": 3}', examples: { fixed: { replicas: 3 } } },
    answers: { 202: json('The controller will see to it.', schema.serviceAnswer) },
    problems: changing,
    run: async ({ params, body, caller }, backend) => {
      const issues: Issue[] = [];
      const { replicas } = check(replicasBody, body ?? {}, 'body', issues);
      refuse(issues, 'the request');
      return { status: 202, body: await scaleService(backend, params.service, { replicas, caller }) };
    },
  }),
  operation({
    ...ofService,
    id: 'deleteService',
    method: 'DELETE',
    path: '/api/services/{service}',
    summary: 'Drain and end all replicas, and forget the service.',
    answers: { 202: json('The controller will see to it.', schema.serviceAnswer) },
    problems: changing,
    run: async ({ params, caller }, backend) => ({
      status: 202,
      body: await deleteService(backend, params.service, caller),
    }),
  }),
];
