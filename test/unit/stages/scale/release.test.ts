import { describe, expect, it } from '@jest/globals';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { epochMs, raw } from '../../../../lib/kernel/units.ts';
import type { Instance } from '../../../../lib/domain/instance.ts';
import type { RunningTask } from '../../../../lib/domain/snapshot.ts';
import { releaseIdle } from '../../../../lib/stages/scale/release.ts';
import {
  config,
  group,
  instance,
  NOW,
  pool,
  resources,
  world,
  type GroupFacts,
} from '../../../support/decision-world.ts';

const launched = (secondsAgo: number): Partial<Instance> => ({ launchedMs: epochMs(raw(NOW) - secondsAgo * 1000) });
const released = (over: Partial<Instance>, settings = {}, used: readonly string[] = []) =>
  releaseIdle({
    snapshot: world({ pools: [], instances: [instance('i', pool(), over)] }).snapshot,
    used: new Set(used.map(instanceId)),
    config: config(settings),
  }).length === 1;

describe('release', () => {
  it('gives back what is idle and charged by the second', () => {
    expect(released(launched(100))).toBe(true);
    expect(released({ ...launched(100), state: 'starting' })).toBe(true);
  });

  it('keeps what this cycle uses, what runs something, and what is not ours to end', () => {
    expect(released(launched(100), {}, ['i'])).toBe(false);
    for (const state of ['requested', 'warned', 'releasing'] as const)
      expect(released({ ...launched(100), state })).toBe(false);
    const busy = { ...instance('i', pool(), launched(100)), attempts: [{} as RunningTask] };
    expect(
      releaseIdle({ snapshot: world({ pools: [], instances: [busy] }).snapshot, used: new Set(), config: config() }),
    ).toEqual([]);
  });

  it('keeps the paid minute only while the next decision still falls into it', () => {
    expect(released(launched(5), { cyclePeriodS: 10 })).toBe(false);
    expect(released(launched(55), { cyclePeriodS: 10 })).toBe(true);
    expect(released(launched(5), { cyclePeriodS: 60 })).toBe(true);
  });

  it('keeps the paid hour until the last decision before it ends', () => {
    const hourly = { billing: 'per-hour', cyclePeriodS: 60 };
    expect(released(launched(600), hourly)).toBe(false);
    expect(released(launched(3540), hourly)).toBe(true);
    expect(released(launched(3600), hourly)).toBe(false);
    expect(released(launched(2 * 3600 - 80), hourly)).toBe(true);
  });

  it('keeps a starting instance for work with a deadline that may run there', () => {
    const kept = (facts: Partial<GroupFacts>, state: Instance['state'] = 'starting'): boolean => {
      const instances = [instance('i', pool(), { ...launched(100), state })];
      const { snapshot } = world({ pools: [], instances, groups: [group({ id: 'g', ...facts })] });
      return releaseIdle({ snapshot, used: new Set(), config: config() }).length === 0;
    };
    expect(kept({ class: 'deadline' })).toBe(true);
    expect(kept({ class: 'deadline' }, 'ready')).toBe(false);
    expect(kept({ class: 'best-effort' })).toBe(false);
    expect(kept({ class: 'deadline', need: resources(64, 8) })).toBe(false);
    expect(kept({ class: 'deadline', stage: { constraints: { purchaseOptions: ['on-demand'] } } })).toBe(false);
  });

  it('says why, by id, whatever the order of the instances', () => {
    const reasons = (ids: readonly string[], over: Partial<Instance>, settings = {}): string[] =>
      releaseIdle({
        snapshot: world({ pools: [], instances: ids.map((id) => instance(id, pool(), over)) }).snapshot,
        used: new Set(),
        config: config(settings),
      }).map((r) => `${r.instance}: ${r.reason}`);
    const second = ['i-a: no task is on it and every further second is charged'];
    expect(reasons(['i-a'], launched(100))).toEqual(second);
    expect(reasons(['i-b', 'i-a'], launched(100))).toEqual([...second, ...second.map((s) => s.replace('i-a', 'i-b'))]);
    expect(reasons(['i-a', 'i-b'], launched(100))).toEqual(reasons(['i-b', 'i-a'], launched(100)));
    expect(reasons(['i-a'], launched(3590), { billing: 'per-hour' })).toEqual([
      'i-a: no task is on it and its paid hour ends before the next decision',
    ]);
    expect(reasons(['i-a'], { launchedMs: null, state: 'starting' })).toEqual([
      'i-a: nothing waits for it and it is not charged for yet',
    ]);
  });

  it('keeps an instance whose paid time ends with the next decision, by the second and by the hour', () => {
    expect(released(launched(50), { cyclePeriodS: 10 })).toBe(false);
    expect(released(launched(51), { cyclePeriodS: 10 })).toBe(true);
    const hourly = { billing: 'per-hour', cyclePeriodS: 60 };
    expect(released(launched(3600 - 60 - 30), hourly)).toBe(false);
    expect(released(launched(3600 - 60 - 29), hourly)).toBe(true);
  });

  it('gives back at once what is not charged for yet', () => {
    expect(released({ launchedMs: null, state: 'starting' }, { billing: 'per-hour' })).toBe(true);
  });
});
