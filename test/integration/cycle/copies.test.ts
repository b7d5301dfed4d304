import { describe, expect, it } from '@jest/globals';
import { attemptName } from '../../../lib/cycle/state/working-state.ts';
import type { Attempt, Job } from '../../../lib/domain/job.ts';
import { poolKey } from '../../../lib/domain/pool.ts';
import { effectKey, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { between, gt, raw, usdPerHour, type EpochMs } from '../../../lib/kernel/units.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { Crashes, type CrashPoint } from '../../support/crashing.ts';
import { recordByHand, restarted } from '../../support/by-hand.ts';
import { discrepancies, EngineBench, type Deed } from '../../support/engine-bench.ts';
import { after, calmTrace, SAVES, START_MS } from '../../support/mixed-workload.ts';

/** Tasks of which several attempts live at once. Copies are begun by a plan of the test's own, as a policy would. */

const J = jobId('j-copied');
const TASK = { job: J, stage: 'main', index: 0 } as const;
const SPARE = instanceId('i-spare');
const COPY_S = 400;

const copied = (env: Record<string, string>, over: Partial<Parameters<typeof stage>[0]> = {}): Job =>
  job({ name: J, submittedMs: START_MS, spec: spec({ stages: [stage({ env, ...over })] }) });

/**
 * A plan that begins another attempt of the task, on an instance of its own. The engine that has the lease is
 * overtaken.
 */
const copying = (atS: number, n = 0): Deed => ({
  atMs: after(atS),
  act: (store: Store) =>
    recordByHand(
      store,
      `p-copy-${n}`,
      (state) => {
        const instance = n === 0 ? SPARE : instanceId(`${SPARE}-${n}`);
        const number = (state.triedTask(TASK)?.attempts ?? 0) + 1;
        const launch = effectKey(`p-copy-${n}/launch`);
        const pool = poolKey('c5.xlarge', 'b', 'spot');
        const bid = usdPerHour(0.1);
        return {
          effects: [
            { kind: 'launch', key: launch, instance, allocation: launch, pool, bid, reason: 'for a copy' },
            {
              kind: 'start',
              key: effectKey(`p-copy-${n}/start`),
              attempt: attemptName(TASK, number),
              task: TASK,
              instance,
              role: 'copy',
              reason: 'it is slow',
            },
          ],
        };
      },
      after(atS),
    ),
});

/** A stop as a policy would decide it. */
const stopByHand = (store: Store, { id }: Attempt): Promise<void> =>
  recordByHand(
    store,
    `p-stop-${id}`,
    () => ({
      effects: [{ kind: 'stop', key: effectKey(`p-stop/${id}`), attempt: id, why: 'preempted', reason: 'gives way' }],
    }),
    after(2500),
  );

interface Happening {
  readonly atMs: EpochMs;
  readonly act: (store: Store, bench: EngineBench) => Promise<unknown>;
}

async function run(
  of: Job,
  deeds: readonly Happening[],
  how: { points?: readonly CrashPoint[]; stepped?: boolean } = {},
) {
  const bench = new EngineBench({
    trace: calmTrace,
    startMs: START_MS,
    config: { refundRule: 'none' },
    ...(how.stepped === true ? { stepped: true } : { reusesSlots: true }),
  });
  const crashes = new Crashes(how.points ?? [], bench.clock);
  await bench.submit([of]);
  const bound = deeds.map((d) => ({ ...d, act: (store: Store) => d.act(store, bench) }));
  await bench.drive({ deeds: bound, through: () => restarted(crashes.between()) });
  const attempts = await bench.store.attempts(J);
  return { bench, crashes, attempts, job: await bench.job(J), wrong: await discrepancies(bench) };
}

const outcomes = (attempts: readonly Attempt[]) => attempts.map((a) => a.outcome);
const typesOf = async (bench: EngineBench) => (await bench.store.events(0, 1000)).map((e) => e.type);

describe.each([
  ['in one process', false],
  ['in steps', true],
])('a task with a copy, %s', (_, stepped) => {
  it('succeeds with the copy when that is first; the original is stopped and is no failure', async () => {
    const {
      bench,
      attempts,
      job: done,
      wrong,
    } = await run(
      copied({ RUNTIME_S: '7200', COPY_RUNTIME_S: String(COPY_S) }, { checkpoint: SAVES }),
      [copying(900)],
      { stepped },
    );
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['superseded', 'succeeded']);
    expect(attempts[1]).toMatchObject({ role: 'copy', round: 1, resumedFromS: 0 });
    expect(attempts[0]).toMatchObject({ supersededBy: attempts[1]?.id, exitCode: null });
    expect(done).toMatchObject({ state: 'succeeded', stateReason: null });
    expect(done.stages[0]).toMatchObject({ succeeded: 1, failed: 0, waiting: 0, running: 0 });
    expect(done.stages[0]).not.toHaveProperty('superseded');
    expect(done).not.toHaveProperty('doneMs');
    // It finished when the copy did; the stop came after that.
    expect(done.finishedMs).toEqual(attempts[1]?.endedMs);
    expect(gt(attempts[0]!.endedMs!, done.finishedMs!)).toBe(true);
    expect(await bench.store.tasks(J)).toMatchObject([{ state: 'succeeded', failures: 0, attempts: 2 }]);
    const types = await typesOf(bench);
    expect(types.filter((t) => t.startsWith('attempt-') && !/start|stopping/.test(t)).sort()).toEqual([
      'attempt-succeeded',
      'attempt-superseded',
    ]);
    const rows = (await bench.store.ledger({ job: J })).filter((r) => r.attempt === attempts[0]?.id);
    expect(rows.map((r) => r.kind)).toEqual(['speculative']);
    const [cost] = await bench.store.costs('job');
    const work = (await bench.store.ledger({ job: J })).filter((r) => r.attempt === attempts[1]?.id);
    // What work alone would have cost on demand, without the original.
    expect(cost?.onDemandUsd).toBeCloseTo(work[0]?.onDemandUsd ?? NaN, 12);
    expect(cost?.speculativeUsd).toBeCloseTo(rows[0]?.usd ?? NaN, 12);
    expect(types.filter((t) => t === 'attempt-stopping')).toHaveLength(1);
  });

  it('succeeds with the original when that is first; the copy is stopped', async () => {
    const { attempts, wrong, job: done } = await run(copied({ RUNTIME_S: '1500' }), [copying(900)], { stepped });
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['succeeded', 'superseded']);
    expect(done.state).toBe('succeeded');
  });

  it('has one success where both end at once', async () => {
    // Both ends are reported together, whichever comes first.
    const probe = await run(copied({ RUNTIME_S: '7200', COPY_RUNTIME_S: '100' }), [copying(900)], { stepped });
    const [first, second] = probe.attempts.map((a) => a.startedMs as EpochMs);
    const laterS = raw(between(first as EpochMs, second as EpochMs));
    const {
      attempts,
      job: done,
      wrong,
    } = await run(copied({ RUNTIME_S: String(laterS + 500), COPY_RUNTIME_S: '500' }), [copying(900)], { stepped });
    expect(wrong).toEqual(['j-copied/main/0 completed 2 times']);
    expect(outcomes(attempts).sort()).toEqual(['succeeded', 'superseded']);
    expect(attempts.map((a) => a.exitCode)).toEqual([0, 0]);
    expect(done.stages[0]).toMatchObject({ succeeded: 1 });
  });

  it('goes on where one of the two is lost, and begins no third', async () => {
    const lose: Happening = {
      atMs: after(1300),
      act: async (store, bench) => {
        const [original] = await store.attempts(J);
        bench.fleet.lose(original!.instance);
      },
    };
    const {
      attempts,
      job: done,
      wrong,
    } = await run(copied({ RUNTIME_S: '7200', COPY_RUNTIME_S: '1200' }), [copying(900), lose], { stepped });
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['interrupted', 'succeeded']);
    expect(done.state).toBe('succeeded');
  });

  it('waits again where both are lost, resumes what the original kept, and not what the copy did', async () => {
    const lose: Happening = {
      atMs: after(1500),
      act: async (store, bench) => {
        for (const a of await store.attempts(J)) bench.fleet.lose(a.instance);
      },
    };
    const { attempts, wrong } = await run(copied({ RUNTIME_S: '3000' }, { checkpoint: SAVES }), [copying(900), lose], {
      stepped,
    });
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['interrupted', 'interrupted', 'succeeded']);
    expect(attempts[2]).not.toHaveProperty('role');
    expect(raw(attempts[2]!.resumedFromS)).toBe(raw(attempts[0]!.keptS));
    expect(raw(attempts[0]!.keptS)).toBeGreaterThan(raw(attempts[1]!.keptS));
  });

  it('fails only when no attempt of it lives', async () => {
    // The first try fails, and there are no retries.
    const {
      attempts,
      wrong,
      job: done,
    } = await run(copied({ RUNTIME_S: '1200', COPY_RUNTIME_S: '1000', FAILURES: '1' }), [copying(900)], { stepped });
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['failed', 'succeeded']);
    expect(done.state).toBe('succeeded');
    const both = await run(copied({ RUNTIME_S: '1200', COPY_RUNTIME_S: '1000', FAILURES: '2' }), [copying(900)], {
      stepped,
    });
    expect(outcomes(both.attempts)).toEqual(['failed', 'failed']);
    expect(both.job).toMatchObject({ state: 'failed', stages: [{ failed: 1, running: 0 }] });
    expect(both.job.stateReason).toContain('exit code 1');
  });

  it.each(['lost', 'stopped'])('runs again where the original failed and the last copy is %s', async (how) => {
    const end: Happening = {
      atMs: after(2500),
      act: async (store, bench) => {
        const last = (await store.attempts(J))[1]!;
        if (how === 'lost') bench.fleet.lose(last.instance);
        else await stopByHand(store, last);
      },
    };
    const env = { RUNTIME_S: '1200', COPY_RUNTIME_S: '5000', FAILURES: '1' };
    const { attempts, wrong, job: done } = await run(copied(env), [copying(900), end], { stepped });
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['failed', how === 'lost' ? 'interrupted' : 'preempted', 'succeeded']);
    expect(attempts[0]?.reason).toBe('exit code 1');
    expect(done).toMatchObject({ state: 'succeeded', stateReason: null });
  });

  it('fails for its own reason where it fails again after its last copy was lost', async () => {
    const lose: Happening = {
      atMs: after(2500),
      act: async (store, bench) => bench.fleet.lose((await store.attempts(J))[1]!.instance),
    };
    // The copy is the second try, which would have failed too.
    const env = { RUNTIME_S: '1200', COPY_RUNTIME_S: '5000', FAILURES: '3' };
    const { attempts, wrong, job: done } = await run(copied(env), [copying(900), lose], { stepped });
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['failed', 'interrupted', 'failed']);
    expect(done).toMatchObject({ state: 'failed', stages: [{ failed: 1, waiting: 0, running: 0 }] });
    expect(done.stateReason).toBe('stage main: task 0 failed with no retries left: exit code 1');
  });

  it('is cancelled with all its attempts', async () => {
    const cancel: Deed = { atMs: after(1300), act: (store) => store.requestCancel(J) };
    const {
      attempts,
      wrong,
      job: done,
    } = await run(copied({ RUNTIME_S: '7200' }), [copying(900), cancel], { stepped });
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['cancelled', 'cancelled']);
    expect(done.state).toBe('cancelled');
  });

  it('becomes an original where the task does not run', async () => {
    const { attempts, wrong } = await run(copied({ RUNTIME_S: '300' }, { tasks: 1 }), [copying(0)], { stepped });
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['succeeded']);
    expect(attempts[0]).not.toHaveProperty('role');
  });

  it('has three attempts of which the last begun may win', async () => {
    const { attempts, wrong } = await run(
      copied({ RUNTIME_S: '7200', COPY_RUNTIME_S: '3000' }),
      [copying(900), copying(1300, 1)],
      { stepped },
    );
    expect(wrong).toEqual([]);
    expect(outcomes(attempts)).toEqual(['superseded', 'succeeded', 'superseded']);
    expect(attempts.map((a) => a.round)).toEqual([undefined, 1, 1]);
  });
});

describe('the engine dies while a task has a copy', () => {
  const race = (points: readonly CrashPoint[]) =>
    run(copied({ RUNTIME_S: '7200', COPY_RUNTIME_S: String(COPY_S) }, { checkpoint: SAVES }), [copying(900)], {
      points,
    });

  it('once, after each of its calls, and one attempt has won and the other was stopped', async () => {
    const { crashes } = await race([]);
    const wrong: string[] = [];
    for (let call = 1; call <= crashes.calls.length; call++) {
      const { attempts, job: done, wrong: found } = await race([{ call, when: 'after' }]);
      const ends = outcomes(attempts).join();
      if (done.state !== 'succeeded' || ends !== 'superseded,succeeded') found.push(`${done.state}: ${ends}`);
      for (const w of found) wrong.push(`call ${call}: ${w}`);
    }
    expect(wrong).toEqual([]);
    expect(crashes.calls.length).toBeGreaterThan(20);
  }, 60_000);
});
