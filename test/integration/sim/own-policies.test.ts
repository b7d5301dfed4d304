import { describe, expect, it } from '@jest/globals';
import { STAGES, type StageName } from '../../../lib/domain/preset-spec.ts';
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
  const of = ownPolicy(
    {
      stage,
      name: 'my-own',
      about: 'under test',
      asks: { bids: () => ['uncapped'], held: true, horizon: 'any', prices: true, correlations: true },
      decide: () => answer(POLICY_KIT.shipped(stage, standIn)),
    },
    'test.ts',
  );
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

/** Nonsense by stage: what the answer of the shipped policy becomes, and what is said of it. */
type Spoil = (answer: never) => unknown;
const NONSENSE: readonly (readonly [StageName, string, Spoil, string])[] = [
  ['value', 'no worths', () => ({}), 'the answer is not {groups, ofRunning}'],
  ['appraise', 'nothing', () => undefined, 'the answer is no map of offers by group'],
  ['appraise', 'no group', () => new Map(), 'has no list of offers'],
  ['plan', 'nothing', () => Promise.resolve(undefined), 'has not the form of the contract'],
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
  ['place', 'no list', () => null, 'the answer is no list of placements'],
  [
    'place',
    'an instance that is not there',
    (a: readonly object[]) => a.map((p) => ({ ...p, on: 'i-none' })),
    'there is no instance i-none for',
  ],
  ['order', 'no placements', () => ({}), 'the answer is not {placements'],
  ['queue', 'nothing', () => null, 'has not the form of the contract'],
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

describe('a policy of the user’s own that answers nonsense', () => {
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

it('a decision that fails although its answers passed their checks is made again by the stand-ins', async () => {
  const of = ownPolicy(
    { stage: 'place', name: 'my-own', about: 'under test', decide: () => POLICY_KIT.shipped('place', 'stratus') },
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
    { stage: 'place', policy: 'my-own', standIn: 'stratus', firstWhy: 'a decision failed: boo' },
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
    `Answers of the policy mine: place: my-own were refused ${times} times, and stratus answered in its place. First: it threw: TypeError: boo.`,
  );
});

it('shipped policies pass the checks themselves', async () => {
  for (const stage of STAGES) {
    const { events, refusedPolicies } = await runWith(stage, (standIn) => standIn);
    expect([stage, refusedPolicies]).toEqual([stage, []]);
    expect(typesOf(events)).toEqual(typesOf(whole.events));
  }
});
