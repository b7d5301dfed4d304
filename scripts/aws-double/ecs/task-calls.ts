import { z } from 'zod';
import { tagsSchema } from './definitions.ts';

/** Inputs of calls about tasks: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_Operations.html */
const clusterName = z.string().default('default');
const startedBy = (longest: number) =>
  z
    .string()
    .max(longest, `startedBy has at most ${longest} characters`)
    .regex(/^[\w/-]+$/, 'startedBy has letters, numbers, - / _ only')
    .optional();

/** Limit of overrides: "A total of 8192 characters are allowed for overrides" (API_StartTask, API_RunTask). */
const OVERRIDES_CHARACTERS = 8192;
const overrides = z
  .strictObject({
    containerOverrides: z
      .array(
        z.strictObject({
          name: z.string(),
          command: z.array(z.string()).optional(),
          environment: z.array(z.strictObject({ name: z.string(), value: z.string() })).optional(),
          // Limits: "You can specify up to ten environment files. The file must have a .env file extension"
          // (API_EnvironmentFile).
          environmentFiles: z
            .array(
              z.strictObject({ type: z.literal('s3'), value: z.string().regex(/^arn:[\w-]+:s3:::[^/]+\/.+\.env$/) }),
            )
            .max(10)
            .optional(),
          cpu: z.int().optional(),
          memory: z.int().optional(),
          memoryReservation: z.int().optional(),
        }),
      )
      .max(1, 'the double runs tasks of one container')
      .default([]),
  })
  .prefault({})
  .refine(
    (o) => JSON.stringify(o).length <= OVERRIDES_CHARACTERS,
    `Container Overrides length must be at most ${OVERRIDES_CHARACTERS}`,
  );

const startable = {
  cluster: clusterName,
  taskDefinition: z.string(),
  overrides,
  group: z.string().optional(),
  tags: tagsSchema,
  propagateTags: z.enum(['TASK_DEFINITION', 'NONE']).default('NONE'),
  enableECSManagedTags: z.boolean().default(false),
  enableExecuteCommand: z.literal(false, 'the double executes no commands').default(false),
};
/** StartTask, without clientToken: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_StartTask.html */
export const startTask = z.strictObject({
  ...startable,
  containerInstances: z.array(z.string()).min(1).max(10),
  startedBy: startedBy(36),
});
export const runTask = z.strictObject({
  ...startable,
  clientToken: z.string().max(64).optional(),
  count: z.int().min(1).max(10).default(1),
  launchType: z.literal('EC2').default('EC2'),
  placementConstraints: z
    .array(z.strictObject({ type: z.literal('memberOf'), expression: z.string() }))
    .max(10)
    .default([]),
  startedBy: startedBy(128),
});
export type Startable = z.infer<typeof startTask> | z.infer<typeof runTask>;

export const stopTask = z.strictObject({
  cluster: clusterName,
  task: z.string(),
  reason: z.string().max(1024).default('Task stopped by user'),
});
export const describeTasks = z.strictObject({
  cluster: clusterName,
  tasks: z.array(z.string()).min(1).max(100),
  include: z.array(z.literal('TAGS')).default([]),
});
export const listTasks = z.strictObject({
  cluster: clusterName,
  containerInstance: z.string().optional(),
  family: z.string().optional(),
  startedBy: z.string().optional(),
  desiredStatus: z.enum(['RUNNING', 'PENDING', 'STOPPED']).default('RUNNING'),
  launchType: z.literal('EC2').optional(),
  maxResults: z.int().min(1).max(100).default(100),
  nextToken: z.string().optional(),
});
export const tagResource = z.strictObject({ resourceArn: z.string(), tags: tagsSchema });
