import { beforeAll, describe, expect, it } from '@jest/globals';
import { LoggedHistory } from '../../../lib/stages/estimate/logged-history.ts';
import { JvuPredict } from '../../../lib/stages/estimate/predictor.ts';
import { featuresOf } from '../../../lib/domain/job-features.ts';
import { attemptId, type PoolId } from '../../../lib/kernel/ids.ts';
import { add, raw } from '../../../lib/kernel/units.ts';
import type { Fleet } from '../../../lib/ports/fleet.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { isSpotPool } from '../../../lib/domain/pool.ts';
import { discrepancies, EngineBench, Fault } from '../../support/engine-bench.ts';
import { mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

/**
 * A commit fails and the process lives on: the same engine tries again, and what it learns must count once. Faults come
 * at every commit of the running code, with the changes written (only the answer is lost) or not.
 */
type When = 'before' | 'after';

/** The store, but its `nth` commit (from 1) fails once. */
function failingOnce(store: Store, nth: number, when: When, count: () => number): Store {
  return new Proxy(store, {
    get: (target, method) => {
      if (method !== 'commit') return (Reflect.get(target, method) as () => unknown).bind(target);
      return async (...args: Parameters<Store['commit']>): Promise<void> => {
        const failing = count() === nth;
        if (failing && when === 'before') throw new Fault(`commit ${nth}`);
        await target.commit(...args);
        if (failing) throw new Fault(`commit ${nth}, answered by nobody`);
      };
    },
  });
}

/** Launches as the market answered them, once each: a repeated launch has the same key and the same answer. */
type Launches = Map<string, { readonly pool: PoolId; readonly refused: boolean }>;
function listening(fleet: Fleet, launches: Launches): Fleet {
  return new Proxy(fleet, {
    get: (target, method) => {
      if (method !== 'launch') return (Reflect.get(target, method) as () => unknown).bind(target);
      return async (...[requests]: Parameters<Fleet['launch']>) => {
        const outcomes = await target.launch(requests);
        requests.forEach((r, i) => launches.set(r.key, { pool: r.pool, refused: outcomes[i]?.status === 'refused' }));
        return outcomes;
      };
    },
  });
}

/** `nth` 0: no fault. */
async function run(nth: number, when: When) {
  const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, config: { refundRule: 'none' } });
  let commits = 0;
  const launches: Launches = new Map();
  await bench.submit(mixedJobs());
  await bench.drive({
    deeds: mixedDeeds(),
    through: () => ({
      store: (s) => failingOnce(s, nth, when, () => ++commits),
      fleet: (f) => listening(f, launches),
    }),
  });
  return { bench, commits, launches };
}
type Run = Awaited<ReturnType<typeof run>>;

/** Running times of the successes, in the order of the event log, each learned once. */
async function historyOf({ bench }: Run): Promise<Record<string, string>> {
  const history = new JvuPredict();
  for (const e of await bench.store.events(0, 10_000)) {
    if (e.type !== 'attempt-succeeded') continue;
    const attempt = await bench.store.attempt(attemptId(String(e.data['attempt'])));
    if (attempt === null) throw new Error(`an event of no attempt: ${e.text}`);
    const job = await bench.job(attempt.job);
    const stage = job.spec.stages.find((s) => s.name === attempt.stage);
    if (stage === undefined) throw new Error(`an attempt of no stage: ${attempt.id}`);
    history.learn(featuresOf(job.spec, stage, job.submittedMs), add(attempt.resumedFromS, attempt.keptS));
  }
  return Object.fromEntries(history.export());
}

interface Hazard {
  readonly exposureS: number;
  readonly interruptions: number;
  /** The notice of the last interruption, and whether a launch was ever refused. */
  readonly lostMs: number | null;
  readonly isRefused: boolean;
}

/**
 * Time that each spot pool's instances lived, how many the market took, here never for their price, and where it had
 * none.
 */
async function hazardOf({ bench, launches }: Run): Promise<Record<string, Hazard>> {
  const pools: Record<string, Hazard> = {};
  const knownOf = (pool: string): Hazard =>
    pools[`hazard/${pool}`] ?? { exposureS: 0, interruptions: 0, lostMs: null, isRefused: false };
  for (const i of (await bench.store.instances(null, 1000, null)).items) {
    if (!isSpotPool(i.pool) || i.launchedMs === null || i.endedMs === null) continue;
    const known = knownOf(i.pool);
    const lostMs = i.endCause === 'interrupted' ? raw(i.warnedMs ?? i.endedMs) : -Infinity;
    pools[`hazard/${i.pool}`] = {
      ...known,
      exposureS: known.exposureS + (raw(i.endedMs) - raw(i.launchedMs)) / 1000,
      interruptions: known.interruptions + (i.endCause === 'interrupted' ? 1 : 0),
      lostMs: Math.max(known.lostMs ?? -Infinity, lostMs) === -Infinity ? null : Math.max(known.lostMs ?? 0, lostMs),
    };
  }
  for (const { pool, refused } of launches.values()) {
    if (refused) pools[`hazard/${pool}`] = { ...knownOf(pool), isRefused: true };
  }
  return pools;
}

/** The same out of a row as it is stored. */
function storedHazard(
  row: Omit<Hazard, 'lostMs'> & { news: { lostMs: number | null; refusedMs: number | null } },
): Hazard {
  const { exposureS, interruptions, news } = row;
  return { exposureS, interruptions, lostMs: news.lostMs, isRefused: news.refusedMs !== null };
}

/** Refusals in a row at the end, by pool. */
function refusalsOf({ launches }: Run): Record<string, number> {
  const pools: Record<string, number> = {};
  for (const { pool, refused } of launches.values()) {
    const key = `rest/${pool}`;
    if (refused) pools[key] = (pools[key] ?? 0) + 1;
    else delete pools[key];
  }
  return pools;
}

async function expectLearnedOnce(of: Run): Promise<void> {
  const stored = async (prefix: string) => Object.fromEntries(await of.bench.store.memory(prefix));
  const parsed = <T>(rows: Record<string, string>): Record<string, T> =>
    Object.fromEntries(
      Object.entries(rows).flatMap(([key, text]) => (text === '' ? [] : [[key, JSON.parse(text) as T]])),
    );
  // So few runs are all in the log still: restored, every history has changed since the (empty) histories that were
  // stored.
  const learned = new LoggedHistory();
  learned.restore(await of.bench.store.memory('history/'));
  expect(Object.fromEntries(learned.predictor.export())).toEqual(await historyOf(of));
  const hazard = parsed<Parameters<typeof storedHazard>[0]>(await stored('hazard/'));
  expect(Object.fromEntries(Object.entries(hazard).map(([key, row]) => [key, storedHazard(row)]))).toEqual(
    await hazardOf(of),
  );
  const backOffs = parsed<{ refusals: number }>(await stored('rest/'));
  expect(Object.fromEntries(Object.entries(backOffs).map(([key, r]) => [key, r.refusals]))).toEqual(refusalsOf(of));
  expect(await discrepancies(of.bench)).toEqual([]);
}

describe('what is learned', () => {
  let calm: Run;
  beforeAll(async () => {
    calm = await run(0, 'before');
  });

  it('without a fault is what happened: running times, interruptions and refusals', async () => {
    await expectLearnedOnce(calm);
    const prefixes = [...(await calm.bench.store.memory('')).keys()].map((key) => key.split('/')[0]);
    expect([...new Set(prefixes)].sort()).toEqual(['hazard', 'history', 'lateness', 'rest', 'task-averages']);
    expect(Object.values(await hazardOf(calm)).some((pool) => pool.interruptions > 0)).toBe(true);
    expect(calm.commits).toBeGreaterThan(30);
  });

  it.each(['before', 'after'] as const)(
    'counts once when a commit fails once, %s it is written',
    async (when) => {
      for (let nth = 1; nth <= calm.commits; nth++) {
        const faulty = await run(nth, when);
        try {
          expect(faulty.bench.engines).toBe(1);
          await expectLearnedOnce(faulty);
        } catch (error) {
          throw new Error(`with a fault at commit ${nth}`, { cause: error });
        }
      }
    },
    120_000,
  );
});
