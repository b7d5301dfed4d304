import { z } from 'zod';
import { action, type Actions } from '../api.ts';
import { AwsFault } from '../fault.ts';
import { nowMs, type Place } from '../place.ts';

export const tagsSchema = z
  .array(z.strictObject({ key: z.string().min(1).max(128), value: z.string().max(256).default('') }))
  .max(50, 'at most 50 tags')
  .default([]);
export type Tags = z.infer<typeof tagsSchema>;

const pair = z.strictObject({ name: z.string(), value: z.string() });

/** Used parts of a container; the rest is kept as it came. */
const container = z.looseObject({
  name: z.string().min(1),
  image: z.string().min(1),
  command: z.array(z.string()).optional(),
  entryPoint: z.array(z.string()).optional(),
  environment: z.array(pair).default([]),
  cpu: z.number().optional(),
  memory: z.number().optional(),
  memoryReservation: z.number().optional(),
  /** Limit of Fargate: "The max stop timeout value is 120 seconds"; the double keeps to it on EC2 as well. */
  stopTimeout: z.number().min(2).max(120).optional(),
  linuxParameters: z.looseObject({ initProcessEnabled: z.boolean().optional() }).optional(),
  logConfiguration: z
    .looseObject({ logDriver: z.string(), options: z.record(z.string(), z.string()).default({}) })
    .optional(),
  portMappings: z
    .array(
      z.strictObject({
        containerPort: z.number().int().min(1).max(65_535),
        hostPort: z.literal(0, 'the double chooses host ports itself').default(0),
        protocol: z.literal('tcp').default('tcp'),
      }),
    )
    .max(1, 'the double maps one port')
    .default([]),
  resourceRequirements: z.array(z.strictObject({ type: z.string(), value: z.string() })).default([]),
});
export type ContainerDefinition = z.infer<typeof container>;

const register = z.looseObject({
  family: z.string().regex(/^[a-zA-Z0-9_-]{1,255}$/),
  containerDefinitions: z.tuple([container], 'the double runs tasks of one container'),
  networkMode: z.enum(['bridge', 'host', 'none'], 'the double has no awsvpc network').optional(),
  cpu: z.string().optional(),
  memory: z.string().optional(),
  tags: tagsSchema,
});

export interface TaskDefinition {
  readonly arn: string;
  readonly family: string;
  readonly revision: number;
  readonly container: ContainerDefinition;
  readonly cpu: string | undefined;
  readonly memory: string | undefined;
  readonly tags: Tags;
  readonly registeredMs: number;
  readonly asked: Readonly<Record<string, unknown>>;
}

const describe = z.strictObject({ taskDefinition: z.string(), include: z.array(z.literal('TAGS')).default([]) });

/** Task definitions. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_definition_parameters.html */
export class Definitions {
  readonly #place: Place;
  readonly #byFamily = new Map<string, TaskDefinition[]>();

  constructor(place: Place) {
    this.#place = place;
  }

  readonly actions: Actions<object> = {
    RegisterTaskDefinition: action(register, (asked) => {
      const definition = this.#register(asked);
      return { taskDefinition: shown(definition), tags: definition.tags };
    }),
    DescribeTaskDefinition: action(describe, (asked) => {
      const definition = this.find(asked.taskDefinition);
      if (definition === undefined) throw new AwsFault('ClientException', 'Unable to describe task definition.');
      return { taskDefinition: shown(definition), tags: asked.include.length > 0 ? definition.tags : undefined };
    }),
  };

  /** Definition by `family`, `family:revision` or ARN; without a revision the latest. */
  find(name: string): TaskDefinition | undefined {
    const [family = '', revision] = name.replace(/^arn:aws:ecs:[^/]*:task-definition\//, '').split(':');
    const revisions = this.#byFamily.get(family);
    return revision === undefined ? revisions?.at(-1) : revisions?.find((d) => d.revision === Number(revision));
  }

  #register(asked: z.infer<typeof register>): TaskDefinition {
    const [only] = asked.containerDefinitions;
    if ((only.memory ?? only.memoryReservation ?? asked.memory) === undefined) {
      // https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_definition_parameters.html#container_definition_memory
      throw new AwsFault(
        'ClientException',
        `Invalid setting for container '${only.name}'. At least one of 'memory' or 'memoryReservation' must be specified.`,
      );
    }
    const revisions = this.#byFamily.get(asked.family) ?? [];
    const revision = revisions.length + 1;
    const { tags, ...rest } = asked;
    const definition: TaskDefinition = {
      arn: `arn:aws:ecs:${this.#place.region}:${this.#place.account}:task-definition/${asked.family}:${revision}`,
      family: asked.family,
      revision,
      container: only,
      cpu: asked.cpu,
      memory: asked.memory,
      tags,
      registeredMs: nowMs(this.#place),
      asked: rest,
    };
    this.#byFamily.set(asked.family, [...revisions, definition]);
    return definition;
  }
}

const shown = (definition: TaskDefinition): object => ({
  ...definition.asked,
  taskDefinitionArn: definition.arn,
  revision: definition.revision,
  status: 'ACTIVE',
  registeredAt: new Date(definition.registeredMs),
});
