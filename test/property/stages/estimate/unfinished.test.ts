import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Job } from '../../../../lib/domain/job.ts';
import type { RunningTask } from '../../../../lib/domain/snapshot.ts';
import { begunBy, doneOnceS } from '../../../../lib/domain/work-to-do.ts';
import { STEPS_S } from '../../../../lib/stages/estimate/lasting.ts';
import { FeaturesByStage, featuresOf } from '../../../../lib/domain/job-features.ts';
import { Unfinished } from '../../../../lib/stages/estimate/unfinished.ts';
import { attemptId, jobId } from '../../../../lib/kernel/ids.ts';
import { epochMs, plus, raw, seconds, type EpochMs } from '../../../../lib/kernel/units.ts';
import { attempt, job, snapshot, spec, stage } from '../../../support/builders.ts';

const SEED = 20261123;
const T0 = epochMs(1_700_000_000_000);

const JOBS: readonly Job[] = ['train', 'train', 'report'].map((name, i) =>
  job({
    id: jobId(`j-${i}`),
    spec: spec({ name, owner: i === 0 ? 'ada' : 'grace', stages: [stage({ command: [name] })] }),
  }),
);
const FEATURES = ['job', 'owner', 'owner+job', 'all'];
const featuresOfJob = (of: Job) => featuresOf(of.spec, of.spec.stages[0]!, of.submittedMs);

/** Seconds since T0 at which it started; null: it has not. */
const begun = fc.record({
  of: fc.constantFrom(...JOBS),
  startedS: fc.option(fc.nat(4000)),
  resumedS: fc.constantFrom(0, 36, 500),
  readS: fc.constantFrom(0, 20),
  ranS: fc.option(fc.nat(6000)),
});
/**
 * From one snapshot to the next: time passes, some are gone, some are replaced in their place, some are new, or all
 * come in another order.
 */
const change = fc.record({
  atS: fc.nat(9000),
  gone: fc.array(fc.nat(9), { maxLength: 3 }),
  replaced: fc.array(fc.tuple(fc.nat(9), begun), { maxLength: 2 }),
  more: fc.array(begun, { maxLength: 5 }),
  turned: fc.boolean(),
});

let serial = 0;
const runningTask = (b: typeof begun extends fc.Arbitrary<infer B> ? B : never, id = `a-${serial++}`): RunningTask => ({
  attempt: attempt({
    id: attemptId(id),
    job: b.of.id,
    startedMs: b.startedS === null ? null : plus(T0, seconds(b.startedS)),
    resumedFromS: seconds(b.resumedS),
  }),
  class: 'deadline',
  stage: b.of.spec.stages[0]!,
  deadlineMs: null,
  readS: seconds(b.readS),
  savedS: seconds(0),
  ...(b.ranS === null ? {} : { ranS: seconds(b.ranS) }),
});

/** By their definition: of each running task of these jobs the last step that is not above what it has lasted. */
function boundsOf(running: readonly RunningTask[], jobs: readonly Job[], nowMs: EpochMs): number[] {
  const bounds = Array<number>(STEPS_S.length).fill(0);
  for (const r of running.filter((x) => jobs.some((j) => j.id === x.attempt.job))) {
    const lastedS = raw(doneOnceS(begunBy(r, nowMs)));
    const step = STEPS_S.findLastIndex((s) => s <= lastedS + 1e-6);
    if (step >= 0) bounds[step]! += 1;
  }
  return bounds;
}

const sharesWith = (feature: string, a: Job, b: Job): boolean =>
  feature === 'all' ||
  ((!feature.includes('job') || a.spec.name === b.spec.name) &&
    (!feature.includes('owner') || a.spec.owner === b.spec.owner));

describe('what has begun and not ended', () => {
  it('is, snapshot after snapshot, what a look at all that runs gives', () => {
    let seen = 0;
    let same = 0;
    const holds = fc.property(fc.array(change, { minLength: 2, maxLength: 8 }), (changes) => {
      const unfinished = new Unfinished(new FeaturesByStage());
      const last = new Map<string, unknown>();
      let running: RunningTask[] = [];
      for (const { atS, gone, replaced, more, turned } of changes) {
        running = running.filter((_, i) => !gone.includes(i));
        for (const [i, b] of replaced) if (running[i] !== undefined) running[i] = runningTask(b, running[i].attempt.id);
        running = [...(turned ? running.toReversed() : running), ...more.map((b) => runningTask(b))];
        const nowMs = plus(T0, seconds(atS));
        const there = unfinished.at(snapshot({ nowMs, running, jobs: new Map(JOBS.map((j) => [j.id, j])) }));
        for (const of of JOBS) {
          for (const feature of FEATURES) {
            const bounds = there.sharing(feature, featuresOfJob(of));
            const sharing = JOBS.filter((j) => sharesWith(feature, j, of));
            const expected = boundsOf(running, sharing, nowMs);
            expect([...(bounds ?? expected.map(() => 0))]).toEqual(expected);
            seen += expected.reduce((sum, n) => sum + n, 0);
            // What was handed out stays as it was, for others remember it.
            const key = `${of.id} ${feature}`;
            const before = last.get(key) as { bounds: Uint32Array | null; held: number[] } | undefined;
            if (before?.bounds) expect([...before.bounds]).toEqual(before.held);
            if (bounds !== null && before?.bounds === bounds) same += 1;
            last.set(key, { bounds, held: [...(bounds ?? [])] });
          }
        }
      }
    });
    fc.assert(holds, { seed: SEED, numRuns: 40 });
    expect(seen).toBeGreaterThan(1000);
    expect(same).toBeGreaterThan(20);
  });
});
