import type { EffectKey, InstanceId } from '../../../kernel/ids.ts';
import { invariant } from '../../../kernel/errors.ts';
import type { Effect } from '../../../domain/plan.ts';
import type { ActiveState } from '../../../ports/store.ts';
import { groupOf } from '../fleet/launch-groups.ts';

export interface Batches {
  readonly keys: readonly EffectKey[];
  /** Positions [from, to) of each batch. */
  readonly batches: readonly { readonly from: number; readonly to: number }[];
  /** Number of open effects that are left for the next cycle. */
  readonly left: number;
}

/**
 * Batches of effects that may run in parallel. All effects of one instance are in one batch, since their order counts:
 * launch, start, stop, release. Instances of one purchase request share a batch too.
 * A batch holds up to `size` effects, or more if one instance or request has more. Keys of closed effects are left out.
 *
 * Batches hold `most` effects together, or only the first batch if it has more. So the data in the state machine does
 * not grow with the plan. Older keys come first.
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

/** Null: a stop of an attempt that has already ended. */
function instanceOf(effect: Effect, hostOf: (attempt: Stop['attempt']) => InstanceId | null): InstanceId | null {
  if (effect.kind === 'stop') return hostOf(effect.attempt);
  return invariant(effect.instance, `effect ${effect.key} names its instance`);
}
