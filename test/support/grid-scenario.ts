/** Small random scenarios on a grid of slots, as a market with jobs and for brute force. */
import fc from 'fast-check';
import { presetNamed } from '../../lib/stages/registry.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import { epochMs, raw, seconds } from '../../lib/kernel/units.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { oracle } from '../../lib/drivers/sim/oracle.ts';
import { lowerBoundUsd } from '../../lib/drivers/sim/reference/lower-bound.ts';
import { needsOf, type Needs } from '../../lib/drivers/sim/reference/needs.ts';
import { outcomeOf } from '../../lib/drivers/sim/outcome-of-run.ts';
import { traceOf } from '../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { Totals } from '../../lib/report/outcome.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import type { Grid, GridTask } from './brute-force.ts';
import { pool, resources, spec, stage } from './builders.ts';
import { simulated } from './simulated.ts';

const START = Date.UTC(2026, 0, 5);
const SLOT_S = 1800;
const SLOTS = 6;
const ON_DEMAND = 1;
/** vCPUs of the only type. */
const MACHINE = 2;

export interface Scenario {
  readonly tasks: readonly GridTask[];
  /** By zone and slot: spot price, or null without capacity. */
  readonly zones: readonly (readonly (number | null)[])[];
  readonly setup: number;
  readonly billing: 'per-second' | 'per-hour';
  /** Whether interrupted first hours are refunded. */
  readonly refunds: boolean;
}

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  tasks: fc.array(
    fc.record({ cpus: fc.constantFrom(1, 2), work: fc.integer({ min: 1, max: 3 }), saves: fc.boolean() }),
    { minLength: 1, maxLength: 2 },
  ),
  zones: fc.array(
    fc.array(
      fc.oneof(
        { arbitrary: fc.constantFrom(0.2, 0.3, 0.5, 0.9), weight: 3 },
        { arbitrary: fc.constant(null), weight: 1 },
      ),
      {
        minLength: SLOTS,
        maxLength: SLOTS,
      },
    ),
    { minLength: 1, maxLength: 2 },
  ),
  setup: fc.constantFrom(0, 0, 1),
  billing: fc.constantFrom('per-second' as const, 'per-second' as const, 'per-hour' as const),
  refunds: fc.boolean(),
});

function marketOf({ zones }: Scenario): MarketTrace {
  const { type } = pool({ cpus: MACHINE });
  const times = Array.from({ length: SLOTS + 1 }, (_, i) => START + i * SLOT_S * 1000);
  return traceOf(
    { name: 'grid', startMs: epochMs(START - 3_600_000), endMs: epochMs(START + 86_400_000) },
    zones.map((prices, z) => ({
      type,
      zone: `test-1${'ab'[z]}`,
      onDemandUsdPerHour: ON_DEMAND,
      prices: {
        atMs: Float64Array.of(START - 3_600_000, ...times),
        usdPerHour: Float64Array.of(1, ...prices.map((p) => p ?? 0.5), 0.5),
      },
      availability: {
        atMs: Float64Array.of(START - 3_600_000, ...times),
        available: Uint8Array.of(0, ...prices.map((p) => Number(p !== null)), 0),
      },
    })),
  );
}

const jobsOf = ({ tasks, setup }: Scenario, sparedS = 0): WorkloadJob[] =>
  tasks.map(({ cpus, work, saves }, i) => ({
    key: `job-${i}`,
    submittedS: 0,
    truth: new Map([['main', { runtimeS: Float64Array.of(work * SLOT_S - sparedS) }]]),
    spec: spec({
      name: `job-${i}`,
      class: 'deadline',
      deadline: { afterS: seconds(SLOTS * SLOT_S) },
      stages: [
        stage({
          resources: resources(cpus, 512),
          expectedRuntimeS: seconds((work + setup) * SLOT_S - sparedS),
          checkpoint: saves ? { signal: 'SIGTERM', graceS: seconds(30), everyS: null } : null,
        }),
      ],
    }),
  }));

export const needsFor = (of: Scenario): Needs =>
  needsOf(jobsOf(of), { fromMs: epochMs(START), setupS: of.setup * SLOT_S });

export const boundOf = (of: Scenario, needs = needsFor(of)): number =>
  lowerBoundUsd({
    needs,
    trace: marketOf(of),
    rules: { billing: of.billing, refundRule: 'none' },
    toMs: raw(marketOf(of).endMs),
  }) ?? NaN;

export const gridOf = ({ tasks, zones, setup }: Scenario, slots = SLOTS): Grid => ({
  slots,
  setup,
  machine: MACHINE,
  tasks,
  usd: [...zones.map((z) => z.map((p) => (p === null ? null : (p * SLOT_S) / 3600))), Array<number>(SLOTS).fill(0.5)],
});

/** `sparedS`: work that each task has less, for start-ups that the grid does not have. */
export async function totalsOf(of: Scenario, preset: string, sparedS = 0): Promise<Totals> {
  const trace = marketOf(of);
  const result = await simulated(jobsOf(of, sparedS), {
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: epochMs(START),
    toMs: trace.endMs,
    deciders: (truth) => (preset === 'oracle' ? oracle(truth) : { name: preset, stages: presetNamed(preset).stages }),
    config: schedulerConfig.parse({
      billing: of.billing,
      refundRule: of.refunds ? 'first-hour' : 'none',
      restoreS: 10 + of.setup * SLOT_S,
    }),
    setupS: seconds(of.setup * SLOT_S),
  });
  return outcomeOf(result, { preset, seed: 1, fromMs: epochMs(START) }).totals;
}
