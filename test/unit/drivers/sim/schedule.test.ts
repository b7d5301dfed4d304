import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Schedule } from '../../../../lib/drivers/sim/schedule.ts';

function run(schedule: Schedule): void {
  for (let next = schedule.take(); next !== null; next = schedule.take()) next();
}

describe('what is to happen', () => {
  test('happens by time, and at one instant in the order in which it was scheduled', () => {
    const schedule = new Schedule();
    const happened: string[] = [];
    for (const [atMs, name] of [
      [20, 'c'],
      [10, 'a'],
      [20, 'd'],
      [10, 'b'],
      [20, 'e'],
    ] as const)
      schedule.add(atMs, () => happened.push(name));
    expect(schedule.nextMs).toBe(10);
    run(schedule);
    expect(happened).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(schedule.nextMs).toBeNull();
    expect(schedule.take()).toBeNull();
  });

  test('what is scheduled meanwhile for the same instant comes last, for an earlier one first', () => {
    const schedule = new Schedule();
    const happened: string[] = [];
    const add = (atMs: number, name: string, then?: () => void): void =>
      schedule.add(atMs, () => {
        happened.push(name);
        then?.();
      });
    add(10, 'a', () => {
      add(10, 'later');
      add(5, 'overdue');
    });
    add(10, 'b');
    run(schedule);
    expect(happened).toEqual(['a', 'overdue', 'b', 'later']);
  });

  test('is what sorting all that waits by time and sequence gives, however scheduling and happening alternate', () => {
    const instant = fc.integer({ min: 0, max: 6 });
    const steps = fc.array(fc.oneof(fc.record({ add: instant }), fc.constant('take' as const)), { maxLength: 60 });
    fc.assert(
      fc.property(steps, (todo) => {
        const schedule = new Schedule();
        const waiting: { atMs: number; sequence: number }[] = [];
        const taken: number[] = [];
        const expected: number[] = [];
        for (const [sequence, step] of todo.entries()) {
          if (step === 'take') {
            waiting.sort((a, b) => a.atMs - b.atMs || a.sequence - b.sequence);
            expect(schedule.nextMs).toBe(waiting[0]?.atMs ?? null);
            const next = waiting.shift();
            if (next !== undefined) expected.push(next.sequence);
            schedule.take()?.();
          } else {
            waiting.push({ atMs: step.add, sequence });
            schedule.add(step.add, () => taken.push(sequence));
          }
        }
        expect(taken).toEqual(expected);
      }),
    );
  });
});
