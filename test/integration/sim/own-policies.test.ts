import { describe, expect, it } from '@jest/globals';
import { invariant } from '../../../lib/kernel/errors.ts';
import type { RuntimeForecast } from '../../../lib/domain/forecast.ts';
import { STAGES, type StageName } from '../../../lib/domain/preset-spec.ts';
import type {
  DecisionContext,
  EstimateContext,
  EstimatePolicy,
  MovePolicy,
  ScaleInput,
  ScalePolicy,
} from '../../../lib/policy/contracts.ts';
import { ownPolicy } from '../../../lib/policy/own/own-policy.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { warningsOf } from '../../../lib/report/warnings.ts';
import type { RefusedPolicy } from '../../../lib/report/outcome.ts';
import { POLICY_KIT } from '../../../lib/stages/kit.ts';
import { decidersNamed } from '../../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

/** Work that waits, runs beside other work, has deadlines, and is short enough to queue. */
const jobs = () => [
  simulatedJob('late', 0, [1800, 1800], { deadlineS: 3600 }),
  simulatedJob('any', 0, [600, 600, 600, 600]),
  simulatedJob('long', 60, [1200, 1200, 1200], { deadlineS: 4 * 3600 }),
  simulatedJob('short', 60, [5, 5, 5, 5]),
];

/** The preset `mine` is `greedy` with this in place of one stage. */
async function runWith(stage: StageName, answer: (standIn: unknown) => unknown) {
  const standIn = presetNamed('greedy').policies[stage];
  const shipped = POLICY_KIT.shipped(stage, standIn);
  const decide = () => answer(shipped.decide());
  const of = ownPolicy({ ...shipped, name: 'my-own', about: 'under test', decide }, 'test.ts');
  const presets = { mine: { extends: 'greedy', [stage]: 'my-own' } };
  return simulated(jobs(), { deciders: decidersNamed('mine', presets, [of]) });
}

const whole = await simulated(jobs(), { deciders: decidersNamed('greedy') });
const typesOf = (events: typeof whole.events): readonly string[] =>
  events.flatMap((e) => (e.type === 'policy-refused' ? [] : [e.type]));
const throwing = (): never => {
  throw new TypeError('boo');
};
const MOVE = { propose: throwing, begin: throwing, returning: throwing, vacate: throwing };

describe('a policy of the user’s own that throws', () => {
  it.each(STAGES)(
    'at %s: its stand-in answers, all work is done as by the stand-in alone, and it is named',
    async (stage) => {
      const { events, refusedPolicies } = await runWith(stage, () => (stage === 'move' ? MOVE : throwing));
      expect(typesOf(events)).toEqual(typesOf(whole.events));
      const standIn = presetNamed('greedy').policies[stage];
      expect(refusedPolicies).toEqual([
        { stage, policy: 'my-own', standIn, firstWhy: 'it threw: TypeError: boo', times: expect.any(Number) },
      ]);
      const told = events.filter((e) => e.type === 'policy-refused');
      expect(told.map((e) => e.text)).toEqual([
        `an answer of your policy ${stage}: my-own was refused: it threw: TypeError: boo; ${standIn} answered in its place`,
      ]);
    },
  );
});

it.each([
  ['an object without a prototype', Object.create(null), 'it threw: something that is no text'],
  ['a symbol', Symbol('boo'), 'it threw: Symbol(boo)'],
  ['nothing', undefined, 'it threw: undefined'],
  ['lines of control characters', 'boo\n\u001b[2J\u0007', 'it threw: boo [2J '],
])('a policy that throws %s is named all the same', async (_, thrown: unknown, firstWhy) => {
  const { refusedPolicies } = await runWith('place', () => () => {
    throw thrown;
  });
  expect(refusedPolicies).toMatchObject([{ stage: 'place', firstWhy }]);
});

it.each([
  ['a number', () => 5],
  ['NaN', () => [NaN]],
  ['too many', () => new Array<string>(1001).fill('uncapped')],
  ['a promise that is rejected', () => Promise.reject(new Error('later'))],
])('questions that are %s are refused, and none is asked', async (_, bids) => {
  const shipped = POLICY_KIT.shipped('appraise', 'cost-and-risk');
  const asks = { bids, horizon: 'any', prices: true };
  const of = ownPolicy({ ...shipped, name: 'my-own', about: 'under test', asks }, 'test.ts');
  const presets = { mine: { extends: 'greedy', appraise: 'my-own' } };
  const { events, refusedPolicies } = await simulated(jobs(), { deciders: decidersNamed('mine', presets, [of]) });
  expect(refusedPolicies).toMatchObject([{ stage: 'appraise', firstWhy: expect.stringMatching(/asks\.bids|promise/) }]);
  expect(typesOf(events)).toEqual(typesOf(whole.events));
});

it('pools to buy in that are neither yes nor no are refused: it may buy in any', async () => {
  const shipped = POLICY_KIT.shipped('scale', 'stratus-tributary');
  const of = ownPolicy({ ...shipped, name: 'my-own', about: 'under test', buys: () => 'maybe' }, 'test.ts');
  const presets = { mine: { extends: 'greedy', scale: 'my-own' } };
  const { events, refusedPolicies } = await simulated(jobs(), { deciders: decidersNamed('mine', presets, [of]) });
  expect(refusedPolicies).toMatchObject([{ firstWhy: '`buys` answers neither true nor false' }]);
  expect(typesOf(events)).toEqual(typesOf(whole.events));
});

it('an asynchronous `decide` makes no policy: each call is refused, and nobody hears of its rejection', async () => {
  const heard: unknown[] = [];
  const hear = (error: unknown) => void heard.push(error);
  process.on('unhandledRejection', hear);
  const { events, refusedPolicies } = await runWith('place', () => Promise.reject(new Error('later')));
  process.off('unhandledRejection', hear);
  expect(heard).toEqual([]);
  expect(refusedPolicies).toMatchObject([{ stage: 'place', firstWhy: expect.stringContaining('is not a function') }]);
  expect(typesOf(events)).toEqual(typesOf(whole.events));
});

/** Nonsense by stage: what the answer of the shipped policy becomes, and what is said of it. */
type Spoil = (answer: never) => unknown;
const NONSENSE: readonly (readonly [StageName, string, Spoil, string])[] = [
  ['value', 'no worths', () => ({}), 'the answer is not {groups, ofRunning}'],
  ['appraise', 'nothing', () => undefined, 'the map of offers by group is no map'],
  ['appraise', 'no group', () => new Map(), 'has no list of offers'],
  ['plan', 'nothing', () => Promise.resolve(undefined), 'the answer is not {starts, '],
  [
    'plan',
    'NaN tasks',
    async (a: Promise<{ starts: readonly object[] }>) => {
      const of = await a;
      return { ...of, starts: of.starts.map((s) => ({ ...s, count: NaN })) };
    },
    'it starts NaN tasks of',
  ],
  [
    'plan',
    'a pool that does not exist',
    async (a: Promise<{ starts: readonly { option: { offer: object } }[] }>) => {
      const of = await a;
      const elsewhere = of.starts.map((s) => ({
        ...s,
        option: { ...s.option, offer: { ...s.option.offer, pool: 'none/such/spot' } },
      }));
      return { ...of, starts: elsewhere };
    },
    'the pool none/such/spot does not exist',
  ],
  ['place', 'each task twice', (a: readonly object[]) => [...a, ...a], 'it places'],
  ['place', 'no list', () => null, 'the list of placements is no list'],
  [
    'place',
    'an instance that is not there',
    (a: readonly object[]) => a.map((p) => ({ ...p, on: 'i-none' })),
    'there is no instance i-none for',
  ],
  ['order', 'no placements', () => ({}), 'the answer is not {placements'],
  ['queue', 'nothing', () => null, 'the answer is not {leftovers, '],
  ['speculate', 'a copy of nothing', () => [{ of: 'a-none', reason: '' }], 'it copies a-none, which does not run'],
  [
    'scale',
    'a pool that does not exist',
    (a: { purchases: readonly object[] }) => ({ ...a, purchases: a.purchases.map((p) => ({ ...p, pool: 'none' })) }),
    'the pool none does not exist',
  ],
  [
    'scale',
    'NaN instances',
    (a: { purchases: readonly object[] }) => ({ ...a, purchases: a.purchases.map((p) => ({ ...p, count: NaN })) }),
    'it buys NaN instances in',
  ],
  [
    'scale',
    'more than the limit on vCPUs',
    (a: { purchases: readonly object[] }) => ({ ...a, purchases: a.purchases.map((p) => ({ ...p, count: 1e6 })) }),
    'the limit is 64',
  ],
  [
    'scale',
    'gives back what is not held',
    (a: object) => ({ ...a, releases: [{ instance: 'i-none', reason: '' }] }),
    'it gives back i-none, which is not held',
  ],
];

const withWeights = (of: RuntimeForecast, weight: Float64Array): RuntimeForecast => ({
  ...of,
  runtime: { ...of.runtime, weight },
});
const FORECASTS: readonly (readonly [string, (of: RuntimeForecast) => unknown, string])[] = [
  ['nothing', () => undefined, 'no forecast for the stage'],
  ['no distribution', (of) => ({ ...of, runtime: 600 }), 'the running time of the forecast for'],
  [
    'weights of 0',
    (of) =>
      withWeights(
        of,
        of.runtime.weight.map(() => 0),
      ),
    'a weight that is no number above 0: 0',
  ],
  [
    'NaN weights',
    (of) =>
      withWeights(
        of,
        of.runtime.weight.map(() => NaN),
      ),
    'a weight that is no number above 0: NaN',
  ],
  [
    'weights of 2',
    (of) =>
      withWeights(
        of,
        of.runtime.weight.map((w) => 2 * w),
      ),
    'weights whose sum is',
  ],
  ['no points', (of) => ({ ...of, runtime: kitOf(0) }), 'has 0 points'],
  ['too many points', (of) => ({ ...of, runtime: kitOf(5000) }), 'has 5000 points'],
  ['times that descend', (of) => ({ ...of, runtime: descending }), 'running times that do not ascend'],
  ['an unknown basis', (of) => ({ ...of, basis: 'hope' }), 'basis of the forecast for'],
  ['no reason', (of) => ({ ...of, reason: undefined }), 'the reason of the forecast for'],
  ['evidence that is none', (of) => ({ ...of, evidence: 5 }), 'the evidence of the forecast for'],
];
const kitOf = (points: number) => ({
  atS: Float64Array.from({ length: points }, (_, i) => i),
  weight: new Float64Array(points).fill(1 / points),
});
const descending = { atS: Float64Array.of(600, 60), weight: Float64Array.of(0.5, 0.5) };

describe('a policy of the user’s own that answers nonsense', () => {
  it.each(FORECASTS)('at estimate, %s: refused for what is wrong', async (_, spoil, text) => {
    const { events, refusedPolicies } = await runWith('estimate', (standIn) => (context: EstimateContext) => {
      const shipped = (standIn as EstimatePolicy)(context);
      return { get: (key: string) => spoil(invariant(shipped.get(key), 'the stage has a forecast')) };
    });
    expect(refusedPolicies).toMatchObject([{ stage: 'estimate', firstWhy: expect.stringContaining(text) }]);
    expect(typesOf(events)).toEqual(typesOf(whole.events));
  });

  it.each([
    ['not spot, at no price', 'on-demand', 1e-9, 'on-demand capacity is bought `uncapped`'],
    ['spot, below its price', 'spot', 0.01, 'the price is 0.04 USD per hour'],
    ['spot, below nothing', 'spot', -1, 'it is no price'],
  ])('at scale, a purchase of %s: refused, and nothing is free', async (_, option, bid, text) => {
    const { events, refusedPolicies } = await runWith('scale', (standIn) => (input: ScaleInput) => {
      const { purchases, releases } = (standIn as ScalePolicy)(input);
      const pool = input.snapshot.pools.find((p) => p.pool.option === option)?.pool.id;
      return { purchases: purchases.map((p) => ({ ...p, pool, bid })), releases };
    });
    expect(refusedPolicies).toMatchObject([{ stage: 'scale', firstWhy: expect.stringContaining(text) }]);
    expect(typesOf(events)).toEqual(typesOf(whole.events));
  });

  it.each(STAGES.filter((stage) => stage !== 'plan'))(
    'at %s, a promise that is rejected: refused, and nobody else hears of it',
    async (stage) => {
      const answer = () => Promise.reject(new Error('later'));
      const heard: unknown[] = [];
      const hear = (error: unknown) => void heard.push(error);
      process.on('unhandledRejection', hear);
      const moves = { propose: answer, begin: answer, returning: answer, vacate: answer };
      const { events, refusedPolicies } = await runWith(stage, () => (stage === 'move' ? moves : answer));
      await new Promise((resolve) => setTimeout(resolve, 0));
      process.off('unhandledRejection', hear);
      expect(heard).toEqual([]);
      const firstWhy = 'it answers a promise: only `plan` may be asynchronous';
      expect(refusedPolicies).toMatchObject([{ stage, firstWhy }]);
      expect(typesOf(events)).toEqual(typesOf(whole.events));
    },
  );

  it('at place, a list of promises that are rejected: likewise', async () => {
    const heard: unknown[] = [];
    const hear = (error: unknown) => void heard.push(error);
    process.on('unhandledRejection', hear);
    const later = (tasks: readonly object[]) => tasks.map(() => Promise.reject(new Error('later')));
    const { refusedPolicies } = await runWith('place', () => later);
    await new Promise((resolve) => setTimeout(resolve, 0));
    process.off('unhandledRejection', hear);
    expect([heard, refusedPolicies.length]).toEqual([[], 1]);
  });

  it.each(NONSENSE)(
    'at %s, %s: refused for what is wrong, and nothing is done by it',
    async (stage, _, spoil, text) => {
      const { events, refusedPolicies } = await runWith(stage, (standIn) => {
        const shipped = standIn as (...asked: readonly unknown[]) => never;
        return (...asked: readonly unknown[]) => spoil(shipped(...asked));
      });
      expect(refusedPolicies).toMatchObject([{ stage, policy: 'my-own', firstWhy: expect.stringContaining(text) }]);
      expect(typesOf(events)).toEqual(typesOf(whole.events));
    },
  );
});

it('a moved task, a group that is no more, and a reason that is no text are refused where they are met', async () => {
  const { refusedPolicies } = await runWith('move', (standIn) => {
    const { begin, returning, vacate } = standIn as MovePolicy;
    return {
      begin,
      returning,
      vacate,
      propose: ({ snapshot }: DecisionContext) =>
        snapshot.running.map((running) => ({ attempt: running.attempt.id, running, reason: 'on' })),
    };
  });
  expect(refusedPolicies).toMatchObject([
    { stage: 'move', firstWhy: expect.stringContaining('with records that are not its own') },
  ]);
});

it('a policy that wraps one inherits where it buys: work is planned there alone', async () => {
  const launches = async (inherits: boolean) => {
    const { decide, stage, buys, ...shipped } = POLICY_KIT.shipped('scale', 'on-demand');
    const spec = { ...shipped, stage, ...(inherits && buys && { buys }), name: 'my-own', about: 'under test', decide };
    const presets = { mine: { extends: 'greedy', scale: 'my-own' } };
    const { events } = await simulated(jobs(), { deciders: decidersNamed('mine', presets, [ownPolicy(spec, 'a.ts')]) });
    const done = events.filter((e) => e.type === 'job-succeeded').length;
    return { done, launches: events.filter((e) => e.type === 'instance-requested').length };
  };
  const unwrapped = await simulated(jobs(), {
    deciders: decidersNamed('mine', { mine: { extends: 'greedy', scale: 'on-demand' } }),
  });
  const bought = unwrapped.events.filter((e) => e.type === 'instance-requested').length;
  expect(await launches(true)).toEqual({ done: 4, launches: bought });
  // Else it is planned on spot, where nothing is bought: instances for it are given back by the next plans.
  expect((await launches(false)).launches).toBeGreaterThan(2 * bought);
});

it('a policy that wraps one without its questions may not ask them, and is told so', async () => {
  const { decide } = POLICY_KIT.shipped('appraise', 'cost-and-risk');
  const spec = { stage: 'appraise', name: 'my-own', about: 'under test', decide };
  const presets = { mine: { extends: 'greedy', appraise: 'my-own' } };
  const deciders = decidersNamed('mine', presets, [ownPolicy(spec, 'a.ts')]);
  const { events, refusedPolicies } = await simulated(jobs(), { deciders });
  expect(refusedPolicies).toMatchObject([
    { stage: 'appraise', firstWhy: expect.stringContaining('the policy my-own asks for the ') },
  ]);
  expect(typesOf(events)).toEqual(typesOf(whole.events));
});

it('a decision that fails although its answers passed their checks is made again by the stand-ins', async () => {
  const of = ownPolicy(
    { stage: 'place', name: 'my-own', about: 'under test', decide: POLICY_KIT.shipped('place', 'stratus').decide },
    'test.ts',
  );
  const made = decidersNamed('mine', { mine: { extends: 'greedy', place: 'my-own' } }, [of]);
  const { events, refusedPolicies } = await simulated(jobs(), {
    deciders: (truth) => {
      const deciders = made(truth);
      return { ...deciders, stages: { ...deciders.stages, value: throwing } };
    },
  });
  expect(typesOf(events)).toEqual(typesOf(whole.events));
  expect(refusedPolicies).toMatchObject([
    { stage: 'place', policy: 'my-own', standIn: 'stratus-balanced', firstWhy: 'a decision failed: boo' },
  ]);
});

it('a report says how often answers were refused, and who answered', async () => {
  const result = await runWith('place', () => throwing);
  const { refusedPolicies } = outcomeOf(result, { preset: 'mine', seed: 1, marketSeed: null, fromMs: START_MS });
  const [{ times } = { times: 0 }] = refusedPolicies as readonly RefusedPolicy[];
  expect(times).toBeGreaterThan(1);
  const outcome = outcomeOf(result, { preset: 'mine', seed: 1, marketSeed: null, fromMs: START_MS });
  const warnings = warningsOf({ presets: [], method: { units: 30 } as never, runs: [outcome], planned: ['mine'] });
  expect(warnings).toContain(
    `Answers of the policy mine: place: my-own were refused ${times} times, and stratus-balanced answered in its place. First: it threw: TypeError: boo.`,
  );
});

it('shipped policies pass the checks themselves', async () => {
  for (const stage of STAGES) {
    const { events, refusedPolicies } = await runWith(stage, (standIn) => standIn);
    expect([stage, refusedPolicies]).toEqual([stage, []]);
    expect(typesOf(events)).toEqual(typesOf(whole.events));
  }
});
