import { describe, expect, it } from '@jest/globals';
import { drainEffects, NOTHING, paidHours } from '../../../lib/cycle/decide/drain.ts';
import type { Instance } from '../../../lib/domain/instance.ts';
import type { RunningTask, Snapshot } from '../../../lib/domain/snapshot.ts';
import { attemptId, instanceId, planId } from '../../../lib/kernel/ids.ts';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { attempt } from '../../support/builders.ts';
import { config, instance, NOW, pool, world } from '../../support/decision-world.ts';

const up = (id: string, minutesAgo: number, over: Partial<Instance> = {}) =>
  instance(id, pool(), { launchedMs: epochMs(raw(NOW) - minutesAgo * 60_000), ...over });
const orphan = { attempt: attempt({ id: attemptId('o'), instance: instanceId('busy') }) } as RunningTask;

const scene = (): Snapshot => ({
  ...world({
    pools: [],
    instances: [
      up('early', 10),
      up('ending', 59.5),
      up('second-hour', 70),
      up('warned', 10, { state: 'warned' }),
      { ...up('busy', 10), attempts: [orphan] },
    ],
  }).snapshot,
  running: [orphan],
});
const effects = (billing: 'per-hour' | 'per-second', draining = false): string[] => {
  const snapshot = scene();
  const kept = draining ? NOTHING : paidHours(snapshot, config({ billing, cyclePeriodS: 60 }));
  return drainEffects(snapshot, planId('p'), kept).map((e) =>
    e.kind === 'stop' ? `stop ${e.attempt}` : e.kind === 'release' ? `release ${e.instance}` : e.kind,
  );
};

describe('when no job is left', () => {
  const all = ['stop o', ...['early', 'ending', 'second-hour', 'warned'].map((id) => `release ${id}`)];

  it('instances in a paid hour stay to its end, and attempts stop all the same', () => {
    expect(effects('per-hour')).toEqual(['stop o', 'release ending', 'release warned']);
  });

  it('everything goes by the second, and when the engine stops', () => {
    expect(effects('per-second')).toEqual(all);
    expect(effects('per-hour', true)).toEqual(all);
  });
});
