import { expect, it } from '@jest/globals';
import { batchesOf } from '../../../lib/aws/batches.ts';
import type { Effect } from '../../../lib/domain/plan.ts';
import { attemptId, effectKey, instanceId, jobId, planId, poolId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { EffectRecord } from '../../../lib/ports/store.ts';

const record = (effect: Effect): EffectRecord => ({
  key: effect.key,
  plan: planId('p'),
  atMs: epochMs(0),
  effect,
  outcome: null,
});

/** `instances` launches, and then on each of them `tasks` starts: as far apart as a plan can have them. */
function plan(instances: number, tasks: number): EffectRecord[] {
  const launches = Array.from({ length: instances }, (_, i): Effect => ({
    kind: 'launch',
    key: effectKey(`launch/${i}`),
    instance: instanceId(`i-${i}`),
    allocation: effectKey('a'),
    pool: poolId('p'),
    bid: 'uncapped',
    reason: '',
  }));
  const starts = Array.from({ length: tasks * instances }, (_, n): Effect => ({
    kind: 'start',
    key: effectKey(`start/${n}`),
    attempt: attemptId(`j.main.${n}.1`),
    task: { job: jobId('j'), stage: 'main', index: n },
    instance: instanceId(`i-${n % instances}`),
    reason: '',
  }));
  return [...launches, ...starts].map(record);
}

it('has all that concerns one instance in one part, every effect in one, and parts of the size asked for', () => {
  const openEffects = plan(40, 3);
  const { keys, batches } = batchesOf(
    { openEffects, attempts: [] },
    openEffects.map((e) => e.key),
    25,
  );
  expect([...keys].sort()).toEqual(openEffects.map((e) => e.key).sort());
  expect(batches.map((b) => b.from)).toEqual([0, ...batches.slice(0, -1).map((b) => b.to)]);
  expect(batches.at(-1)?.to).toBe(keys.length);
  const partOf = new Map<string, number>();
  const effects = new Map(openEffects.map((e) => [e.key, e.effect]));
  batches.forEach(({ from, to }, part) => {
    expect(to - from).toBeLessThanOrEqual(25);
    for (const key of keys.slice(from, to)) {
      const effect = effects.get(key);
      const instance = effect !== undefined && 'instance' in effect ? effect.instance : '';
      expect(partOf.get(instance) ?? part).toBe(part);
      partOf.set(instance, part);
    }
  });
  expect(partOf.size).toBe(40);
});

it('leaves an instance of many effects whole, and out what is not open any more', () => {
  const openEffects = plan(1, 60);
  const asked = [effectKey('over'), ...openEffects.map((e) => e.key)];
  expect(batchesOf({ openEffects, attempts: [] }, asked, 25)).toEqual({
    keys: openEffects.map((e) => e.key),
    batches: [{ from: 0, to: 61 }],
  });
});
