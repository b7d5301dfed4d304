import { describe, expect, it } from '@jest/globals';
import { onePerInstance } from '../../../../lib/stages/place/one-per-instance.ts';
import type { Host, TaskToPlace } from '../../../../lib/policy/contracts.ts';
import { resources } from '../../../support/decision-world.ts';
import { host, nameOf, tasksOf } from '../../../support/tasks-to-place.ts';

const placed = (tasks: readonly TaskToPlace[], hosts: readonly Host[]): string[] =>
  onePerInstance(tasks, hosts).map(({ task, on }) => `${task.job}/${task.index} on ${nameOf(on)}`);
const hosts = (...ids: readonly string[]): Host[] => ids.map((id) => host({ id }));
const some = (count: number, over: Partial<Parameters<typeof tasksOf>[0]> = {}): TaskToPlace[] =>
  tasksOf({ id: 't', count, runtimeS: 60, ...over });

describe('one task per instance', () => {
  it('gives each task the first empty instance by name, and none to those for whom there is none', () => {
    expect(placed(some(3), hosts('i-b', 'i-a'))).toEqual(['t/0 on i-a', 't/1 on i-b']);
  });

  it.each(['cpu', 'memory', 'gpus', 'disk'] as const)('leaves instances alone whose %s is in use', (kind) => {
    const whole = host({ id: 'i', vcpus: 4 });
    const capacity = { ...whole.capacity, gpus: 1 };
    const free = { ...capacity, [kind]: resources(0, 0)[kind] };
    expect(placed(some(1), [{ ...whole, capacity, free: capacity }])).toEqual(['t/0 on i']);
    expect(placed(some(1), [{ ...whole, capacity, free }])).toEqual([]);
  });

  it('takes an instance for empty where fractions do not add up to the last digit', () => {
    const whole = host({ id: 'i' });
    const capacity = { ...whole.capacity, gpus: 1 };
    const left = (gpus: number): Host => ({ ...whole, capacity, free: { ...capacity, gpus } });
    expect(placed(some(1), [left(1 - 1e-9)])).toEqual(['t/0 on i']);
    expect(placed(some(1), [left(0.99)])).toEqual([]);
  });

  it('goes past instances that are too small or not allowed', () => {
    const wide = some(1, { need: resources(3, 1), allowed: (h) => h.pool.zone === 'b' });
    const list = [
      host({ id: 'i-1', vcpus: 2, zone: 'b' }),
      host({ id: 'i-2', vcpus: 4, zone: 'a' }),
      host({ id: 'i-3', vcpus: 4, zone: 'b' }),
    ];
    expect(placed(wide, list)).toEqual(['t/0 on i-3']);
  });

  it('serves tasks by job and number, 2 before 10', () => {
    const late = tasksOf({ id: 'late', runtimeS: 60 });
    const early = some(11, { id: 'early' }).filter(({ task }) => task.index === 2 || task.index === 10);
    expect(placed([...late, ...early.reverse()], hosts('i-1', 'i-2', 'i-3'))).toEqual([
      'early/2 on i-1',
      'early/10 on i-2',
      'late/0 on i-3',
    ]);
  });

  it('places gangs whole or not at all, and gives the others what a gang could not use, in order', () => {
    const gang = some(3, { id: 'a', gang: 'g' });
    expect(placed(gang, hosts('i-1', 'i-2', 'i-3'))).toHaveLength(3);
    expect(placed(gang, hosts('i-1', 'i-2'))).toEqual([]);
    const others = [...gang, ...some(1, { id: 'b', allowed: (h) => nameOf(h.on) < 'i-3' }), ...some(1, { id: 'c' })];
    expect(placed(others, hosts('i-1', 'i-2'))).toEqual(['b/0 on i-1', 'c/0 on i-2']);
  });
});
