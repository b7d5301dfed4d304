/**
 * What the state machine carries from step to step, for the largest plan that is promised: 10,000 instances, ten starts
 * on each.
 */
import { expect, it } from '@jest/globals';
import { batchesOf } from '../../../../lib/drivers/aws/cycle/batches.ts';
import { Carrier } from '../../../../lib/drivers/aws/cycle/blobs.ts';
import { OUTCOMES_BYTES, PARTS } from '../../../../lib/drivers/aws/cycle/messages.ts';
import { Blobs } from '../../../../lib/drivers/aws/store/blobs.ts';
import type { Effect, EffectOutcome } from '../../../../lib/domain/plan.ts';
import { attemptId, effectKey, instanceId, jobId, planId, poolId, type EffectKey } from '../../../../lib/kernel/ids.ts';
import { epochMs } from '../../../../lib/kernel/units.ts';
import type { EffectRecord } from '../../../../lib/ports/store.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';

/** Step Functions carries no more ("Service quotas"). */
const STATE_BYTES = 262_144;
const INSTANCES = 10_000;
const STARTS = 10;
const PLAN = 'p-0123456789abcdef';

/** Launches one by one or in allocations of `together`, and then the starts, as a plan has them. */
function open(together: number): EffectRecord[] {
  const effects: Effect[] = [];
  for (let n = 0; n < INSTANCES; n++) {
    const allocation = effectKey(`${PLAN}/launch/${Math.floor(n / together)}`);
    const key = effectKey(`${allocation}/${n % together}`);
    const pool = poolId('c6i.large/eu-central-1a/spot');
    effects.push({
      kind: 'launch',
      key,
      instance: instanceId(`i-${n}`),
      allocation,
      pool,
      bid: 'uncapped',
      reason: '',
    });
  }
  for (let n = 0; n < INSTANCES * STARTS; n++) {
    const task = { job: jobId('j-0123456789'), stage: 'main', index: n };
    const attempt = attemptId(`${task.job}.main.${n}.1`);
    const instance = instanceId(`i-${n % INSTANCES}`);
    effects.push({ kind: 'start', key: effectKey(`start/${attempt}`), attempt, task, instance, reason: '' });
  }
  return effects.map((effect) => ({ key: effect.key, plan: planId(PLAN), atMs: epochMs(0), effect, outcome: null }));
}

const bytes = (state: unknown): number => Buffer.byteLength(JSON.stringify(state));

it.each([1, 25, 10_000])(
  'each state stays below 256 KiB with allocations of %d, whatever becomes of it',
  async (together) => {
    const openEffects = open(together);
    const keys = openEffects.map((e) => e.key);
    const carrier = new Carrier(
      new Blobs({ client: new ObjectsDouble().client(), bucket: 'bucket' }),
      'code of a version',
    );
    const parts = batchesOf({ openEffects, attempts: [] }, keys, PARTS);
    expect(parts.keys.length).toBeGreaterThan(PARTS.most / 2);
    expect(parts.keys.length + parts.left).toBe(keys.length);
    const execution = `c-${'x'.repeat(60)}`;
    const state = {
      execution,
      round: 9,
      began: '2026-01-05T12:00:00.000Z',
      observedMs: 1e12,
      seen: 1e6,
      token: 1e6,
      dueInMs: 1e6,
    };
    const recorded = {
      ...state,
      keys: await carrier.put(parts.keys, `${execution}/9/keys`),
      batches: parts.batches,
      left: parts.left,
    };
    expect(bytes(recorded)).toBeLessThan(STATE_BYTES / 4);
    for (const batch of parts.batches) expect(bytes({ ...recorded, batch })).toBeLessThan(STATE_BYTES / 4);
    const acted: unknown[] = [];
    for (const { from, to } of parts.batches) {
      const outcomes = new Map<EffectKey, EffectOutcome>();
      for (const [n, key] of parts.keys.slice(from, to).entries()) {
        // No two alike, so that they do not compress.
        const detail = Array.from({ length: 40 }, (_, i) => Math.sin(from + n + i).toString(36)).join('');
        outcomes.set(key, { status: 'failed', detail });
      }
      const name = `${execution}/9/outcomes-${from}`;
      acted.push({ outcomes: await carrier.put(outcomes, name, OUTCOMES_BYTES / parts.batches.length), left: 0 });
    }
    expect(bytes({ ...recorded, acted })).toBeLessThan(STATE_BYTES / 2);
  },
  60_000,
);
