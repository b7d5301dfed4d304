import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Attempt, StageSpec } from '../../../lib/domain/job.ts';
import type { Explanation } from '../../../lib/domain/plan.ts';
import { jobId, poolId, type InstanceId } from '../../../lib/kernel/ids.ts';
import { epochMs, plus, raw, seconds, type EpochMs } from '../../../lib/kernel/units.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/price-steps.ts';
import type { Move, MovePolicy } from '../../../lib/policy/contracts.ts';
import type { Fleet } from '../../../lib/ports/fleet.ts';
import { moving } from '../../../lib/stages/move/moves.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { Crashes, type CrashPoint } from '../../support/crashing.ts';
import { discrepancies, EngineBench, NOTHING_BETWEEN, work, type Between } from '../../support/engine-bench.ts';
import { after, START_MS } from '../../support/mixed-workload.ts';

/** One task that begins in the cheaper zone a, and is moved to zone b once it has run for five minutes. */

const DAY_MS = 86_400_000;
const RUNS_S = 3000;
/** Time that the move takes to save. */
const MOVES_S = 60;
const MOVE_AFTER_S = 300;
const JOB = jobId('j-moves');
const THERE = poolId('c5.xlarge/b/spot');

const market = (zone: string, usdPerHour: number, goneS: number | null): SpotMarket => ({
  type: { name: 'c5.xlarge', family: 'c5', generation: 5, arch: 'x86_64', capacity: resources(4, 8192) },
  zone,
  onDemandUsdPerHour: 0.17,
  prices: { atMs: Float64Array.of(raw(START_MS) - DAY_MS), usdPerHour: Float64Array.of(usdPerHour) },
  availability:
    goneS === null
      ? null
      : {
          atMs: Float64Array.of(raw(START_MS) - DAY_MS, raw(after(goneS))),
          available: Uint8Array.of(1, 0),
        },
});

/** `goneS`: from when zone a has no capacity, s after the start. */
const trace = (goneS: number | null = null) =>
  traceOf({ name: 'two', startMs: epochMs(raw(START_MS) - DAY_MS), endMs: epochMs(raw(START_MS) + DAY_MS) }, [
    market('a', 0.04, goneS),
    market('b', 0.06, null),
  ]);

/** Moves each first attempt to zone b, with a word on the money. */
const toZoneB = (over: Partial<Move> = {}): MovePolicy =>
  moving(({ snapshot }) =>
    snapshot.running.flatMap((running): Move[] => {
      const { attempt } = running;
      const view = snapshot.instances.get(attempt.instance);
      const isDue = attempt.startedMs !== null && raw(snapshot.nowMs) - raw(attempt.startedMs) >= MOVE_AFTER_S * 1000;
      if (view === undefined || attempt.state !== 'running' || attempt.number > 1 || !isDue) return [];
      const to = { pool: THERE, bid: 'uncapped' as const };
      return [{ attempt: attempt.id, reason: 'as told', running, view, to, savedUsd: 0.25, riskUsd: 0.01, ...over }];
    }),
  );

interface Told {
  readonly goneS?: number | null;
  readonly movesS?: number;
  readonly stage?: Partial<StageSpec>;
  readonly move?: MovePolicy;
  /** What comes between engine and fleet. */
  readonly fleet?: (fleet: Fleet, bench: EngineBench) => Fleet;
  /** Something that happens at a time. */
  readonly at?: { readonly atMs: EpochMs; readonly act: (bench: EngineBench) => void };
  readonly points?: readonly CrashPoint[];
}

async function run(told: Told = {}) {
  const { goneS = null, movesS = MOVES_S, move = toZoneB() } = told;
  const bench = new EngineBench({
    trace: trace(goneS),
    startMs: START_MS,
    config: { refundRule: 'none' },
    stages: (of) => ({ ...of, move }),
  });
  const crashes = new Crashes(told.points ?? [], bench.clock);
  const explained: NonNullable<Explanation['moves']>[number][] = [];
  const placed: string[] = [];
  const env = { ...work(RUNS_S), MOVES_S: String(movesS) };
  const checkpoint = { signal: 'SIGUSR2', graceS: seconds(30), everyS: null } as const;
  const one = stage({ env, resources: resources(2), expectedRuntimeS: seconds(RUNS_S), checkpoint, ...told.stage });
  await bench.submit([job({ name: JOB, submittedMs: START_MS, spec: spec({ name: 'moves', stages: [one] }) })]);
  const { at } = told;
  const watched: Between = {
    store: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          const original: unknown = Reflect.get(target, name);
          if (name !== 'commit') return typeof original === 'function' ? (original.bind(target) as unknown) : original;
          return async (...args: Parameters<typeof store.commit>) => {
            for (const change of args[1]) {
              if (change.put !== 'plan') continue;
              explained.push(...change.value.explanations.flatMap((e) => e.moves ?? []));
              placed.push(...change.value.explanations.flatMap((e) => e.placed.map((p) => p.why)));
            }
            await store.commit(...args);
          };
        },
      }),
    fleet: (fleet) => told.fleet?.(fleet, bench) ?? fleet,
  };
  const through = (): Between => {
    const between = told.points === undefined ? NOTHING_BETWEEN : crashes.between();
    return { store: (s) => watched.store(between.store(s)), fleet: (f) => watched.fleet(between.fleet(f)) };
  };
  await bench.drive({
    through,
    deeds: at === undefined ? [] : [{ atMs: at.atMs, act: async () => at.act(bench) }],
  });
  const attempts = await bench.store.attempts(JOB);
  return { bench, crashes, attempts, explained, placed, events: await bench.store.events(0, 10_000) };
}

type Ran = Awaited<ReturnType<typeof run>>;

/** Nothing is unaccounted for, the task was done once, and of its attempts at most one lived at a time. */
async function expectWhole({ bench, attempts }: Ran): Promise<void> {
  expect(await discrepancies(bench)).toEqual([]);
  expect((await bench.job(JOB)).state).toBe('succeeded');
  expect([...bench.completions().values()]).toEqual([1]);
  attempts.forEach((a, i) => {
    const before = attempts[i - 1];
    if (before !== undefined) expect(raw(before.endedMs!)).toBeLessThanOrEqual(raw(a.placedMs));
  });
}

const chain = ({ attempts }: Ran) => attempts.map((a) => a.outcome);
const workedUntil = (a: Attempt, at: EpochMs): number => (raw(at) - raw(a.startedMs!)) / 1000;

describe('a move to a pool in which nothing is held', () => {
  let calm: Ran;
  let [first, second] = [] as unknown as [Attempt, Attempt];
  beforeAll(async () => {
    calm = await run();
    [first, second] = calm.attempts as [Attempt, Attempt];
  });

  it('ends one attempt as moved, with its target, and the next one names it', async () => {
    await expectWhole(calm);
    expect(chain(calm)).toEqual(['moved', 'succeeded']);
    expect(first.goesTo).toBe(second.instance);
    expect(second.movedFrom).toBe(first.id);
    expect(second.reservedMs).toEqual(first.leaving!.sinceMs);
    expect(first.reason).toContain('as told');
    const task = (await calm.bench.store.tasks(JOB))[0]!;
    expect([task.goesTo, task.departed]).toEqual([undefined, undefined]);
    const target = (await calm.bench.store.instances(null, 10, null)).items.find((i) => i.id === second.instance)!;
    expect([target.pool, target.reservations]).toEqual([THERE, undefined]);
    expect(calm.placed.at(-1)).toContain(`runs on ${second.instance}`);
    expect(calm.placed.at(-1)).toContain('it moved here from another instance');
    expect(calm.placed[0]).not.toContain('moved here');
  });

  it('loses the time of the transfer alone: what was done is kept, and the task waits for no room', () => {
    const { sinceMs } = first.leaving!;
    expect(raw(first.endedMs!) - raw(sinceMs)).toBe(MOVES_S * 1000);
    expect(raw(second.resumedFromS)).toBeCloseTo(workedUntil(first, sinceMs), 6);
    expect(raw(second.startedMs!) - raw(first.endedMs!)).toBeLessThan(5000);
    expect(raw(second.keptS) + raw(second.resumedFromS)).toBeCloseTo(RUNS_S, 6);
  });

  it('is an account of its own in the ledger, on both instances', async () => {
    const rows = await calm.bench.store.ledger({ job: JOB });
    const of = (a: Attempt) =>
      Object.fromEntries(
        rows.filter((r) => r.attempt === a.id).map((r) => [r.kind, (raw(r.toMs) - raw(r.fromMs)) / 1000]),
      );
    expect(of(first)).toEqual({ work: workedUntil(first, first.leaving!.sinceMs), moved: MOVES_S });
    expect(of(second)).toEqual({
      moved: (raw(second.startedMs!) - raw(second.reservedMs!)) / 1000,
      work: raw(second.keptS),
    });
    const [costs] = await calm.bench.store.costs('job');
    expect(costs!.wastedUsd).toBe(0);
    expect(costs!.movedUsd).toBeGreaterThan(0);
  });

  it('is told as events, and explained from its beginning to its end', () => {
    const types = calm.events.map((e) => e.type).filter((t) => t.startsWith('attempt-'));
    expect(types).toEqual([
      'attempt-starting',
      'attempt-stopping',
      'attempt-moved',
      'attempt-starting',
      'attempt-succeeded',
    ]);
    const texts = calm.events.map((e) => e.text);
    expect(texts).toContainEqual(
      expect.stringContaining(`main[0] moves from ${first.instance} to ${second.instance}: as told`),
    );
    expect(texts).toContainEqual(expect.stringContaining(`it moved from ${first.instance}`));
    const states = [...new Set(calm.explained.map((m) => m.state))];
    expect(states).toEqual(['waits', 'saves', 'arrives']);
    for (const m of calm.explained) {
      expect(m).toMatchObject({ stage: 'main', index: 0, savedUsd: 0.25, riskUsd: 0.01 });
      expect(m.why).toContain('as told');
      expect(m.from).toEqual({ instance: first.instance, pool: poolId('c5.xlarge/a/spot') });
      expect(m.to.pool).toBe(THERE);
    }
    expect(new Set(calm.explained.map((m) => m.to.instance))).toEqual(new Set([null, second.instance]));
  });

  it('is the same, and loses nothing, wherever the engine dies', async () => {
    const { calls } = (await run({ points: [] })).crashes;
    // From the cycle that buys the target to the one after the arrival.
    const stop = calls.indexOf('fleet.stop');
    const starts = calls.flatMap((c, i) => (c === 'fleet.start' ? [i] : []));
    const [from, to] = [calls.lastIndexOf('fleet.launch') - 6, (starts[1] ?? 0) + 8];
    expect([from < stop, stop < to, starts.length]).toEqual([true, true, 2]);
    for (let call = from; call <= to; call++) {
      for (const when of ['before', 'after'] as const) {
        const ran = await run({ points: [{ call, when }] });
        expect([call, when, chain(ran), ran.bench.engines]).toEqual([call, when, ['moved', 'succeeded'], 2]);
        await expectWhole(ran);
        // An engine that died between the plan and the order to the fleet gives the order when it is up again.
        const [left, on] = ran.attempts as [Attempt, Attempt];
        const doneS = raw(on.resumedFromS) - workedUntil(left, left.leaving!.sinceMs);
        expect([call, when, doneS >= 0 && doneS < 10]).toEqual([call, when, true]);
      }
    }
  }, 120_000);

  it('goes on elsewhere where its target dies while it saves', async () => {
    const target = second.instance;
    const atMs = plus(first.leaving!.sinceMs, seconds(MOVES_S / 2));
    const ran = await run({ at: { atMs, act: (bench) => bench.fleet.lose(target) } });
    await expectWhole(ran);
    expect(chain(ran)).toEqual(['moved', 'succeeded']);
    const [left, on] = ran.attempts;
    expect([left!.goesTo, on!.movedFrom, on!.reservedMs]).toEqual([target, undefined, undefined]);
    expect(on!.instance).not.toBe(target);
    expect(raw(on!.resumedFromS)).toBeCloseTo(workedUntil(left!, left!.leaving!.sinceMs), 6);
    // The room that was kept in vain is of the job all the same.
    const kept = (await ran.bench.store.ledger({ instance: target })).filter((r) => r.kind === 'moved');
    expect(kept.map((r) => [r.job, r.attempt])).toEqual([[JOB, left!.id]]);
  });

  it('goes on elsewhere where its target dies once it has saved, before it has begun there', async () => {
    let lost: InstanceId | null = null;
    const ran = await run({
      fleet: (fleet, bench) =>
        new Proxy(fleet, {
          get: (of, name: keyof Fleet) => {
            if (name !== 'start') return of[name]?.bind(of);
            return async (requests: Parameters<Fleet['start']>[0]) => {
              const again = requests.find((r) => r.task.number === 2);
              if (again !== undefined && lost === null) bench.fleet.lose((lost = again.instance));
              return of.start(requests);
            };
          },
        }),
    });
    await expectWhole(ran);
    expect(chain(ran)).toEqual(['moved', 'interrupted', 'succeeded']);
    expect(ran.attempts[1]).toMatchObject({ startedMs: null, movedFrom: ran.attempts[0]!.id });
    expect(ran.attempts[2]!.movedFrom).toBeUndefined();
    expect(raw(ran.attempts[2]!.resumedFromS)).toBeGreaterThanOrEqual(MOVE_AFTER_S);
  });

  it('goes on at its target with what it has where its source is lost while it saves', async () => {
    const { instance } = first;
    const atMs = plus(first.leaving!.sinceMs, seconds(MOVES_S / 2));
    const ran = await run({ at: { atMs, act: (bench) => bench.fleet.lose(instance) } });
    await expectWhole(ran);
    expect(chain(ran)).toEqual(['interrupted', 'succeeded']);
    expect(ran.attempts[1]).toMatchObject({ movedFrom: first.id, resumedFromS: seconds(0) });
    const rows = await ran.bench.store.ledger({ job: JOB });
    const kinds = rows.filter((r) => r.attempt === first.id).map((r) => r.kind);
    expect(kinds.sort()).toEqual(['moved', 'wasted']);
  });

  it.each([
    ['saves within the notice of an interruption that comes meanwhile', 100, 'moved', false],
    ['is interrupted where it is too slow for that, and goes on at its target', 300, 'interrupted', true],
  ])('%s', async (_, movesS, outcome, isLost) => {
    const goneS = (raw(first.leaving!.sinceMs) - raw(START_MS)) / 1000 + 5;
    const ran = await run({ goneS, movesS });
    await expectWhole(ran);
    expect(chain(ran)).toEqual([outcome, 'succeeded']);
    expect(ran.attempts[1]).toMatchObject({ movedFrom: first.id, instance: ran.attempts[0]!.goesTo });
    expect(raw(ran.attempts[1]!.resumedFromS) === 0).toBe(isLost);
    const task = (await ran.bench.store.tasks(JOB))[0]!;
    // Only a move of ours counts among our stops.
    expect(task.ownStops?.count ?? 0).toBe(isLost ? 0 : 1);
  });
});

describe('a task without a checkpoint', () => {
  const plain = { checkpoint: null };
  it('is not moved', async () => {
    const ran = await run({ stage: plain });
    await expectWhole(ran);
    expect(chain(ran)).toEqual(['succeeded']);
    expect(ran.explained).toEqual([]);
  });

  it('is moved where the policy says that it may start again, as far as that loses little', async () => {
    // A tenth of its running time at most, the change-over included.
    const longer = { env: work(2 * RUNS_S), expectedRuntimeS: seconds(2 * RUNS_S) };
    const late = toZoneB({ restarts: true });
    expect(chain(await run({ stage: plain, move: late }))).toEqual(['succeeded']);
    const willing = await run({ stage: { ...plain, ...longer }, move: late });
    await expectWhole(willing);
    expect(chain(willing)).toEqual(['moved', 'succeeded']);
    expect(raw(willing.attempts[1]!.resumedFromS)).toBe(0);
    expect((await willing.bench.store.tasks(JOB))[0]!.ownStops).toMatchObject({ count: 1 });
  });
});
