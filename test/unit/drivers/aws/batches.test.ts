import { expect, it } from '@jest/globals';
import { batchesOf } from '../../../../lib/drivers/aws/cycle/batches.ts';
import type { Effect } from '../../../../lib/domain/plan.ts';
import { attemptId, effectKey, instanceId, jobId, planId, poolId } from '../../../../lib/kernel/ids.ts';
import { epochMs } from '../../../../lib/kernel/units.ts';
import type { EffectRecord } from '../../../../lib/ports/store.ts';

const ALL = { size: 25, most: Infinity };

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
    ALL,
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
  expect(batchesOf({ openEffects, attempts: [] }, asked, ALL)).toEqual({
    keys: openEffects.map((e) => e.key),
    batches: [{ from: 0, to: 61 }],
    left: 0,
  });
});

it('has in one part what one request buys, with the starts on it, and no more of an allocation than that', () => {
  const openEffects = plan(60, 2).map((record, n) =>
    record.effect.kind !== 'launch'
      ? record
      : { ...record, key: effectKey(`a/${n}`), effect: { ...record.effect, key: effectKey(`a/${n}`) } },
  );
  const { keys, batches } = batchesOf(
    { openEffects, attempts: [] },
    openEffects.map((e) => e.key),
    ALL,
  );
  // Each of 25 launches, and of their 50 starts; the last of 10 and 20.
  expect(batches.map(({ from, to }) => to - from)).toEqual([75, 75, 30]);
  const [first] = batches;
  const launches = keys.slice(first?.from, first?.to).filter((key) => key.startsWith('a/'));
  expect(launches).toEqual(Array.from({ length: 25 }, (_, n) => `a/${n}`));
});

it('leaves what is more than a cycle does for the next one: the newest, and at least one part is done', () => {
  const openEffects = plan(10, 3);
  const asked = openEffects.map((e) => e.key);
  const some = batchesOf({ openEffects, attempts: [] }, asked, { size: 8, most: 20 });
  expect(some.batches).toEqual([
    { from: 0, to: 8 },
    { from: 8, to: 16 },
  ]);
  expect(some.left).toBe(24);
  expect(some.keys.filter((key) => key.startsWith('launch/'))).toEqual([0, 1, 2, 3].map((n) => `launch/${n}`));
  // What is left is done in its turn, and nothing is left out.
  const done = new Set(some.keys);
  const rest = batchesOf(
    { openEffects, attempts: [] },
    asked.filter((key) => !done.has(key)),
    { size: 8, most: 1000 },
  );
  expect([...some.keys, ...rest.keys].sort()).toEqual([...asked].sort());
  const whole = plan(1, 60);
  const large = batchesOf(
    { openEffects: whole, attempts: [] },
    whole.map((e) => e.key),
    { size: 8, most: 20 },
  );
  expect(large.batches).toEqual([{ from: 0, to: 61 }]);
});
