/**
 * A learner that no driver knows by name: it learns in each of them, its rows come back after a restart, each thing
 * counts once whatever dies, and one that throws stops nobody.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { composeLearners } from '../../../lib/cycle/learn/compose-learners.ts';
import { runtimeLearner } from '../../../lib/stages/estimate/runtime-learner.ts';
import { openSqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import type { Attempt } from '../../../lib/domain/job.ts';
import { raw } from '../../../lib/kernel/units.ts';
import type { Learner, LearnerFactory } from '../../../lib/policy/learner.ts';
import { featuresOf } from '../../../lib/domain/job-features.ts';
import { Crashes, type CrashPoint } from '../../support/crashing.ts';
import { DiaryLearner, diaries, type Diary, type DiaryEntry } from '../../support/diary-learner.ts';
import { discrepancies, EngineBench } from '../../support/engine-bench.ts';
import { MIXED_ENDS, mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

/** Every commit is tried with the learners of this version (faults.test.ts); here a prime number apart. */
const STRIDE = 11;

interface How {
  readonly stepped?: boolean;
  readonly points?: readonly CrashPoint[];
  readonly learners?: readonly LearnerFactory[];
}

async function run({ stepped = false, points = [], learners = [] }: How) {
  const { made, learner } = diaries();
  const bench = new EngineBench({
    trace: mixedTrace,
    startMs: START_MS,
    stepped,
    config: { refundRule: 'none' },
    vcpus: 12,
    learners: [...learners, learner],
  });
  const crashes = new Crashes(points, bench.clock);
  await bench.submit(mixedJobs());
  await bench.drive({ deeds: mixedDeeds(), through: () => crashes.between() });
  const rows = await bench.store.memory('diary/');
  const stored: Diary = new Map(
    [...rows].map(([key, text]) => [key.slice('diary/'.length), JSON.parse(text) as DiaryEntry]),
  );
  return { bench, crashes, made, stored };
}
type Run = Awaited<ReturnType<typeof run>>;

async function attemptsOf({ bench }: Run): Promise<readonly Attempt[]> {
  return (await Promise.all((await bench.jobs()).map((j) => bench.store.attempts(j.id)))).flat();
}

/** What happened, by the records of the store: each attempt that reached its instance, and each instance, told once. */
async function whatHappened(of: Run): Promise<Map<string, DiaryEntry>> {
  const attempts = await attemptsOf(of);
  const instances = new Map((await of.bench.store.instances(null, 1000, null)).items.map((i) => [i.id, i]));
  const wanted = new Map<string, DiaryEntry>();
  for (const a of attempts) {
    const neverUp = instances.get(a.instance)?.launchedMs === null;
    if (neverUp) continue;
    const ranThen = (b: Attempt): boolean =>
      b.startedMs !== null && raw(b.startedMs) < Number(a.endedMs) && Number(b.endedMs) >= Number(a.endedMs);
    const beside = attempts.filter((b) => b.id !== a.id && b.instance === a.instance && ranThen(b)).map((b) => b.id);
    wanted.set(`attempt/${a.id}`, {
      times: 1,
      what: {
        ...{ job: a.job, stage: a.stage, index: a.index, number: a.number, outcome: a.outcome, atMs: a.endedMs },
        ...{ instance: a.instance, pool: instances.get(a.instance)?.pool, usage: a.usage },
        neighbours: a.startedMs === null ? [] : beside.sort(),
        runtimeS: a.outcome === 'succeeded' ? raw(a.resumedFromS) + raw(a.keptS) : null,
      },
    });
  }
  for (const { id, pool, launchedMs, endedMs, warnedMs, endCause } of instances.values()) {
    if (launchedMs === null) continue;
    const takenMs = endCause === 'interrupted' ? (warnedMs ?? endedMs) : null;
    wanted.set(`instance/${id}`, { times: 1, what: { pool, launchedMs, endedMs, takenMs } });
  }
  return wanted;
}

const byKey = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);
const told = (diary: Diary, about: string): Map<string, DiaryEntry> =>
  new Map([...diary].filter(([key]) => key.startsWith(about)).sort(byKey));

async function expectToldOnce(of: Run): Promise<void> {
  const happened = JSON.parse(JSON.stringify([...(await whatHappened(of))])) as [string, DiaryEntry][];
  const wanted = new Map(happened);
  for (const about of ['attempt/', 'instance/']) expect(told(of.stored, about)).toEqual(told(wanted, about));
  expect(await discrepancies(of.bench)).toEqual([]);
}

describe.each([
  ['the engine', false],
  ['the cycle in steps', true],
])('a registered learner, in %s', (_, stepped) => {
  let calm: Run;
  beforeAll(async () => {
    calm = await run({ stepped });
  });

  it('is told of each end once: its task, instance, pool and neighbours', async () => {
    await expectToldOnce(calm);
    const outcomes = new Set([...told(calm.stored, 'attempt/').values()].map((e) => e.what['outcome']));
    expect([...outcomes].sort()).toEqual(['cancelled', 'failed', 'interrupted', 'moved', 'succeeded']);
    const neighbours = [...told(calm.stored, 'attempt/').values()].map((e) => e.what['neighbours'] as string[]);
    expect(neighbours.some((ids) => ids.length > 0)).toBe(true);
    expect(neighbours.some((ids) => ids.length === 0)).toBe(true);
    expect([...told(calm.stored, 'instance/').values()].some((e) => e.what['takenMs'] !== null)).toBe(true);
    expect([...told(calm.stored, 'refused/').values()]).toContainEqual(
      expect.objectContaining({ what: { why: 'insufficient-capacity' } }),
    );
  });

  it('has its rows back after a restart', async () => {
    const engines = calm.made.length;
    const next = calm.bench.driven();
    await next.start();
    await next.cycle();
    const restarted = calm.made.slice(engines).find((diary) => diary.belief().size > 0);
    expect(restarted?.belief()).toEqual(calm.stored);
    expect(restarted?.takeDirty().size).toBe(0);
  });

  it('counts each end once when an engine dies between any two calls', async () => {
    const commits = calm.crashes.calls.flatMap((method, i) => (method === 'store.commit' ? [i + 1] : []));
    expect(commits.length).toBeGreaterThan(30);
    for (const call of commits.filter((_n, i) => i % STRIDE === 0)) {
      for (const when of ['before', 'after'] as const) {
        const died = await run({ stepped, points: [{ call, when }] });
        expect(died.crashes.at).toEqual([`${when} store.commit`]);
        await expectToldOnce(died);
      }
    }
  }, 60_000);

  it('stops nobody when it throws: jobs end, others learn, an event says who and why', async () => {
    const learners = [broken('observe'), broken('takeDirty'), broken('rows')];
    const faulty = await run({ stepped, learners });
    await expectToldOnce(faulty);
    expect(new Map((await faulty.bench.jobs()).map((j) => [j.id, j.state]))).toEqual(
      new Map(Object.entries(MIXED_ENDS)),
    );
    const events = (await faulty.bench.store.events(0, 10_000)).filter((e) => e.type === 'learner-failed');
    const textOf = (learner: string): string => events.find((e) => e.data['learner'] === learner)?.text ?? '';
    expect(new Set(events.map((e) => e.data['learner']))).toEqual(new Set(['observe', 'takeDirty', 'rows']));
    const several = events.filter((e) => e.data['learner'] === 'observe' && e.data['faults'] === 2);
    expect(several.map((e) => e.text)).toContain(
      'learner observe did not take in what happened, all else goes on: not of this world (2 faults)',
    );
    expect(textOf('takeDirty')).toMatch('not of this world');
    expect(textOf('rows')).toMatch(/not under the prefix of its learner.*history\/x/s);
    expect(new Set((await faulty.bench.store.memory('history/')).keys())).not.toContain('history/x');
  });
});

it('both ways of running a cycle teach the same', async () => {
  expect((await run({ stepped: true })).stored).toEqual((await run({ stepped: false })).stored);
});

it('rows of it are in the database of local mode, and are read when that is opened again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-learners-'));
  const path = join(folder, 'ebb.db');
  const { made, learner } = diaries();
  try {
    const store = openSqliteStore({ path });
    const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, vcpus: 12, learners: [learner], store });
    await bench.submit(mixedJobs());
    await bench.drive({ deeds: mixedDeeds() });
    await store.close();
    const again = openSqliteStore({ path });
    const learners = composeLearners({ more: [learner] });
    await learners.recall(again);
    await again.close();
    expect(learners.of(learner).size).toBeGreaterThan(10);
    expect(learners.of(learner)).toEqual(new Map([...(made[0]?.belief() ?? [])].sort(byKey)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('what a preset does not read is learned under it, for a preset that does', async () => {
  const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, preset: 'fleet' });
  const [job] = mixedJobs();
  const [stage] = job?.spec.stages ?? [];
  if (job === undefined || stage === undefined) throw new Error('no job to run');
  await bench.submit([job]);
  await bench.drive();
  const learners = composeLearners();
  await learners.recall(bench.store);
  const forecast = learners.of(runtimeLearner).predict(featuresOf(job.spec, stage, job.submittedMs));
  expect(forecast?.evidence).toMatchObject({ samples: 3 });
});

it('a simulation teaches it, and stores nothing', async () => {
  const { made, learner } = diaries();
  const jobs = [
    simulatedJob('a', 0, [400, 1500]),
    simulatedJob('b', 60, [60], { failures: [1], stage: { retries: 1 } }),
  ];
  const { events, store } = await simulated(jobs, { learners: [learner] });
  const [diary] = made;
  if (diary === undefined) throw new Error('the simulation made no learner');
  expect(made).toHaveLength(1);
  expect(diary.terms).toEqual({ isKept: false });
  const ends = events.filter((e) => /^attempt-(succeeded|failed|interrupted)$/.test(e.type));
  const attempts = told(diary.belief(), 'attempt/');
  expect([...attempts.keys()].sort()).toEqual(ends.map((e) => `attempt/${String(e.data['attempt'])}`).sort());
  expect(new Set([...attempts.values()].map((e) => e.what['outcome']))).toEqual(
    new Set(['succeeded', 'failed', 'interrupted']),
  );
  expect([...diary.belief().values()].every((e) => e.times === 1 || e.what['why'] !== undefined)).toBe(true);
  expect((await store.memory('diary/')).size + (await store.memory('history/')).size).toBe(0);
});

/** A learner with one fault. */
const broken =
  (fault: 'observe' | 'takeDirty' | 'rows'): LearnerFactory =>
  (terms) => {
    const learner: Learner<unknown> = new DiaryLearner(terms);
    const throws = (): never => {
      throw new Error('not of this world');
    };
    return {
      ...{ name: fault, about: '', source: '', prefix: `${fault}/`, learnsFrom: learner.learnsFrom },
      observe: fault === 'observe' ? throws : () => undefined,
      belief: () => null,
      takeDirty: fault === 'takeDirty' ? throws : () => new Map(fault === 'rows' ? [['history/x', '1']] : []),
      restore: () => undefined,
    };
  };
