import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  duties,
  fold,
  launchedRecord,
  type Fact,
  type InstanceRecord,
} from '../../../../lib/drivers/aws/fleet/instance-record.ts';
import { CANNOT_CLAIM, SUPERSEDED_CODE } from '../../../../lib/drivers/aws/fleet/entrypoint.ts';
import type { Observation } from '../../../../lib/domain/observation.ts';
import { attemptId, instanceId } from '../../../../lib/kernel/ids.ts';

const T0 = Date.UTC(2026, 0, 5, 12);
const at = (s: number): number => T0 + s * 1000;
const ELSEWHERE = instanceId('i-2');

/** An instance that was made, with tasks asked for: what is known before any event can come. */
function begun(attempts: readonly number[]): InstanceRecord {
  const made = launchedRecord({ instance: 'i-1', key: 'k', pool: 'c5.large/a/spot', bid: 0.05, ec2: 'i-0a1b2c3d' });
  return attempts.reduce(
    (r, n) => {
      const attempt = attemptId(`j.main.${n}.1`);
      const ordered = fold(r, { is: 'ordered', attempt, saves: true, timeoutS: null });
      return fold(ordered, { is: 'tried', attempt, atMs: at(1) });
    },
    fold(made, { is: 'launched', atMs: at(0), readyMs: at(95) }),
  );
}

interface Life {
  readonly attempts: readonly {
    readonly startS: number;
    readonly marks: readonly number[];
    readonly end: 'done' | 'superseded' | 'failed' | 'host';
  }[];
  readonly warned: boolean;
  readonly rebalance: boolean;
  readonly dies: boolean;
}

/** All that AWS tells of one life, in its true order of time. */
function facts({ attempts, warned, rebalance, dies }: Life): Fact[] {
  const goneS = 5000;
  const told: { readonly s: number; readonly fact: Fact }[] = [
    { s: 60, fact: { is: 'ready', atMs: at(60), host: 'arn:host' } },
  ];
  if (rebalance) told.push({ s: 4000, fact: { is: 'rebalance', atMs: at(4000) } });
  if (warned) told.push({ s: goneS - 120, fact: { is: 'warned', atMs: at(goneS - 120), goneMs: at(goneS) } });
  attempts.forEach(({ startS, marks, end }, n) => {
    const attempt = attemptId(`j.main.${n}.1`);
    const running = {
      is: 'task',
      attempt,
      task: `arn:task/${n}`,
      startedMs: at(startS),
      keptMs: null,
      end: null,
    } as const;
    told.push({ s: startS, fact: running });
    const kept = marks.map((m) => startS + m);
    for (const s of kept) told.push({ s, fact: { is: 'kept', attempt, atMs: at(s) } });
    if (end === 'host' && !dies) return;
    const endS = end === 'host' ? goneS : startS + 2000;
    const keptMs = end === 'done' || kept.length === 0 ? null : at(Math.max(...kept));
    const exitCode = { done: 0, superseded: SUPERSEDED_CODE, failed: 3, host: null }[end];
    const over = { atMs: at(endS), exitCode, detail: null, isHostGone: end === 'host', isAsked: false };
    told.push({ s: endS, fact: { ...running, keptMs, end: over } });
  });
  if (dies)
    told.push({
      s: goneS,
      fact: { is: 'gone', atMs: at(goneS), cause: 'interrupted', detail: 'taken', isStopped: false },
    });
  return told.sort((a, b) => a.s - b.s).map((t) => t.fact);
}

const life: fc.Arbitrary<Life> = fc.record({
  attempts: fc.array(
    fc.record({
      startS: fc.integer({ min: 61, max: 1000 }),
      marks: fc.array(fc.integer({ min: 1, max: 1900 }), { maxLength: 3 }),
      end: fc.constantFrom('done', 'superseded', 'failed', 'host'),
    }),
    { maxLength: 4 },
  ),
  warned: fc.boolean(),
  rebalance: fc.boolean(),
  dies: fc.boolean(),
});

/** What is reported, whatever its order: but for checkpoints that a later one has overtaken. */
function said(record: InstanceRecord): string[] {
  return record.observations
    .filter((o) => o.kind !== 'attempt-checkpointed')
    .map(({ sequence: _, ...o }) => JSON.stringify(o))
    .sort();
}

const position = (record: InstanceRecord, found: (o: Observation) => boolean): number[] =>
  record.observations.flatMap((o, i) => (found(o) ? [i] : []));

describe('what is reported of an instance', () => {
  it('is the same whatever the order in which its events come, and however often', () => {
    let shuffled = 0;
    fc.assert(
      fc.property(
        life.chain((l) => {
          const truth = facts(l);
          const doubled = fc
            .array(fc.nat(truth.length - 1), { maxLength: 6 })
            .map((again) => [...truth.map((_, i) => i), ...again]);
          return fc.record({
            l: fc.constant(l),
            truth: fc.constant(truth),
            order: doubled.chain((all) => fc.shuffledSubarray(all, { minLength: all.length })),
          });
        }),
        ({ l, truth, order }) => {
          const start = begun(l.attempts.map((_, n) => n));
          const expected = truth.reduce(fold, start);
          const told = order.reduce((r, i) => fold(r, truth[i] as Fact), start);
          if (order.some((o, i) => o !== i)) shuffled++;
          expect(said(told)).toEqual(said(expected));
          expect(told.observations.map((o) => o.sequence)).toEqual(told.observations.map((_, i) => i + 1));
          expect(told.attempts).toEqual(expected.attempts);
          expect(told.isEnded).toBe(l.dies);
          const ends = position(told, (o) => o.kind === 'attempt-ended');
          const [end] = position(told, (o) => o.kind === 'instance-ended');
          for (const i of ends) expect(i).toBeLessThan(end ?? Infinity);
          for (const [n, { end }] of l.attempts.entries()) {
            const over = told.observations.find((o) => o.kind === 'attempt-ended' && o.attempt === `j.main.${n}.1`);
            // Whatever else was said of it, its instance's end included.
            if (end === 'superseded') expect(over).toMatchObject({ exitCode: 0, stopped: 'superseded' });
          }
          for (const { attempt } of told.observations.filter((o) => o.kind === 'attempt-ended')) {
            const [begin] = position(told, (o) => o.kind === 'attempt-started' && o.attempt === attempt);
            const [over] = position(told, (o) => o.kind === 'attempt-ended' && o.attempt === attempt);
            expect(begin).toBeLessThan(over ?? -1);
          }
        },
      ),
      { seed: 4, numRuns: 500 },
    );
    expect(shuffled).toBeGreaterThan(400);
  });

  it('tells what was kept, what was told to stop, and what was killed with its host, apart from failures', () => {
    const attempt = attemptId('j.main.0.1');
    const task = { is: 'task', attempt, task: 'arn:task/0', startedMs: at(100), keptMs: null } as const;
    const end = { atMs: at(700), exitCode: 143, detail: null, isHostGone: false, isAsked: false };
    const last = (r: InstanceRecord) => r.observations.at(-1);
    const running = fold(begun([0]), { ...task, end: null });
    expect(last(fold(running, { ...task, end }))).toMatchObject({
      stopped: null,
      exitSignal: 'SIGTERM',
      exitCode: null,
    });
    const leaves = fold(running, { is: 'stop', attempt: task.attempt, why: 'preempted', atMs: at(650), to: ELSEWHERE });
    expect(last(fold(leaves, { ...task, end }))).toMatchObject({ stopped: 'preempted', exitSignal: 'SIGTERM' });
    // The market was faster than the move.
    expect(last(fold(leaves, { ...task, end: { ...end, isHostGone: true } }))).toMatchObject({
      stopped: 'interrupted',
    });
    expect(last(fold(running, { ...task, end: { ...end, isHostGone: true } }))).toMatchObject({
      stopped: 'interrupted',
    });
    expect(last(fold(running, { ...task, end: { ...end, isAsked: true } }))).toMatchObject({ stopped: 'preempted' });
    const asked = fold(running, { is: 'stop', attempt, why: 'cancelled', atMs: at(600) });
    expect(last(fold(asked, { ...task, keptMs: at(400), end }))).toMatchObject({ stopped: 'cancelled', keptS: 300 });
    expect(last(fold(asked, { ...task, end: { ...end, exitCode: 0 } }))).toMatchObject({ stopped: null, keptS: 600 });
  });

  it('leaves to be done what was asked and is not done yet, and nothing twice', () => {
    const attempt = attemptId('j.main.0.1');
    const ready: Fact = { is: 'ready', atMs: at(60), host: 'arn:host' };
    const task = { is: 'task', attempt, task: 'arn:task/0', startedMs: null, keptMs: null, end: null } as const;
    const made = launchedRecord({ instance: 'i-1', key: 'k', pool: 'p', bid: 'uncapped', ec2: 'i-0a1b2c3d' });
    const ordered = fold(fold(made, { is: 'launched', atMs: at(0), readyMs: at(95) }), {
      is: 'ordered',
      attempt,
      saves: true,
      timeoutS: null,
    });
    expect(duties(ordered, at(10))).toEqual([]);
    const open = fold(ordered, ready);
    expect(duties(open, at(61))).toEqual([{ do: 'start', attempt, host: 'arn:host', isUnsure: false }]);
    const tried = fold(open, { is: 'tried', attempt, atMs: at(61) });
    expect(duties(tried, at(62))).toEqual([]);
    // No answer came: it is asked again, as the same request.
    expect(duties(tried, at(200))).toEqual([{ do: 'start', attempt, host: 'arn:host', isUnsure: true }]);
    // Nor is it waited for until a clock that was ahead has been caught up with.
    expect(duties(tried, at(61 - 600))).toEqual([{ do: 'start', attempt, host: 'arn:host', isUnsure: true }]);
    const warned = fold(fold(tried, task), { is: 'warned', atMs: at(300), goneMs: at(420) });
    expect(duties(warned, at(301))).toEqual([{ do: 'stop', attempt, task: 'arn:task/0', why: 'interrupted' }]);
    expect(duties(fold(warned, { is: 'stop-sent', attempt }), at(302))).toEqual([]);
    const released = fold(open, { is: 'release', atMs: at(100) });
    expect(released.observations.at(-1)).toMatchObject({ kind: 'attempt-ended', stopped: 'preempted' });
    expect(duties(released, at(100))).toEqual([{ do: 'end', ec2: 'i-0a1b2c3d' }]);
    expect(duties(fold(released, { is: 'end-asked', atMs: at(100) }), at(101))).toEqual([]);
  });

  it('what EC2 refuses is asked again at once some times, and then once a minute', () => {
    const end = { do: 'end', ec2: 'i-0a1b2c3d' };
    const refuse = (r: InstanceRecord, s: number) => fold(r, { is: 'end-refused', atMs: at(s), detail: 'protected' });
    const twice = refuse(refuse(fold(begun([]), { is: 'release', atMs: at(100) }), 100), 101);
    expect(duties(twice, at(101))).toEqual([end]);
    const often = refuse(twice, 102);
    expect(often.endRefused).toEqual({ tries: 3, atMs: at(102), detail: 'protected' });
    expect(duties(often, at(160))).toEqual([]);
    expect(duties(often, at(163))).toEqual([end]);
    expect(fold(often, { is: 'end-asked', atMs: at(163) }).endRefused).toBeNull();
  });

  it('one that somebody stopped is ended once, and one that has ended is not', () => {
    const gone = { is: 'gone', atMs: at(100), cause: 'lost', detail: 'stopped' } as const;
    const stopped = fold(begun([0]), { ...gone, isStopped: true });
    expect(duties(stopped, at(100))).toEqual([{ do: 'end', ec2: 'i-0a1b2c3d' }]);
    expect(duties(fold(stopped, { is: 'end-asked', atMs: at(100) }), at(1000))).toEqual([]);
    expect(duties(fold(begun([0]), { ...gone, isStopped: false }), at(100))).toEqual([]);
  });
});

describe('an attempt that left as superseded', () => {
  const endWith = (detail: string | null) => {
    const exited = { atMs: at(900), exitCode: SUPERSEDED_CODE, detail, isHostGone: false, isAsked: false };
    const attempt = attemptId('j.main.0.1');
    const fact: Fact = { is: 'task', attempt, task: 'arn:task/0', startedMs: at(100), keptMs: null, end: exited };
    const ready = fold(begun([0]), { is: 'ready', atMs: at(60), host: 'arn:host' });
    return fold(ready, fact).observations.find((o) => o.kind === 'attempt-ended');
  };

  it('says who publishes, or that its image cannot claim, or neither', () => {
    const told = { exitCode: 0, stopped: 'superseded' };
    expect(endWith('j.main.0.2 publishes its outputs')).toMatchObject({ ...told, publisher: 'j.main.0.2' });
    expect(endWith(CANNOT_CLAIM)).toMatchObject({ ...told, cannotClaim: true });
    for (const detail of [null, 'x y publishes its outputs', 'publishes its outputs']) {
      expect(endWith(detail)).not.toHaveProperty('publisher');
      expect(endWith(detail)).not.toHaveProperty('cannotClaim');
    }
  });
});

describe('the load that a task reports', () => {
  const load = {
    vcpus: 4,
    own: { cpu: 1.5, ioWait: 0.1, diskRead: 10, diskWritten: 0, netReceived: 0, netSent: 0 },
    machine: { cpu: 0.5, ioWait: 0.2, diskRead: 20, diskWritten: 0, netReceived: 0, netSent: 0 },
  };
  const usageWith = (milliCpu?: number) => {
    const made = launchedRecord({ instance: 'i-1', key: 'k', pool: 'c5.xlarge/a/spot', bid: 0.05, ec2: 'i-0a1b2c3d' });
    const attempt = attemptId('j.main.0.1');
    const asked = milliCpu === undefined ? {} : { milliCpu };
    const ordered = fold(made, { is: 'ordered', attempt, saves: false, timeoutS: null, ...asked });
    const usage = { maxRssMiB: 5, cpuS: 10, load };
    const end = { atMs: at(20), exitCode: 0, detail: null, isHostGone: false, isAsked: false, usage };
    const { observations } = fold(ordered, {
      is: 'task',
      attempt,
      task: 'arn:task/1',
      startedMs: at(10),
      keptMs: null,
      end,
    });
    const ended = observations.find((o) => o.kind === 'attempt-ended');
    return ended?.kind === 'attempt-ended' ? ended.usage : null;
  };

  it('is told as part of what it asked for, with the most that such a machine transfers', () => {
    const usage = usageWith(2000);
    expect(usage?.own).toEqual({ ...load.own, cpu: 0.75 });
    expect(usage?.machine?.load).toEqual(load.machine);
    expect(usage?.machine?.most.diskRead).toBe(125 * 1_048_576);
    expect(usageWith(1000)?.own?.cpu).toBe(1);
  });

  it('is not told where it is not known what the task asked for', () => {
    expect(usageWith()).toEqual({ maxRss: 5, cpuS: 10 });
  });
});
