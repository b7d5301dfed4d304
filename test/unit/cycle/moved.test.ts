import { expect, it } from '@jest/globals';
import { placeMoved } from '../../../lib/cycle/decide/moves.ts';
import type { PendingGroup } from '../../../lib/domain/snapshot.ts';
import type { Host } from '../../../lib/policy/contracts.ts';
import { groupId, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { epochMs, seconds, ZERO_S } from '../../../lib/kernel/units.ts';
import { pool, resources, stage } from '../../support/builders.ts';

const onDemand = pool({ option: 'on-demand' });

const moved = (job: string, target: string): PendingGroup => ({
  id: groupId(`${job}/main/moved-0`),
  job: jobId(job),
  class: 'best-effort',
  stage: stage({ resources: resources(2) }),
  count: 1,
  members: { indices: [0] },
  keptS: seconds(60),
  goesTo: [instanceId(target)],
  submittedMs: epochMs(0),
  deadlineMs: null,
  need: resources(2),
});

const host = (id: string): Host => ({
  on: instanceId(id),
  pool: onDemand,
  capacity: resources(4, 2048),
  free: resources(3, 1024),
  remainingS: ZERO_S,
});

const placed = (groups: readonly PendingGroup[], hosts: readonly Host[]) => placeMoved({ groups }, hosts);

it('fills a target with as many tasks as it has room for, whatever the order of the groups and instances', () => {
  const groups = [moved('j-b', 'i-1'), moved('j-a', 'i-1'), moved('j-c', 'i-2'), moved('j-d', 'i-gone')];
  const hosts = [host('i-1'), host('i-2')];
  for (const [g, h] of [
    [groups, hosts],
    [groups.toReversed(), hosts.toReversed()],
  ] as const) {
    const { placements, arrived, hosts: left } = placed(g, h);
    expect(placements.map((p) => [p.task.job, p.on])).toEqual([
      ['j-a', 'i-1'],
      ['j-c', 'i-2'],
    ]);
    expect(arrived).toEqual(new Set(['j-a/main/moved-0', 'j-c/main/moved-0']));
    expect(left.map((l) => l.free)).toEqual([resources(1, 512), resources(1, 512)]);
  }
});

it('starts a gang whole, each task on its own target, or leaves it waiting', () => {
  const gang = (...targets: readonly string[]): PendingGroup => ({
    ...moved('j-gang', ''),
    count: 2,
    members: { indices: [0, 2] },
    goesTo: targets.map(instanceId),
  });
  const hosts = [host('i-1'), host('i-2')];
  const whole = placed([gang('i-2', 'i-1')], hosts);
  expect(whole.placements.map((p) => [p.task.index, p.on])).toEqual([
    [0, 'i-2'],
    [2, 'i-1'],
  ]);
  for (const targets of [['i-1', 'i-gone'], ['i-1', 'i-1'], ['i-1']]) {
    const { placements, arrived, hosts: left } = placed([gang(...targets), moved('j-z', 'i-1')], hosts);
    expect(placements.map((p) => p.task.job)).toEqual(['j-z']);
    expect(arrived.size).toBe(1);
    expect(left.map((l) => l.free)).toEqual([resources(1, 512), resources(3, 1024)]);
  }
});
