import type { EffectKey, InstanceId } from '../kernel/ids.ts';
import { invariant } from '../kernel/errors.ts';
import type { Effect } from '../domain/plan.ts';
import type { ActiveState } from '../ports/store.ts';

export interface Batches {
  readonly keys: readonly EffectKey[];
  /** Positions [from, to) of each batch. */
  readonly batches: readonly { readonly from: number; readonly to: number }[];
}

/**
 * Effects in parts that may be done at once. All that concerns one instance is in one part, because there the order counts: it
 * is launched before tasks are started on it, and given back after they were stopped. A part holds up to `size` effects, or
 * those of one instance that has more. Keys that are not open any more are left out.
 */
export function batchesOf(
  active: Pick<ActiveState, 'openEffects' | 'attempts'>,
  keys: readonly EffectKey[],
  size: number,
): Batches {
  const effects = new Map(active.openEffects.map((e) => [e.key, e.effect]));
  const hosts = new Map(active.attempts.map((a) => [a.id, a.instance]));
  const byInstance = new Map<InstanceId | null, EffectKey[]>();
  for (const key of keys) {
    const effect = effects.get(key);
    if (effect === undefined) continue;
    const instance = instanceOf(effect, (attempt) => hosts.get(attempt) ?? null);
    const group = byInstance.get(instance);
    if (group === undefined) byInstance.set(instance, [key]);
    else group.push(key);
  }
  const parts: EffectKey[][] = [];
  for (const group of byInstance.values()) {
    const last = parts.at(-1);
    if (last !== undefined && last.length + group.length <= size) last.push(...group);
    else parts.push(group);
  }
  let from = 0;
  const batches = parts.map((part) => ({ from, to: (from += part.length) }));
  return { keys: parts.flat(), batches };
}

type Stop = Extract<Effect, { kind: 'stop' }>;

/** Null: a stop of an attempt that has ended, which concerns nobody. */
function instanceOf(effect: Effect, hostOf: (attempt: Stop['attempt']) => InstanceId | null): InstanceId | null {
  if (effect.kind === 'stop') return hostOf(effect.attempt);
  return invariant(effect.instance, `effect ${effect.key} names its instance`);
}
