import { z } from 'zod';
import { PRESET_SETTINGS } from './preset-settings.ts';
import { presetSpecs } from './preset-spec.ts';

/** Transfer rate of a container's memory in a move, megabytes per second (Stratus, section 3.3.1). */
export const MIGRATION_MB_PER_S = 160;

/** Tunables of the scheduling core, one schema for every driver. Each default names its source. */
export const schedulerConfig = z.strictObject({
  preset: z.string().default('ebbtide').describe('Which policies decide: see `ebb config --presets`.'),
  presets: presetSpecs
    .default({})
    .describe(
      'Presets of your own: policies by stage, from `ebb config --policies`; what is not named comes from `extends`.',
    ),
  policyModules: z
    .array(z.string().min(1).max(4096))
    .max(16)
    .default([])
    .describe(
      'Files with policies of your own (docs/write-a-policy.md), from the folder of the settings; local mode and simulator only.',
    ),
  forecast: z
    .string()
    .regex(/^[\w][\w.-]{0,63}$/, 'must be `preset`, `history`, `by-regime`, `model` or the version of a model')
    .default('preset')
    .describe(
      'How prices are forecast: as the preset has it, from `history` (Proteus), by the trained `model` in use, by it in pools that spike and from history in others (`by-regime`), or by one version of it (docs/forecast.md).',
    ),
  capacityForecast: z
    .string()
    .regex(/^[\w][\w.-]{0,63}$/, 'must be `observed`, `model` or the version of a model')
    .default('observed')
    .describe(
      'How the risk that capacity ends is forecast: from `observed` interruptions, by the trained `model` of capacity in use, or by one version of it (docs/forecast-capacity.md).',
    ),
  cyclePeriodS: z
    .number()
    .positive()
    .default(60)
    .describe(
      'Longest time between two decisions while there is work, engine seconds. Tributary 2.2: a one-minute clock.',
    ),
  lookAheadSlots: PRESET_SETTINGS.lookAheadSlots,
  slotS: PRESET_SETTINGS.slotS,
  offersPerGroup: z
    .number()
    .int()
    .min(1)
    .max(64)
    .default(6)
    .describe('Cheapest pool-and-bid pairs per task group that enter the plan.'),
  maxLateProbability: PRESET_SETTINGS.maxLateProbability,
  safetyQuantile: PRESET_SETTINGS.safetyQuantile,
  lateBudget: z
    .number()
    .min(0)
    .max(0.5)
    .default(0.01)
    .describe(
      'Share of the jobs with a deadline that may be late, where the risk saves money: never those with `mustMeet`. 0: no deadline is put at risk.',
    ),
  impossibleDeadlines: z
    .enum(['refuse', 'admit'])
    .default('refuse')
    .describe(
      'What becomes of a job whose deadline cannot be met by what is known: it is refused, or admitted with a warning, to be done late or, if what is known is wrong, in time.',
    ),
  startDelayMeanS: z
    .number()
    .nonnegative()
    .default(95)
    .describe('Expected time from launch to first task. Stratus 3.3.1: uniform from 30 to 160 s.'),
  startDelayMaxS: z
    .number()
    .nonnegative()
    .default(160)
    .describe('Longest start-up that is planned for. Stratus 3.3.1.'),
  turnoverS: PRESET_SETTINGS.turnoverS,
  restoreS: z.number().nonnegative().default(10).describe('Time a task takes to read its checkpoint and go on.'),
  migrationS: z
    .number()
    .nonnegative()
    .default(30)
    .describe(
      'Least time to checkpoint and stop an attempt when moving it; a large memory takes longer (`migrationMBPerS`).',
    ),
  migrationMBPerS: z
    .number()
    .positive()
    .default(MIGRATION_MB_PER_S)
    .describe('Megabytes per second of the requested memory that a move saves and transfers. Stratus 3.3.1: 160 MB/s.'),
  preemptionDelayS: z
    .number()
    .nonnegative()
    .max(86_400)
    .default(0)
    .describe(
      'Time after an attempt that was told to stop has ended until its place is free: cleaning up, loading another image. Plans count on it, and in simulations it takes so long (JamaisVu, figure 14).',
    ),
  correlationPenalty: z
    .number()
    .nonnegative()
    .default(0.01)
    .describe('Tributary 2.2.2, eq. 2.6: gamma, the weight of price correlation in the probability of interruption.'),
  bidDeltas: PRESET_SETTINGS.bidDeltas,
  preempts: PRESET_SETTINGS.preempts,
  fairEpsilon: PRESET_SETTINGS.fairEpsilon,
  fairShares: PRESET_SETTINGS.fairShares,
  shareWeights: PRESET_SETTINGS.shareWeights,
  shortJobsFirst: PRESET_SETTINGS.shortJobsFirst,
  neighbours: PRESET_SETTINGS.neighbours,
  copyRule: PRESET_SETTINGS.copyRule,
  serviceFootprint: PRESET_SETTINGS.serviceFootprint,
  priceHistoryS: z
    .number()
    .positive()
    .default(7 * 86400)
    .describe('How far back prices inform the forecast.'),
  hazardPriorPerHour: z
    .number()
    .positive()
    .default(0.03)
    .describe('Prior mean of capacity interruptions per instance-hour, while little is known of any pool.'),
  hazardPriorHours: z.number().positive().default(20).describe('Weight of that prior, in instance-hours of evidence.'),
  refundRule: z
    .enum(['first-hour', 'none'])
    .default('first-hour')
    .describe('Is a spot instance that the market takes in its first hour free?'),
  billing: z
    .enum(['per-second', 'per-hour'])
    .default('per-second')
    .describe('per-second with a one-minute minimum (since October 2017) or per started hour.'),
  solverSeconds: z.number().positive().default(1).describe('Wall time the solver may take in real time.'),
  solverGap: z
    .number()
    .nonnegative()
    .default(0.01)
    .describe(
      'Dollars that a plan may leave on the table, as a fraction of what it is expected to spend: the solver stops there, or is not asked.',
    ),
  solverMaxOptions: z
    .number()
    .int()
    .positive()
    .default(20_000)
    .describe('Above this many start options the greedy plan with a Lagrangian bound is used instead of the MILP.'),
  maxUsdPerDay: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe(
      'Most that instances may cost per day (UTC, market time): nothing is bought that could pass it, with an event at 80 % and when a purchase is refused. What runs goes on. null: no limit.',
    ),
  maxUsdPerMonth: z.number().positive().nullable().default(null).describe('The same per month.'),
  historyDays: z
    .number()
    .int()
    .min(7)
    .max(3650)
    .default(90)
    .describe(
      'Days (of the wall clock) that jobs and instances are kept after their end, and idempotency keys after their first use. What they cost stays in every sum for good.',
    ),
});
export type SchedulerConfig = z.infer<typeof schedulerConfig>;
