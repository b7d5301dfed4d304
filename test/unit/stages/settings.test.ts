import { isDeepStrictEqual } from 'node:util';
import { afterAll, describe, expect, it } from '@jest/globals';
import { scenario, type ScenarioShape } from '../../../bench/load/scenario.ts';
import { decide } from '../../../lib/cycle/decide/decide.ts';
import { schedulerConfig, type SchedulerConfig } from '../../../lib/domain/config.ts';
import { certain } from '../../../lib/domain/distribution.ts';
import { NEVER_INTERRUPTED } from '../../../lib/domain/forecast.ts';
import type { MarketForecast } from '../../../lib/domain/forecasts.ts';
import { PRESET_SETTINGS, type PresetSetting } from '../../../lib/domain/preset-settings.ts';
import type { PresetSpec } from '../../../lib/domain/preset-spec.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { SERVICE_LABEL } from '../../../lib/domain/service.ts';
import { groupId, jobId, planId } from '../../../lib/kernel/ids.ts';
import { hash32 } from '../../../lib/kernel/random.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import type { NeighbourBelief } from '../../../lib/policy/colocation/neighbour-belief.ts';
import { neighbourLearner } from '../../../lib/policy/colocation/neighbour-learner.ts';
import type { PlanInput } from '../../../lib/policy/contracts.ts';
import { settingsUnder } from '../../../lib/policy/preset-chain.ts';
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
  /** Other settings of its policy, without which it does not matter. */
  readonly beside?: Readonly<Record<string, unknown>>;
  /** A preset that reads it; absent: ebbtide. */
  readonly under?: string;
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

/** Adds the jobs of the running tasks. */
const inJobs = (input: PlanInput): PlanInput => {
  const jobs = input.snapshot.running.map(({ attempt, stage }) =>
    job({ id: attempt.job, spec: spec({ name: attempt.job, stages: [stage] }) }),
  );
  return { ...input, snapshot: { ...input.snapshot, jobs: new Map(jobs.map((j) => [j.id, j])) } };
};
/** Chances of programs, alone and in two groups, as if they had been learned. */
const taught = (input: PlanInput): PlanInput => {
  const belief = {
    groupOf: (template: string) => `g${hash32(template) % 2}`,
    chances: (running: string, all: readonly string[], single = false) => {
      const weights = all.map((key) => 1 + (hash32(`${running} ${key} ${String(single)}`) % 10));
      const sum = weights.reduce((a, b) => a + b, 0);
      return weights.map((w) => w / sum);
    },
    slowdown: (template: string) => ({ factor: 1 + (hash32(template) % 10) / 5, sd: 0 }),
    tells: () => false,
    tellsAny: () => false,
  };
  return believing(inJobs(input), belief);
};
const believing = (input: PlanInput, belief: Partial<NeighbourBelief>): PlanInput => ({
  ...input,
  beliefs: {
    of: (learner: unknown) => (learner === neighbourLearner ? belief : input.beliefs.of(learner as never)),
  } as PlanInput['beliefs'],
});
/** Everything takes twice as long on large instances, and beside anybody. */
const slowedBeside = (input: PlanInput): PlanInput => {
  const { jobs, groups } = input.snapshot;
  const waiting = groups.map((g) => job({ id: g.job, spec: spec({ name: g.job, stages: [g.stage] }) }));
  const all = new Map([...jobs, ...waiting.map((j) => [j.id, j] as const)]);
  return believing(
    { ...input, snapshot: { ...input.snapshot, jobs: all } },
    {
      tells: () => true,
      tellsAny: () => true,
      slowdown: (_, beside) => ({ factor: beside.length > 0 ? 2 : 1, sd: 0 }),
      againstUsual: (_, __, { type }) => ({ factor: raw(type.capacity.cpu) > 4000 ? 2 : 1, sd: 0 }),
      ranLonger: () => null,
    },
  );
};
/** And all of it is late. */
const slowTasks = (input: PlanInput): PlanInput => withRuntime(inJobs(input), 1);

/** Beside them a service whose replicas wait. */
const withReplicas = (input: PlanInput): PlanInput => {
  const { snapshot, forecasts } = input;
  const [like] = snapshot.groups;
  const runtime = like === undefined ? undefined : forecasts.runtime.get(like.id);
  if (like === undefined || runtime === undefined) throw new Error('a scenario has groups, with running times');
  const replicas = Array.from({ length: 6 }, (_, n) => {
    const named = { id: groupId(`web-${n}/replica`), job: jobId(`web-${n}`) };
    return { ...like, ...named, class: 'service' as const, deadlineMs: null };
  });
  const jobs = replicas.map((of) => {
    const labelled = { class: 'service' as const, labels: { [SERVICE_LABEL]: 'web' }, stages: [like.stage] };
    return job({ id: of.job, spec: spec({ name: of.job, ...labelled }) });
  });
  return {
    ...input,
    snapshot: {
      ...snapshot,
      groups: [...snapshot.groups, ...replicas],
      jobs: new Map([...snapshot.jobs, ...jobs.map((j) => [j.id, j] as const)]),
      services: new Map([['web', { name: 'web', needed: 6, target: 0.95, utility: null, together: null }]]),
    },
    forecasts: {
      ...forecasts,
      runtime: new Map([...forecasts.runtime, ...replicas.map((g) => [g.id, runtime] as const)]),
    },
  };
};

/** Settings that one policy reads: two values, of which the decision must differ in some scenario. */
const OF_POLICIES: Readonly<Record<string, Reader>> = {
  'appraise cost-and-risk offersPerGroup': { values: [1, 12] },
  'appraise without-spot offersPerGroup': { values: [1, 12] },
  'plan milp solverSeconds': { values: [0.1, 10], shape: { supply: 0.3, gangs: 0.3 } },
  'plan milp solverGap': { values: [0, 10], shape: { supply: 0.3, gangs: 0.3 } },
  'plan milp solverMaxOptions': { values: [1, 20_000], shape: { supply: 0.3, gangs: 0.3 } },
  'plan neighbours by': { values: ['template', 'group'], shape: { supply: 0.3 }, world: taught },
  'plan neighbours prefers': { values: ['goodness', 'pace'], shape: { supply: 0.3 }, world: taught },
  'plan neighbours draws': { values: ['programs', 'jobs'], shape: { supply: 0.3 }, world: taught },
  'plan neighbours byWaiting': { values: [false, true], shape: { supply: 0.3 }, world: taught },
  'plan neighbours waitingLimitS': {
    values: [1, 1e9],
    shape: { supply: 0.3 },
    world: taught,
    beside: { byWaiting: true },
  },
  'plan neighbours aheadOfLimit': {
    values: [false, true],
    shape: { supply: 0.3 },
    world: taught,
    beside: { byWaiting: true, waitingLimitS: 2000 },
  },
  'plan multi-queue by': { values: ['estimate', 'attained'], shape: { supply: 0.3 } },
  'plan multi-queue thinLimit': { values: [0, 1000], shape: { supply: 0.3 } },
  'plan multi-queue ratio': { values: [0.01, 1], shape: { supply: 0.3 }, beside: { by: 'pilots' } },
  'plan multi-queue firstQueueS': { values: [1, 1e9], shape: { supply: 0.3 } },
  'scale stratus-tributary correlationPenalty': { values: [0, 5], world: alike },
};
/** Settings that several stages read, likewise. */
const OF_PRESETS: Readonly<Record<string, Reader>> = {
  lookAheadSlots: { values: [1, 12] },
  slotS: { values: [60, 1800] },
  maxLateProbability: { values: [0, 1] },
  safetyQuantile: { values: [0.5, 0.99] },
  turnoverS: {
    values: [0, 90],
    shape: { tasksPerGroup: 30, instances: 0, supply: 3 },
    world: (input) => withRuntime(input, 5),
  },
  bidDeltas: { values: [[], [0.0001, 0.1]] },
  preempts: { values: ['none', 'best-effort'], shape: { supply: 0, instances: 8 }, world: inJobs },
  fairEpsilon: { values: [0, 1], shape: { supply: 0.3 }, under: 'hopper' },
  fairShares: { values: ['none', 'owner'], shape: { supply: 0.3, instances: 8 } },
  shareWeights: {
    values: [{ one: 1 }, { one: 50 }],
    shape: { supply: 0.3, instances: 8 },
    beside: { fairShares: 'owner' },
  },
  shortJobsFirst: { values: [false, true], shape: { supply: 0.3, instances: 8 } },
  neighbours: { values: [true, false], world: slowedBeside },
  copyRule: {
    values: ['mantri', 'none'],
    shape: { groups: 2, tasksPerGroup: 1, instances: 12 },
    world: slowTasks,
    under: 'hopper',
  },
  serviceFootprint: { values: ['on-demand-autoscale', 'tributary'], shape: { instances: 0 }, world: withReplicas },
};

const shape: ScenarioShape = { seed: 0, groups: 8, pools: 16, tasksPerGroup: 4, instances: 3, supply: 0.7 };
const SEEDS = 60;
const FEW_SEEDS = 16;

/** Decision about a scenario under a preset, with some settings of the deployment. */
async function decided(
  seed: number,
  { shape: over, world }: Reader,
  { preset, deployed = {} }: { readonly preset: PresetSpec; readonly deployed?: Partial<SchedulerConfig> },
) {
  const plain = scenario({ ...shape, ...over, seed });
  const { snapshot } = plain;
  const jobs = new Map(
    snapshot.groups.map((g, n) => [
      g.job,
      job({
        id: g.job,
        template: `ana/${g.job}/work`,
        submittedMs: g.submittedMs,
        deadlineMs: g.deadlineMs,
        spec: spec({ name: g.job, owner: n % 2 === 0 ? 'one' : 'two', class: g.class, stages: [g.stage] }),
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
    snapshot: { ...input.snapshot, jobs: new Map([...input.snapshot.jobs, ...jobs]) },
    forecasts: input.forecasts,
    config: settingsUnder('mine', { ...input.config, ...deployed, presets: { mine: preset } }),
    memory: input.memory,
    beliefs: input.beliefs,
    stages: presetNamed('mine', { mine: preset }).stages,
    preset: 'mine',
    solver: slow,
    plan: planId('p-test'),
    token: 1,
  });
  return { effects: plan.effects, explanations: plan.explanations };
}

/** The first scenario that two presets decide differently; the same preset decides all alike. */
async function firstDifference(reader: Reader, of: (value: unknown) => PresetSpec): Promise<number | null> {
  const [one, other] = reader.values;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const [a, b] = [
      await decided(seed, reader, { preset: of(one) }),
      await decided(seed, reader, { preset: of(other) }),
    ];
    if (!isDeepStrictEqual(a.effects, b.effects)) return seed;
  }
  return null;
}

describe('each setting of each policy', () => {
  const settings = policyList().flatMap(({ stage, name, settings: of }) =>
    of.map((setting) => ({ stage, name, setting })),
  );
  const given = ({ stage, name, setting }: (typeof settings)[number], value: unknown): PresetSpec => ({
    extends: 'ebbtide',
    [stage]: { policy: name, ...readerOf({ stage, name, setting }).beside, [setting]: value },
  });
  const readerOf = ({ stage, name, setting }: (typeof settings)[number]): Reader =>
    OF_POLICIES[`${stage} ${name} ${setting}`] as Reader;

  it('is in this test', () => {
    expect(settings.map(({ stage, name, setting }) => `${stage} ${name} ${setting}`)).toEqual(Object.keys(OF_POLICIES));
  });

  it.each(settings)(
    'changes a decision: $stage $name $setting',
    async (of) => {
      expect(await firstDifference(readerOf(of), (value) => given(of, value))).not.toBeNull();
    },
    60_000,
  );

  it.each(settings)(
    'has no other reader: the deployment’s value changes nothing beside it: $stage $name $setting',
    async (of) => {
      const reader = readerOf(of);
      const [one, other] = reader.values;
      for (let seed = 1; seed <= FEW_SEEDS; seed++) {
        const under = (value: unknown) =>
          decided(seed, reader, { preset: given(of, one), deployed: { [of.setting]: value } });
        expect([seed, await under(other)]).toEqual([seed, await under(one)]);
      }
    },
    60_000,
  );
});

describe('each setting that a preset may set for all stages', () => {
  const settings = Object.keys(PRESET_SETTINGS) as PresetSetting[];

  it('is in this test, and no setting of a policy', () => {
    expect(settings).toEqual(Object.keys(OF_PRESETS));
    expect(policyList().flatMap((p) => p.settings.filter((s) => Object.hasOwn(PRESET_SETTINGS, s)))).toEqual([]);
  });

  it.each(settings)(
    'changes a decision: %s',
    async (setting) => {
      const reader = OF_PRESETS[setting] as Reader;
      const { under = 'ebbtide' } = reader;
      const of = (value: unknown): PresetSpec => ({
        extends: under,
        settings: { ...reader.beside, [setting]: value },
      });
      expect(await firstDifference(reader, of)).not.toBeNull();
    },
    60_000,
  );

  it.each(settings)(
    'decides and explains as the deployment’s does: %s',
    async (setting) => {
      const reader = OF_PRESETS[setting] as Reader;
      for (const value of reader.values) {
        const settings = reader.beside ?? {};
        const preset: PresetSpec = { extends: reader.under ?? 'ebbtide', settings };
        for (let seed = 1; seed <= FEW_SEEDS; seed++) {
          const deployed = await decided(seed, reader, { preset, deployed: { [setting]: value } });
          const set = await decided(seed, reader, {
            preset: { ...preset, settings: { ...settings, [setting]: value } },
          });
          expect([seed, set]).toEqual([seed, deployed]);
        }
      }
    },
    60_000,
  );
});

describe('settings of a preset', () => {
  const config = schedulerConfig.parse({
    slotS: 300,
    presets: {
      parent: { extends: 'fleet', settings: { slotS: 60, safetyQuantile: 0.9 } },
      mine: { extends: 'parent', settings: { slotS: 120 } },
      plain: { extends: 'fleet' },
    },
  });

  it('come from those that it extends, its own win, and the deployment’s hold for the others', () => {
    expect(settingsUnder('mine', config)).toEqual({ ...config, slotS: 120, safetyQuantile: 0.9 });
    expect(settingsUnder('plain', config)).toBe(config);
    expect(presetNamed('mine', config.presets).common).toEqual({ slotS: 120, safetyQuantile: 0.9 });
  });

  it('are checked as the deployment’s are', () => {
    const parsed = (settings: unknown) =>
      schedulerConfig.safeParse({ presets: { mine: { extends: 'fleet', settings } } });
    expect(parsed({ slotS: 0 }).success).toBe(false);
    expect(parsed({ billing: 'per-hour' }).success).toBe(false);
    expect(parsed({}).success).toBe(true);
  });

  it('are refused as settings of one policy, with where to write them', () => {
    const plan = { policy: 'milp', maxLateProbability: 1 };
    expect(() => presetNamed('mine', { mine: { extends: 'ebbtide', plan } })).toThrow(
      'maxLateProbability is no setting of it (several stages read it: give it below `settings` of the preset)',
    );
  });
});
