import type { EffectKey, InstanceId } from '../../../kernel/ids.ts';
import { invariant } from '../../../kernel/errors.ts';
import type { Effect } from '../../../domain/plan.ts';
import type { ActiveState } from '../../../ports/store.ts';
import { groupOf } from '../fleet/launch-groups.ts';

export interface Batches {
  readonly keys: readonly EffectKey[];
  /** Positions [from, to) of each batch. */
  readonly batches: readonly { readonly from: number; readonly to: number }[];
  /** Open effects that are left for the next cycle. */
  readonly left: number;
}

/**
 * Effects in parts that may be done at once. All that concerns one instance is in one part, because there the order
 * counts: it is launched before tasks are started on it, and given back after they were stopped. So is all that
 * concerns instances which are bought by one request. A part holds up to `size` effects, or those of one instance or
 * request that has more. Keys that are not open any more are left out.
 *
 * Parts hold `most` effects together, or the first part alone if that has more: what the state machine carries does not
 * grow with the plan. The first keys come first, so that what has waited longest is done first.
 */
export function batchesOf(
  active: Pick<ActiveState, 'openEffects' | 'attempts'>,
  keys: readonly EffectKey[],
  { size, most }: { readonly size: number; readonly most: number },
): Batches {
  const effects = new Map(active.openEffects.map((e) => [e.key, e.effect]));
  const hosts = new Map(active.attempts.map((a) => [a.id, a.instance]));
  const bought = new Map(
    active.openEffects.flatMap(({ effect: e }) => (e.kind === 'launch' ? [[e.instance, groupOf(e)] as const] : [])),
  );
  const byUnit = new Map<string | null, EffectKey[]>();
  for (const key of keys) {
    const effect = effects.get(key);
    if (effect === undefined) continue;
    const instance = instanceOf(effect, (attempt) => hosts.get(attempt) ?? null);
    const unit = (instance === null ? null : bought.get(instance)) ?? instance;
    const group = byUnit.get(unit);
    if (group === undefined) byUnit.set(unit, [key]);
    else group.push(key);
  }
  const parts: EffectKey[][] = [];
  for (const group of byUnit.values()) {
    const last = parts.at(-1);
    if (last !== undefined && last.length + group.length <= size) last.push(...group);
    else parts.push(group);
  }
  let from = 0;
  const all = parts.map((part) => ({ from, to: (from += part.length) }));
  const batches = all.filter(({ to }, n) => n === 0 || to <= most);
  const to = batches.at(-1)?.to ?? 0;
  return { keys: parts.flat().slice(0, to), batches, left: from - to };
}

type Stop = Extract<Effect, { kind: 'stop' }>;

/** Null: a stop of an attempt that has ended, which concerns nobody. */
function instanceOf(effect: Effect, hostOf: (attempt: Stop['attempt']) => InstanceId | null): InstanceId | null {
  if (effect.kind === 'stop') return hostOf(effect.attempt);
  return invariant(effect.instance, `effect ${effect.key} names its instance`);
}
