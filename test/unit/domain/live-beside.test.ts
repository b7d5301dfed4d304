import { describe, expect, it } from '@jest/globals';
import { liveBeside, SnapshotParts, type RunningTask } from '../../../lib/domain/snapshot.ts';
import { attemptId, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { ZERO_S } from '../../../lib/kernel/units.ts';
import { attempt, stage } from '../../support/builders.ts';

/** Counts how often the index of an attempt is read. */
const reads = { count: 0 };

function running(index: number, number: number): RunningTask {
  const id = attemptId(`j.main.${index}.${number}`);
  const of = { id, job: jobId('j'), number, instance: instanceId(`i-${index}-${number}`) };
  const made = attempt({ ...of, index, ...(number === 1 ? {} : { role: 'copy', round: 1 }) });
  Object.defineProperty(made, 'index', {
    get: () => {
      reads.count++;
      return index;
    },
  });
  const task = { class: 'best-effort', stage: stage(), deadlineMs: null, readS: ZERO_S, savedS: ZERO_S } as const;
  return { ...task, attempt: made, ...(number === 1 ? { attempts: 2 } : {}) };
}

const snapshotOf = (tasks: number) => {
  const all = Array.from({ length: tasks }, (_, index) => [running(index, 1), running(index, 2)]).flat();
  const of = { running: all, instances: new Map<never, never>() };
  return { ...of, parts: new SnapshotParts(of) };
};

describe('live attempts beside another', () => {
  it('are those of the same task', () => {
    const of = snapshotOf(3);
    const idsBeside = (n: number) => liveBeside(of, of.running[n]!).map((r) => r.attempt.id);
    expect(idsBeside(2)).toEqual(['j.main.1.2']);
    expect(idsBeside(3)).toEqual(['j.main.1.1']);
    const { attempts: _, ...alone } = running(7, 1);
    expect(liveBeside(of, alone)).toEqual([]);
  });

  it('cost the same for each attempt, however many run', () => {
    const perAttempt = (tasks: number): number => {
      const of = snapshotOf(tasks);
      reads.count = 0;
      for (const r of of.running) liveBeside(of, r);
      return reads.count / of.running.length;
    };
    expect(perAttempt(400)).toBeLessThanOrEqual(perAttempt(20));
  });
});
