import { describe, expect, it } from '@jest/globals';
import { onePerInstance } from '../../../../lib/stages/place/one-per-instance.ts';
import type { Host, TaskToPlace } from '../../../../lib/policy/contracts.ts';
import { groupId, instanceId, jobId } from '../../../../lib/kernel/ids.ts';
import { seconds, ZERO_S } from '../../../../lib/kernel/units.ts';
import { pool, resources } from '../../../support/builders.ts';

const host = (name: string, freeCpus = 4): Host => ({
  on: instanceId(name),
  pool: pool(),
  capacity: resources(4, 8192),
  free: resources(freeCpus, 8192),
  remainingS: ZERO_S,
});
const task = (index: number, gang: string | null = null): TaskToPlace => ({
  task: { job: jobId('j'), stage: 'main', index },
  group: groupId('g'),
  need: resources(1, 512),
  runtimeS: seconds(60),
  gang,
  allowed: () => true,
});

describe('one task per instance', () => {
  it('gives each task an instance of its own and leaves those alone that run something', () => {
    const placed = onePerInstance([task(0), task(1), task(2)], [host('i-b'), host('i-a'), host('i-c', 3)]);
    expect(placed.map((p) => [p.task.index, p.on])).toEqual([
      [0, 'i-a'],
      [1, 'i-b'],
    ]);
  });

  it('places gangs whole or not at all', () => {
    expect(onePerInstance([task(0, 'g'), task(1, 'g')], [host('i-a')])).toEqual([]);
    expect(onePerInstance([task(0, 'g'), task(1, 'g')], [host('i-a'), host('i-b')])).toHaveLength(2);
  });
});
