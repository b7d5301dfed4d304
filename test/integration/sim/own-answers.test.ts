import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { STAGES, type StageName } from '../../../lib/domain/preset-spec.ts';
import type { Snapshot } from '../../../lib/domain/snapshot.ts';
import { invariant } from '../../../lib/kernel/errors.ts';
import { epochMs, seconds } from '../../../lib/kernel/units.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { decidersNamed } from '../../../lib/drivers/sim/deciders.ts';
import type { AppraisedMoves, GroupOffers, Move, Queued, Started } from '../../../lib/policy/contracts.ts';
import { guarded } from '../../../lib/policy/own/guarded.ts';
import { frozen } from '../../../lib/policy/own/read-only.ts';
import { Refusals } from '../../../lib/policy/own/refusals.ts';
import { resources } from '../../support/builders.ts';
import { SAVES } from '../../support/decision-scene.ts';
import { onOffMarket, START } from '../../support/on-off-market.ts';
import { zones } from '../../support/observed-run.ts';
import { allWrapped, decidersWith, wrapped, wreck, type Call } from '../../support/own-preset.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';
import { spoiledEach } from '../../support/spoiled.ts';

const HOUR_S = 3600;
const trace = zones(
  { name: 'a', usdPerHour: 0.05, outages: [[1800, 5400]] },
  { name: 'b', usdPerHour: 0.06, outages: [[4000, 9000]] },
);
const stage = (vcpus: number, hours: number) => ({
  resources: resources(vcpus),
  expectedRuntimeS: seconds(hours * HOUR_S),
});
/** Work that waits, moves, is pre-empted and queues, on a vCPU limit that is full. */
const jobs = () => [
  simulatedJob('long', 0, [2 * HOUR_S, 2 * HOUR_S], { stage: stage(1, 2) }),
  simulatedJob('tight', 60, [HOUR_S], { deadlineS: 1.4 * HOUR_S, stage: stage(4, 1) }),
  simulatedJob('gang', 120, [1200, 1200], { deadlineS: 4 * HOUR_S, stage: { ...stage(3, 0.4), gang: true } }),
  simulatedJob('short', 300, new Array<number>(20).fill(60), { stage: stage(1, 0.02) }),
  simulatedJob('roomy', 300, [HOUR_S, HOUR_S], { deadlineS: 8 * HOUR_S, stage: stage(2, 1) }),
];
const on = (deciders: Parameters<typeof simulated>[1] & {}) =>
  simulated(jobs(), { trace, market: (now) => replayMarket(trace, now), vcpus: 8, ...deciders });

describe.each(['greedy', 'on-demand', 'spot-greedy', 'uniform-progress', 'fleet', 'spot-fleet'])(
  'the policies of %s as the user’s own',
  (preset) => {
    it('decide as they do themselves, and nothing of theirs is refused', async () => {
      const shipped = await on({ deciders: decidersNamed(preset) });
      const { events, refusedPolicies } = await on({
        deciders: decidersWith(
          preset,
          allWrapped(preset, (call) => call),
        ),
      });
      expect(refusedPolicies).toEqual([]);
      expect(events).toEqual(shipped.events);
    });
  },
);

it.each(STAGES)('a policy at %s cannot change what it is given', async (stage) => {
  const shipped = await on({ deciders: decidersNamed('greedy') });
  const wrecking = wrapped('greedy', stage, () => (...asked) => {
    for (const given of asked) wreck(given);
    throw new TypeError('boo');
  });
  const { events, refusedPolicies } = await on({ deciders: decidersWith('greedy', [wrecking]) });
  expect(events.filter((e) => e.type !== 'policy-refused').map(textOf)).toEqual(shipped.events.map(textOf));
  expect(refusedPolicies).toMatchObject([{ stage, firstWhy: 'it threw: TypeError: boo' }]);
});
const textOf = ({ type, text }: { readonly type: string; readonly text: string }): string => `${type}: ${text}`;

/** A call of one function of a policy, with its answer. */
interface Called {
  readonly stage: StageName;
  readonly asked: readonly unknown[];
  readonly answer: unknown;
}

const sizeOf = (part: unknown): number =>
  Array.isArray(part) ? part.length : part instanceof Map || part instanceof Set ? part.size : 0;
/** How many parts of an answer are there. */
const fullness = (answer: unknown): number => {
  if (typeof answer !== 'object' || answer === null) return 0;
  return sizeOf(answer) > 0 ? 1 : Object.values(answer).filter((part) => sizeOf(part) > 0).length;
};

/** The fullest answer of each function in simulations. */
async function fullest(): Promise<ReadonlyMap<string, Called>> {
  const calls = new Map<string, Called>();
  const record =
    (stage: StageName) =>
    (call: Call, name: string): Call =>
    (...asked) => {
      const answer = call(...asked);
      const keep = (made: unknown) => {
        const known = calls.get(name);
        if (known === undefined || fullness(made) > fullness(known.answer))
          calls.set(name, { stage, asked, answer: made });
      };
      if (answer instanceof Promise) void answer.then(keep);
      else keep(answer);
      return answer;
    };
  const deciders = decidersWith(
    'greedy',
    STAGES.map((of) => wrapped('greedy', of, record(of))),
  );
  // The vCPU limit allows two instances. One of two urgent tasks finds room; best-effort work stops for the other one.
  const fixed = { ...stage(2, 1), constraints: { purchaseOptions: ['on-demand'] as const } };
  const full = [
    simulatedJob('fill', 0, new Array<number>(3).fill(2 * HOUR_S), { stage: fixed }),
    simulatedJob('urgent', 600, [HOUR_S, HOUR_S], { deadlineS: 1.3 * HOUR_S, stage: fixed }),
  ];
  await simulated(full, { trace, market: (now) => replayMarket(trace, now), vcpus: 8, deciders });
  await on({ deciders });
  // Ten hours of work that leaves spot for want of it, and goes back.
  const spot = onOffMarket([
    [0, 2],
    [8, 40],
  ]);
  const going = simulatedJob('going', 0, [36_000], {
    deadlineS: 94_000,
    stage: { ...stage(4, 10), checkpoint: SAVES },
  });
  const fromMs = epochMs(START);
  await simulated([going], {
    trace: spot,
    market: (now) => replayMarket(spot, now),
    fromMs,
    toMs: spot.endMs,
    config: schedulerConfig.parse({ lateBudget: 0 }),
    deciders,
  });
  return calls;
}
const calls = await fullest();

interface Asked {
  readonly snapshot: Snapshot;
  readonly moves: readonly Move[];
}

/** Parts that no shipped policy happened to answer. */
function withMore(name: string, { stage, asked, answer }: Called): Called {
  const { snapshot, moves } = asked.find((a) => Object.hasOwn(a as object, 'snapshot')) as Asked;
  const { groups, running, pools } = snapshot;
  if (name === 'plan') {
    const more = {
      preemptions: running.slice(0, 1).map(({ attempt }) => ({ attempt: attempt.id, reason: 'for others' })),
      waits: groups.slice(0, 1).map(({ id }) => ({ group: id, count: 1, why: 'capacity', detail: '', quota: 'L-1' })),
      moves: moves.map(({ running: r, reason, to }) => ({ running: r, reason, ...(to !== undefined && { to }) })),
    };
    return { stage, asked, answer: { ...(answer as object), ...more } };
  }
  if (name === 'speculate') {
    const to = { pool: pools.find((p) => p.pool.option === 'spot')?.pool.id, bid: 'uncapped' };
    const copies = running.slice(0, 1).map((r) => ({ of: r.attempt.id, reason: 'it is slow', to, attempts: 2 }));
    return { stage, asked, answer: copies };
  }
  if (name === 'returning') {
    const stopping = running.slice(0, 1).map((r) => frozen({ ...r, attempt: { ...r.attempt, state: 'stopping' } }));
    return { stage, asked: [{ snapshot: { ...snapshot, running: stopping } }], answer: stopping };
  }
  if (name === 'order' || name === 'queue') {
    const { leftovers, placements, ...of } = answer as Queued & Partial<Started>;
    const own = placements?.map((p) => ({ ...p, task: { ...p.task } }));
    return {
      stage,
      asked,
      answer: { ...of, ...(own && { placements: own }), leftovers: leftovers.map((l) => ({ ...l })) },
    };
  }
  return { stage, asked, answer };
}

function callOf(name: string): Called {
  const called = invariant(calls.get(name), `${name} was called`);
  // Contexts with something that runs.
  const { asked } = invariant(calls.get('propose'), 'moves were proposed');
  return withMore(name, name === 'speculate' || name === 'returning' ? { ...called, asked } : called);
}

const STOOD = Symbol('answered by the stand-in');

/** What is said of an answer; null: it is used. */
async function refusalOf({ stage, asked, answer }: Called, name: string): Promise<string | null> {
  const refusals = new Refusals();
  const contract = (call: () => unknown): never =>
    (stage === 'move' ? { [name]: call, propose: call, begin: call, returning: call, vacate: call } : call) as never;
  const of = guarded(
    stage,
    { policy: 'mine', contract: contract(() => answer) },
    { policy: 'shipped', contract: contract(() => STOOD) },
    refusals,
  );
  const call = (stage === 'move' ? (of as never)[name] : of) as Call;
  const made = await call(...asked);
  // Parts that are read when they are asked for.
  const offers = name === 'begin' ? (made as AppraisedMoves).offers : made;
  if (offers instanceof Map) for (const { considered } of offers.values() as Iterable<GroupOffers>) void considered;
  return refusals.take()[0]?.why ?? null;
}

const NAMES = [
  'value',
  'appraise',
  'propose',
  'begin',
  'returning',
  'plan',
  'order',
  'place',
  'queue',
  'speculate',
  'scale',
];

/** Records that the policy was given are frozen. */
const isGiven = (value: unknown): boolean => Object.isFrozen(value) && !Array.isArray(value);

/** Fields that are spoiled, among others: the answers are not empty. */
const SPOILED: Readonly<Record<string, readonly string[]>> = {
  value: ['.groups.key', '.groups.value.curve.points.entry.usd'],
  appraise: ['.key', '.value.offers.entry.bid', '.value.considered.entry.verdict'],
  propose: ['.entry.running', '.entry.view'],
  begin: ['.moves.entry', '.worths.value', '.groups.value', '.offers.value.offers.entry.share'],
  plan: ['.starts.entry.count', '.preemptions.entry.attempt', '.waits.entry.why', '.solve.gap'],
  order: ['.placements.entry.task.index', '.reserved.entry.on', '.needed.entry'],
  place: ['.entry.task', '.entry.on'],
  queue: ['.leftovers.entry.group', '.leftovers.entry.count', '.leftovers.entry.runtimeS'],
  speculate: ['.entry.of', '.entry.to.bid', '.entry.attempts'],
  scale: ['.purchases.entry.bid', '.purchases.entry.count'],
};

/** Fields that may be absent. */
const OPTIONAL = /\.(to|quota|opens|preferenceUsd|attempts|ranS|mayBeDue|inPool|savedUsd|riskUsd|restarts)$/;
const NULLABLE = /\.(taskDeadlineMs|latestSafeStartMs|bound|boundKind|gap|gapOfCost)$/;
const NEGATIVE = /(Usd|\.usd|Ms|objective|Objective|bound|gap|gapOfCost)$/;
/** Fields of a moved group that follow from the move, and are not read. */
const FOLLOWS = /^\.groups\.value\.(?!keptS|ranS)/;

describe.each(NAMES)('each field of the answer of %s', (name) => {
  it.each([
    ['NaN', NaN, null],
    ['infinite', Infinity, null],
    ['a function', () => 1, null],
    ['a symbol', Symbol('x'), null],
    ['an empty object', {}, null],
    ['less than nothing', -5, NEGATIVE],
    ['null', null, NULLABLE],
    ['undefined', undefined, OPTIONAL],
  ])('is refused where it is %s', async (what, spoil, allowed) => {
    const called = callOf(name);
    expect(await refusalOf(called, name)).toBe(null);
    const seen: string[] = [];
    for (const { path, answer } of spoiledEach(called.answer, { spoil, isGiven })) {
      seen.push(path);
      if (allowed?.test(path) === true || FOLLOWS.test(path)) continue;
      if ((await refusalOf({ ...called, answer }, name)) === null) throw new Error(`${name}${path} may be ${what}`);
    }
    expect(seen.length).toBeGreaterThan(2);
    expect(seen).toEqual(expect.arrayContaining([...(SPOILED[name] ?? [])]));
  });
});
