import { z } from 'zod';
import { once } from '../../kernel/once.ts';
import { epochMs, isPositive, raw, type EpochMs, type Quantity, type Seconds } from '../../kernel/units.ts';
import { LABEL_KEY } from '../labels.ts';
import { SECRET_REF } from '../secret-ref.ts';
import {
  ALLOWED_CPU,
  ALLOWED_DURATION,
  ALLOWED_SIZE,
  CPU_PATTERN,
  DURATION_PATTERN,
  parseCpu,
  parseDuration,
  parseSize,
  SIZE_PATTERN,
} from './amounts.ts';
import { GLOB_LIMITS, globFault, globSize } from '../globs.ts';
import { expandIndex } from './index-expansion.ts';

/*
 * The job file, key by key. The input form of this schema is what people write, what editors check (JSON Schema) and
 * what the API takes; its output has units resolved. Defaults are applied by lib/domain/job-file/normalise.ts, because
 * a key missing in a stage comes from the top of the file first; `default` below documents them.
 */

export const LIMITS = {
  stages: 100,
  tasksPerStage: 10_000,
  retries: 100,
  listEntries: 256,
  preferences: 32,
  slowdown: 100,
  /**
   * Zones, types and families that all constraints and preferences of a file name: each is compared with every pool.
   */
  constraintEntries: 2000,
  /**
   * Characters of inputs and outputs of all stages together, braces written out; a pattern at the top counts for each
   * stage.
   */
  patternCharacters: 4_194_304,
  textLength: 65_536,
  /** Ten years: beyond it a duration is a slip of the pen. */
  durationS: 3650 * 86_400,
  /** EC2's interruption notice: no grace period outlasts it. */
  graceS: 120,
} as const;

const isWithin = (q: Quantity<string>, min: number, max: number): boolean => raw(q) >= min && raw(q) <= max;

/** Most secrets of one stage: each costs the agent a call before the program starts. */
const MAX_SECRETS = 64;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** Docker's form of image names: registry, path, tag or digest. */
const IMAGE_NAME = /^[\w][\w.:/@-]{0,254}$/;
const STAGE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
const OWNER = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/;
/**
 * Users' names must not begin with `EBB_`: those tell a task its identity, and steer the entrypoint on AWS. The
 * exceptions are the two settings of docs/running-on-aws.md. Lower-case ones are variables of that entrypoint.
 */
const ENV_KEY = /^(?!__proto__$)(?!(?!EBB_AWS_CLI$|EBB_CHECKPOINT_SYNC$)[Ee][Bb][Bb]_)[A-Za-z_][A-Za-z0-9_]{0,255}$/;
/** The two settings are no secrets. */
const SECRET_KEY = /^(?!__proto__$)(?![Ee][Bb][Bb]_)[A-Za-z_][A-Za-z0-9_]{0,255}$/;
const ENV_KEY_RULE =
  'a name of letters, digits and _ that does not begin with EBB_ (those are Ebbtide’s; yours to set are EBB_AWS_CLI and EBB_CHECKPOINT_SYNC)';
// oxlint-disable-next-line no-control-regex -- NUL ends a text in the operating system's calls.
const WITHOUT_NUL = /^[^\u0000]*$/;
/** Relative, below the working directory, without NUL. */
// oxlint-disable-next-line no-control-regex -- as above
const GLOB = /^(?![/\\~]|[A-Za-z]:)(?!(?:.*[/\\])?\.\.(?:[/\\]|$))[^\u0000]+$/s;

const text = (allowed: string, pattern: RegExp): z.ZodString =>
  z.string({ error: `must be ${allowed}` }).regex(pattern, { error: `must be ${allowed}` });

const plainText = text('a text without NUL', WITHOUT_NUL).max(LIMITS.textLength);

const amount = <T extends Quantity<string>>(
  of: { readonly allowed: string; readonly pattern: RegExp; readonly isNumberAllowed: boolean },
  parse: (value: string | number) => T | null,
  isAllowed: (value: T) => boolean,
) => {
  const error = `must be ${of.allowed}`;
  const written = z.string({ error }).regex(of.pattern, { error });
  const input = of.isNumberAllowed
    ? z.union([z.number({ error }).nonnegative({ error }), written], { error })
    : written;
  return (input as z.ZodType<string | number, string | number>).transform((value, context): T => {
    const parsed = parse(value);
    if (parsed !== null && isAllowed(parsed)) return parsed;
    context.issues.push({ code: 'custom', message: error, input: value });
    return z.NEVER;
  });
};

const DURATION = { pattern: DURATION_PATTERN, isNumberAllowed: true };
const MORE_THAN_0 = ', more than 0 and at most 10 years';
/** A duration within (0, ten years]. */
const duration = amount<Seconds>(
  { ...DURATION, allowed: ALLOWED_DURATION + MORE_THAN_0 },
  parseDuration,
  (d) => isPositive(d) && isWithin(d, 0, LIMITS.durationS),
);
const grace = amount<Seconds>(
  { ...DURATION, allowed: `${ALLOWED_DURATION}, at most ${LIMITS.graceS}s` },
  parseDuration,
  (d) => isWithin(d, 0, LIMITS.graceS),
);

const size = amount(
  { allowed: `${ALLOWED_SIZE}, at most 1024TiB`, pattern: SIZE_PATTERN, isNumberAllowed: false },
  (v) => parseSize(String(v)),
  (m) => isWithin(m, 0, 2 ** 30),
);
const memory = amount(
  { allowed: `${ALLOWED_SIZE}, from 1MiB to 1024TiB`, pattern: SIZE_PATTERN, isNumberAllowed: false },
  (v) => parseSize(String(v)),
  (m) => isWithin(m, 1, 2 ** 30),
);
const cpu = amount(
  { allowed: `${ALLOWED_CPU}, from 1m to 10000`, pattern: CPU_PATTERN, isNumberAllowed: true },
  parseCpu,
  (c) => isWithin(c, 1, 10_000_000),
);

const DEADLINE_ERROR = `must be ${ALLOWED_DURATION}${MORE_THAN_0}, or a time with its zone such as 2026-11-21T18:00:00+01:00`;
const instant = z.iso.datetime({ offset: true, error: DEADLINE_ERROR });
const instantToTheMinute = z.iso.datetime({ offset: true, precision: -1, error: DEADLINE_ERROR });
const deadline = z
  .union([z.number(), z.string().regex(DURATION_PATTERN), instant, instantToTheMinute], { error: DEADLINE_ERROR })
  .transform((value, context): { readonly afterS: Seconds } | { readonly atMs: EpochMs } => {
    const afterS = parseDuration(value);
    if (afterS !== null && isPositive(afterS) && isWithin(afterS, 0, LIMITS.durationS)) return { afterS };
    const atMs = typeof value === 'string' && afterS === null ? Date.parse(value) : NaN;
    if (Number.isFinite(atMs)) return { atMs: epochMs(atMs) };
    context.issues.push({ code: 'custom', message: DEADLINE_ERROR, input: value });
    return z.NEVER;
  });

/** A single entry needs no brackets. */
const listOf = <T extends z.ZodType>(entry: T, allowed: string, most: number = LIMITS.listEntries) =>
  z
    .union([entry, z.array(entry).max(most)], { error: `must be ${allowed}, or a list of them` })
    .transform((v) => (Array.isArray(v) ? v : [v]) as z.output<T>[]);

const scalarText = z
  .union([plainText, z.number(), z.boolean()], { error: 'must be a text, a number or true or false' })
  .transform(String);

const dollars = (what: string): z.ZodNumber => z.number({ error: `must be ${what} in US dollars` }).max(1e9);

const constraintShape = {
  arch: listOf(z.enum(['x86_64', 'arm64']), 'x86_64 or arm64')
    .optional()
    .describe('Processor architectures.'),
  zones: listOf(text('a zone such as us-east-1a', /^[A-Za-z0-9*-]{1,64}$/), 'a zone such as us-east-1a')
    .optional()
    .describe('Availability zones; `*` stands for any characters.'),
  instanceTypes: listOf(
    text('an instance type such as c5.large', /^[A-Za-z0-9.*-]{1,64}$/),
    'an instance type such as c5.large',
  )
    .optional()
    .describe('Instance types; `*` stands for any characters: `c5.*`.'),
  families: listOf(text('a family such as c5', /^[A-Za-z0-9*-]{1,64}$/), 'a family such as c5')
    .optional()
    .describe('Instance families; `*` stands for any characters: `c*`.'),
  purchaseOptions: listOf(z.enum(['spot', 'on-demand', 'reserved']), 'spot, on-demand or reserved')
    .optional()
    .describe('Ways of buying capacity.'),
  labels: z
    .record(text('1 to 63 letters, digits, ., _, - or /', LABEL_KEY), listOf(scalarText, 'a value of the label'))
    .refine((l) => Object.keys(l).length <= 8, { error: 'must have at most 8 entries' })
    .optional()
    .describe(
      'Labels of machines of your own (`--cluster`), each with one value or several: `rack: [rack-1, rack-2]`.',
    ),
  minGeneration: z.int().min(1).max(99).optional().describe('Oldest generation: 5 allows `c5` and `c6g`, not `c4`.'),
};

const constraints = z.strictObject(constraintShape);
const domain = z.enum(['zone', 'instance'], { error: 'must be zone or instance' });
const labelKey = text('1 to 63 letters, digits, ., _, - or /', LABEL_KEY);
const labelRules = listOf(
  z.strictObject({
    over: domain.describe('What is counted as one place: a `zone` or an `instance`.'),
    labels: z
      .record(labelKey, scalarText)
      .refine((l) => Object.keys(l).length >= 1 && Object.keys(l).length <= 8, { error: 'must have 1 to 8 entries' })
      .describe('Labels of jobs of the same owner: a job with all of them is meant.'),
  }),
  'an object with `over` (zone or instance) and `labels` (1 to 8 of them)',
  8,
);
const placement = z.strictObject({
  maxPerInstance: z.int().min(1).max(100_000).optional().describe('Most tasks of the stage on one instance.'),
  spread: listOf(
    z.strictObject({
      over: domain.describe('Over `zone`s or `instance`s.'),
      maxSkew: z.int().min(1).max(100_000).optional().meta({
        description:
          'Tasks that one place may have more than the allowed place with the fewest. As an instance can be bought any time, no instance has more than this.',
        default: 1,
      }),
    }),
    'an object with `over` (zone or instance) and `maxSkew` (1 or more)',
    2,
  )
    .optional()
    .describe('Even numbers of tasks of the stage in all zones that it may use, or on instances.'),
  affinity: labelRules
    .optional()
    .describe(
      'Tasks start only where a task with these labels is. Where there is none yet, a job that has the labels itself begins anywhere.',
    ),
  antiAffinity: labelRules
    .optional()
    .describe('Tasks do not start where a task with these labels is, nor such a task where they are.'),
});

const resources = z.strictObject({
  cpu: cpu.optional().meta({ description: 'vCPUs of one task: `2`, `0.5` or `500m`.', default: 1 }),
  memory: memory.optional().meta({ description: 'Memory of one task: `512MiB`, `2GiB`, `4GB`.', default: '512MiB' }),
  gpu: z.int().min(0).max(64).optional().meta({ description: 'GPUs of one task.', default: 0 }),
  disk: size.optional().meta({ description: 'Scratch disk of one task.', default: '0B' }),
});

const checkpoint = z.strictObject({
  signal: z
    .enum(['SIGUSR1', 'SIGUSR2', 'SIGTERM', 'SIGINT'])
    .optional()
    .meta({ description: 'Signal that asks the program to save its state.', default: 'SIGUSR1' }),
  grace: grace.optional().meta({
    description:
      'Time from that signal to SIGTERM. A program that ends with exit code 0 after either signal, all its outputs made, has succeeded; to be run again from its state it ends with another code (143 is usual) or by the signal.',
    default: '20s',
  }),
  every: duration.optional().describe('How often the program saves by itself, if it does.'),
});

/** Checked with the least and the greatest index too: `{{index}..9}` is a range once the index stands in it. */
const globFaultOf = (pattern: string): string | null =>
  globFault(pattern) ?? INDEXES.reduce<string | null>((fault, i) => fault ?? globFault(expandIndex(pattern, i)), null);
const INDEXES = [0, LIMITS.tasksPerStage - 1];

const onePattern = text('a pattern below the working directory: not absolute, without `..`', GLOB)
  .max(GLOB_LIMITS.length)
  .refine((pattern) => pattern.length > GLOB_LIMITS.length || !GLOB.test(pattern) || globFaultOf(pattern) === null, {
    error: ({ input }) => `must be a pattern that can be used: it ${globFaultOf(String(input)) ?? ''}`,
  });

const glob = (what: string) =>
  listOf(onePattern, `a pattern for ${what} below the working directory`).refine(
    (patterns) => alternativesOf(patterns) <= GLOB_LIMITS.alternatives,
    {
      error: ({ input }) =>
        `must stand for at most ${GLOB_LIMITS.alternatives} patterns together, braces written out: these are ${alternativesOf(input as string[])}`,
    },
  );

const alternativesOf = (patterns: readonly string[]): number =>
  patterns.reduce((sum, pattern) => sum + globSize(pattern).alternatives, 0);

/** Keys of a stage that may also stand at the top of the file, as defaults for every stage. */
const sharedShape = {
  command: z
    .union([plainText.min(1), z.array(plainText).min(1).max(4096)], {
      error: 'must be a shell command as a text, or a program and its arguments as a list of texts',
    })
    .transform((v) => (Array.isArray(v) ? v : ['sh', '-c', v]))
    .refine((v) => v[0] !== '', { error: 'must begin with the name of a program' })
    .optional()
    .describe(
      'What one task runs: a text for `sh -c`, or program and arguments. `{index}` is replaced by the index of the task.',
    ),
  env: z
    .record(text(ENV_KEY_RULE, ENV_KEY), scalarText)
    .optional()
    .describe(
      'Environment variables. `{index}` is replaced by the index of the task. Names that begin with `EBB_` are Ebbtide’s own.',
    ),
  secrets: z
    .record(
      text('a name of letters, digits and _ that does not begin with EBB_', SECRET_KEY),
      text('the name of a secret: letters, digits, . _ or -, after `ssm:` if it is in Parameter Store', SECRET_REF),
    )
    .refine((s) => Object.keys(s).length <= MAX_SECRETS, { error: `must have at most ${MAX_SECRETS} entries` })
    .optional()
    .describe(
      'Environment variables whose values are secrets, each with the name of its secret. On AWS the secret `ebbtide/DEPLOYMENT/NAME` of Secrets Manager, with `ssm:NAME` the parameter `/ebbtide/DEPLOYMENT/NAME`; in local mode the file `secrets/NAME` in the folder of the engine, or the variable `EBB_SECRET_NAME` of its environment.',
    ),
  image: text('the name of a container image, such as python:3.13-slim', IMAGE_NAME)
    .optional()
    .describe(
      'Container image that the command runs in on AWS; the deployment has a default. Local mode runs the command on the machine itself, and says so.',
    ),
  workdir: plainText.min(1).max(4096).optional().meta({
    description:
      'Working directory, relative to the folder of the job file; on AWS `s3://bucket/folder`. Left out on AWS, or in a job that is sent to the API without a file: a folder of the job, in the bucket of the deployment or in the folder of the engine.',
    default: '.',
  }),
  inputs: glob('inputs')
    .optional()
    .describe('Files that the tasks read, as patterns below the working directory; on AWS `s3://` URIs as well.'),
  outputs: glob('outputs')
    .optional()
    .describe(
      'Files that the tasks write, as patterns below the working directory; on AWS `s3://` URIs as well. A path without wildcards that several tasks write holds `{index}`, or ends with `/`: a folder in which each task puts files under names of its own.',
    ),
  resources: resources.optional().describe('What one task needs.'),
  constraints: constraints.optional().describe('Hard constraints: only pools that satisfy all of them are used.'),
  preferences: z
    .array(
      z
        .strictObject({
          prefer: constraints.describe('What a pool must be to be preferred; keys as in `constraints`.'),
          weight: z
            .number()
            .gt(0)
            .max(1)
            .optional()
            .describe('How much: 0.1 treats such a pool as if it were 10 % cheaper.'),
          slowdown: z
            .number()
            .gt(1)
            .max(LIMITS.slowdown)
            .optional()
            .describe(
              'How many times as long a task runs on any other pool: 1.5 takes half as long again. Where a pool breaks several soft constraints, their slowdowns are multiplied.',
            ),
        })
        .refine(({ weight, slowdown }) => weight !== undefined || slowdown !== undefined, {
          error: 'needs a `weight`, a `slowdown` or both: else it has no effect',
        }),
    )
    .max(LIMITS.preferences)
    .optional()
    .describe('Soft constraints.'),
  placement: placement
    .optional()
    .describe(
      'Hard constraints on where tasks are relative to other tasks of the same owner. They hold whenever a task starts; what runs stays where it is.',
    ),
  retries: z
    .int()
    .min(0)
    .max(LIMITS.retries)
    .optional()
    .meta({ description: 'How often a failed task is tried again. An interruption never counts.', default: 2 }),
  timeout: duration.optional().describe('Longest running time of one attempt; then it has failed.'),
  checkpoint: checkpoint
    .optional()
    .describe(
      'The program can save its state in `$EBB_CHECKPOINT_DIR` and go on from there. How much work is kept is told by the newest modification time of a file in that directory: write a file under a name that begins with a dot or ends with `.tmp` or `.part`, then rename it. `{}` takes the defaults.',
    ),
  expectedRuntime: duration
    .optional()
    .describe('Your own guess of how long one task runs; used until there is history.'),
};

const tasks = z
  .int()
  .min(1)
  .max(LIMITS.tasksPerStage)
  .optional()
  .meta({ description: 'Number of tasks, each with its own index from 0 (`$EBB_TASK_INDEX`).', default: 1 });
const gang = z.boolean().optional().meta({ description: 'All tasks start together, or none does.', default: false });

const stage = z.strictObject({
  name: text('1 to 63 letters, digits, _ or -', STAGE_NAME).describe('Name of the stage, unique within the job.'),
  dependsOn: listOf(text('the name of a stage', STAGE_NAME), 'the name of a stage')
    .optional()
    .meta({ description: 'Stages that must have succeeded before this one starts.', default: [] }),
  tasks,
  gang,
  ...sharedShape,
});

/**
 * The job file. Input: as people write it. Output: units resolved, one form for every spelling, defaults not yet
 * applied.
 */
export const jobFileSchema = z
  .strictObject({
    name: text('1 to 128 letters, digits, ., _ or -', NAME).describe(
      'Name of the job. Runs of one name (but for dates and numbers in it) share their history.',
    ),
    owner: text('1 to 128 letters, digits or any of . _ @ + -', OWNER)
      .optional()
      .meta({ description: 'Who pays for it.', default: 'the user who submits' }),
    labels: z
      .record(labelKey, scalarText)
      .refine((l) => Object.keys(l).length <= 64, { error: 'must have at most 64 entries' })
      .optional()
      .describe('Your own keys and values, to find jobs by.'),
    class: z.enum(['deadline', 'best-effort', 'service']).optional().meta({
      description: 'What matters: a deadline, or an early end. A `service` is a file of its own (`ebb service apply`).',
      default: '`deadline` where one is given, else `best-effort`',
    }),
    deadline: deadline
      .optional()
      .describe('When it must be done: a duration from submission, or a time with its zone.'),
    value: z
      .union(
        [
          dollars('an amount').min(0),
          z.strictObject({
            onTime: dollars('what finishing on time is worth')
              .min(0)
              .optional()
              .describe('Worth when done on time, US dollars.'),
            worthlessAfter: duration
              .optional()
              .describe(
                'The worth falls to 0 over this time after the deadline; then the job is given up once nothing of it runs.',
              ),
          }),
        ],
        { error: 'must be an amount in US dollars, or an object with `onTime` and `worthlessAfter`' },
      )
      .transform((v) => (typeof v === 'number' ? { onTime: v } : v))
      .optional()
      .describe('What finishing is worth. Left out: derived from what the job would cost on on-demand capacity.'),
    mustMeet: z.boolean().optional().meta({
      description:
        'True: the deadline is never put at risk to save money. Left out: some jobs of a deployment may be late, as many as its `lateBudget` allows.',
      default: false,
    }),
    after: listOf(text('the id or name of a job', NAME), 'the id or name of a job')
      .optional()
      .meta({ description: 'Jobs that must have succeeded before this one starts.', default: [] }),
    maxCost: dollars('the most to spend')
      .gt(0)
      .optional()
      .describe(
        'Most that the job may cost, US dollars: its work and the instance time that it caused, start-up and idle time included. Nothing is bought that could pass it, and the job is stopped in time. It fails at once when what is left of it cannot be paid.',
      ),
    stages: z
      .array(stage)
      .min(1)
      .max(LIMITS.stages)
      .optional()
      .describe('Stages. Left out: one stage, `main`, from the keys at the top.'),
    tasks,
    gang,
    ...sharedShape,
  })
  .meta({ title: 'Ebbtide job file', description: 'One job: what it runs, what it needs, and by when.' });

export type JobFile = z.output<typeof jobFileSchema>;
export type StageFile = z.output<typeof stage>;
export type SharedKeys = Pick<JobFile, keyof typeof sharedShape>;
export type ConstraintsFile = z.output<typeof constraints>;
export type PlacementFile = z.output<typeof placement>;

/** JSON Schema (draft 2020-12) of the input form, for editors. */
export const jobFileJsonSchema: () => Readonly<Record<string, unknown>> = once(() =>
  z.toJSONSchema(jobFileSchema, {
    io: 'input',
    // Zod leaves out defaults of keys whose value is transformed; here they are written in the input form.
    override: ({ zodSchema, jsonSchema: written }) => {
      const documented = z.globalRegistry.get(zodSchema)?.['default'];
      if (documented !== undefined) written.default = documented;
    },
  }),
);
