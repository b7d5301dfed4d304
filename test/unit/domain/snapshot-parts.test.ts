import { expect, it } from '@jest/globals';
import { ZERO_S } from '../../../lib/kernel/units.ts';
import type { InstanceView, RunningTask, Snapshot } from '../../../lib/domain/snapshot.ts';
import { instanceParts, runningByJob, runningParts, withParts } from '../../../lib/domain/snapshot.ts';
import { attempt, instance, pool, resources, snapshot, stage } from '../../support/builders.ts';

const stops: RunningTask = {
  attempt: attempt({ state: 'stopping' }),
  class: 'best-effort',
  stage: stage(),
  deadlineMs: null,
  readS: ZERO_S,
  savedS: ZERO_S,
};
const idle: InstanceView = { instance: instance(), pool: pool(), free: resources(), attempts: [] };
const running = snapshot({ running: [stops], instances: new Map([[idle.instance.id, idle]]) });

const partsOf = (of: Snapshot): unknown => ({
  byJob: [...runningByJob(of)],
  stopping: runningParts(of).stopping,
  idle: instanceParts(of).idle,
});

it('parts of a snapshot are looked for once', () => {
  const once = withParts(running);
  expect(withParts(once)).toBe(once);
  expect(runningParts(once)).toBe(runningParts(once));
  const later: Snapshot = { ...once, groups: [] };
  expect(instanceParts(later)).toBe(instanceParts(once));
  expect(partsOf(once)).toEqual({ byJob: [[stops.attempt.job, [stops]]], stopping: [stops], idle: [idle] });
});

it('parts are not those of another snapshot that it was made of', () => {
  const known = withParts(running);
  partsOf(known);
  expect(partsOf({ ...known, running: [] })).toEqual({ byJob: [], stopping: [], idle: [idle] });
  expect(partsOf({ ...known, instances: new Map() })).toMatchObject({ stopping: [stops], idle: [] });
});
