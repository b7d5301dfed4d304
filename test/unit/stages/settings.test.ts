import { afterAll, describe, expect, it } from '@jest/globals';
import { scenario, type ScenarioShape } from '../../../bench/load/scenario.ts';
import { decide } from '../../../lib/cycle/decide/decide.ts';
import { certain } from '../../../lib/domain/distribution.ts';
import { NEVER_INTERRUPTED } from '../../../lib/domain/forecast.ts';
import type { MarketForecast } from '../../../lib/domain/forecasts.ts';
import type { PresetSpec, StageName } from '../../../lib/domain/preset-spec.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { planId } from '../../../lib/kernel/ids.ts';
import { seconds } from '../../../lib/kernel/units.ts';
import type { PlanInput } from '../../../lib/policy/contracts.ts';
import { deterministic, type Solver } from '../../../lib/policy/solver.ts';
import { policyList, presetNamed } from '../../../lib/stages/registry.ts';
import { job, spec } from '../../support/builders.ts';
import { exponential } from '../../support/decision-world.ts';

const highs = highsSolver();
afterAll(() => highs.close());

/** A solver that finds nothing in less than a second. */
const slow: Solver = {
  ...deterministic(highs, 200),
  solve: async (model, limits, start) =>
    (limits.maxSeconds ?? Infinity) < 1
      ? { status: 'no-solution', bound: null, limit: 'time' }
      : deterministic(highs, 200).solve(model, limits, start),
};

interface Reader {
  readonly values: readonly [unknown, unknown];
  /** What else the scenario needs, for the setting to matter. */
  readonly shape?: Partial<ScenarioShape>;
  readonly world?: (input: PlanInput) => PlanInput;
}

const withRuntime = (input: PlanInput, runtimeS: number): PlanInput => ({
  ...input,
  forecasts: {
    ...input.forecasts,
    runtime: new Map(
      [...input.forecasts.runtime].map(([key, of]) => [key, { ...of, runtime: certain(seconds(runtimeS)) }]),
    ),
  },
});
const alike = (input: PlanInput): PlanInput => ({
  ...input,
  forecasts: {
    ...input.forecasts,
    market: { ...input.forecasts.market, correlation: (a, b) => (a.type.family === b.type.family ? 1 : 0) },
  },
});

const SAFETY: Reader = { values: [0.5, 0.99] };
const LATE: Reader = { values: [0, 1] };
/** What each setting is read for: two values, of which the decision must differ in some scenario. */
const READERS: Readonly<Record<string, Reader>> = {
  'value jvusched safetyQuantile': SAFETY,
  'value sharp-deadline safetyQuantile': SAFETY,
  'value strict-priority safetyQuantile': SAFETY,
  'appraise cost-and-risk offersPerGroup': { values: [1, 12] },
  'appraise cost-and-risk bidDeltas': { values: [[], [0.0001, 0.1]] },
  'appraise without-spot offersPerGroup': { values: [1, 12] },
  'plan milp lookAheadSlots': { values: [1, 12] },
  'plan milp slotS': { values: [60, 1800] },
  'plan milp maxLateProbability': LATE,
  'plan milp solverSeconds': { values: [0.1, 10], shape: { supply: 0.3, gangs: 0.3 } },
  'plan milp solverGap': { values: [0, 10], shape: { supply: 0.3, gangs: 0.3 } },
  'plan milp solverMaxOptions': { values: [1, 20_000], shape: { supply: 0.3, gangs: 0.3 } },
  'plan greedy lookAheadSlots': { values: [1, 12] },
  'plan greedy slotS': { values: [60, 1800] },
  'plan greedy maxLateProbability': LATE,
  'plan spot-greedy maxLateProbability': LATE,
  'plan uniform-progress maxLateProbability': LATE,
  'queue short-tasks-wait turnoverS': {
    values: [0, 90],
    shape: { tasksPerGroup: 30, instances: 0, supply: 3 },
    world: (input) => withRuntime(input, 5),
  },
  'scale stratus-tributary correlationPenalty': { values: [0, 5], world: alike },
};

const shape: ScenarioShape = { seed: 0, groups: 8, pools: 16, tasksPerGroup: 4, instances: 3, supply: 0.7 };
const SEEDS = 60;

/** What a decision does about a scenario under a preset with one policy of its own. */
async function decided(seed: number, preset: PresetSpec, { shape: over, world }: Reader): Promise<unknown> {
  const plain = scenario({ ...shape, ...over, seed });
  const { snapshot } = plain;
  const jobs = new Map(
    snapshot.groups.map((g) => [
      g.job,
      job({
        id: g.job,
        submittedMs: g.submittedMs,
        deadlineMs: g.deadlineMs,
        spec: spec({ name: g.job, class: g.class, stages: [g.stage] }),
      }),
    ]),
  );
  const risky: MarketForecast['interruption'] = ({ option }, bid) => {
    if (option !== 'spot') return NEVER_INTERRUPTED;
    return exponential(bid === 'uncapped' ? 0.05 : 0.1);
  };
  const priced = { ...plain.forecasts.market, interruption: risky };
  const input = (world ?? ((of) => of))({ ...plain, forecasts: { ...plain.forecasts, market: priced } });
  const { plan } = await decide<Solver>({
    snapshot: { ...input.snapshot, jobs },
    forecasts: input.forecasts,
    config: input.config,
    memory: input.memory,
    stages: presetNamed('mine', { mine: preset }).stages,
    preset: 'mine',
    solver: slow,
    plan: planId('p-test'),
    token: 1,
  });
  return plan.effects;
}

describe('each setting of each policy', () => {
  const settings = policyList().flatMap(({ stage, name, settings: of }) =>
    of.map((setting) => ({ stage, name, setting })),
  );

  it('is in this test', () => {
    expect(settings.map(({ stage, name, setting }) => `${stage} ${name} ${setting}`)).toEqual(Object.keys(READERS));
  });

  it.each(settings)(
    'has a reader, and changes a decision: $stage $name $setting',
    async ({ stage, name, setting }: { stage: StageName; name: string; setting: string }) => {
      const reader = READERS[`${stage} ${name} ${setting}`] as Reader;
      const [one, other] = reader.values;
      const of = (value: unknown): PresetSpec => ({
        extends: 'ebbtide',
        [stage]: { policy: name, [setting]: value },
      });
      let differs = 0;
      for (let seed = 1; seed <= SEEDS && differs === 0; seed++) {
        const [a, b] = [await decided(seed, of(one), reader), await decided(seed, of(other), reader)];
        if (JSON.stringify(a) !== JSON.stringify(b)) differs = seed;
        // The same settings give the same decision.
        else expect(a).toEqual(b);
      }
      expect(differs).toBeGreaterThan(0);
    },
    60_000,
  );
});
