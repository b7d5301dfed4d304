/**
 * Settings of the deployment that a preset may set (`settings:`): those that several stages read, or that admission,
 * explanations or shown forecasts read as well. All of these get the preset's value.
 */
import { z } from 'zod';

export const PRESET_SETTINGS = {
  lookAheadSlots: z
    .number()
    .int()
    .min(1)
    .max(48)
    .default(6)
    .describe('Start times that the plan considers, this cycle included.'),
  slotS: z.number().positive().default(600).describe('Length of a look-ahead slot, engine seconds.'),
  maxLateProbability: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe('An offer whose probability of lateness is higher is taken only if no other is safer.'),
  safetyQuantile: z
    .number()
    .min(0.5)
    .max(0.9999)
    .default(0.95)
    .describe('Quantile of the running time that must still fit before the deadline when work stays on spot.'),
  turnoverS: z
    .number()
    .nonnegative()
    .default(5)
    .describe('Expected time from the end of a task to the start of the next one in its place.'),
  bidDeltas: z
    .array(z.number().nonnegative())
    .default([0.0001, 0.01, 0.1])
    .describe(
      'Bids tried above the market price, USD per hour (Tributary 2.2.3: 0.0001 to 0.2); the on-demand price is always tried too.',
    ),
  preempts: z
    .enum(['none', 'best-effort', 'all'])
    .default('best-effort')
    .describe(
      'Which running work may be stopped for waiting work that is worth more: none, best-effort work, or work with a deadline too (JamaisVu 4.1.2).',
    ),
  fairEpsilon: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe(
      'Part of its even share of slots that a job may be denied, for plans with shares (Hopper 3.1). 0: strictly fair. 1: fairness counts for nothing.',
    ),
  fairShares: z
    .enum(['none', 'owner', 'queue'])
    .default('none')
    .describe(
      'Who has a fair share of the vCPUs where they are short, in plans of one program (`milp`, `greedy`, `one-job-at-a-time`): nobody, each owner of jobs, or each queue, which is the label `queue` of a job. Each gets (1 - `fairEpsilon`) of it at least.',
    ),
  shareWeights: z
    .record(z.string().max(200), z.number().nonnegative().max(1e6))
    .default({})
    .describe(
      'Weights of owners or queues for `fairShares`; 1 where none is given. One of weight 0 has what the others leave.',
    ),
  shortJobsFirst: z
    .boolean()
    .default(true)
    .describe(
      'Best-effort jobs with less work left go first where room is short, in plans of one program: the mean time to completion falls. False: by worth alone.',
    ),
  neighbours: z
    .boolean()
    .default(true)
    .describe(
      'Offers count how much longer work was measured to run beside its neighbours, for policies that can (docs/neighbours.md). False: as if it ran as long anywhere.',
    ),
  copyRule: z
    .enum(['mantri', 'late', 'none'])
    .default('mantri')
    .describe(
      'Which slow tasks get a copy, for plans that leave room for copies: those that would take more than twice as long as a copy (`mantri`), or the slowest quarter on a tenth of the slots (`late`).',
    ),
  serviceFootprint: z
    .string()
    .regex(
      /^[a-z][a-z-]{0,62}(?:\+\d+(?:\.\d+)?)?$/,
      'must be a name such as ebbtide, or with a buffer: autoscale-lowest+0.5',
    )
    .default('ebbtide')
    .describe(
      'Which pools and bids replicas of services get, and how many of them are spare (docs/services.md). `NAME+0.5` has a buffer of half of what the load needs.',
    ),
};
export type PresetSetting = keyof typeof PRESET_SETTINGS;

/** The same without defaults: an absent one leaves the deployment's. */
export const presetSettings = z.strictObject(
  Object.fromEntries(Object.entries(PRESET_SETTINGS).map(([name, field]) => [name, field.unwrap().optional()])) as {
    readonly [Name in PresetSetting]: z.ZodOptional<ReturnType<(typeof PRESET_SETTINGS)[Name]['unwrap']>>;
  },
);
