import { vcpusIn } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { StageSpec } from '../../domain/job.ts';
import { type Pool, type PoolView, onDemandUsdOf } from '../../domain/pool.ts';
import { slowdownOn, slowsAnywhere } from '../../domain/slowdown.ts';
import { KINDS, vector } from '../../domain/resources.ts';

/**
 * Price if no pool fits, only to keep the worth above zero: us-east-1's list price of the m5 family, USD per vCPU-hour
 * (0.192 / 4).
 */
const FALLBACK_USD_PER_VCPU_HOUR = 0.048;

type Asked = Pick<StageSpec, 'resources' | 'constraints' | 'preferences'>;

/** On-demand price of one task alone. */
interface TaskRate {
  readonly usdPerHour: number;
  /** Its running time there over that where all soft constraints are met. */
  readonly slowdown: number;
}
/** Cached by the stage's record, and for MOST_KNOWN needs and constraints. */
export type TaskPrice = (stage: Asked) => TaskRate;

const MOST_KNOWN = 4096;

/**
 * The same function while the pools are the same, whatever spot costs, because every cycle asks about the same stages.
 * Keeps the pools of the last call.
 */
export function rememberedPrices(): (views: readonly PoolView[]) => TaskPrice {
  let known: { readonly views: readonly PoolView[]; readonly prices: TaskPrice } | null = null;
  return (views) => {
    const same =
      known !== null && known.views.length === views.length && known.views.every((v, i) => v.pool === views[i]?.pool);
    if (known === null || !same) known = { views, prices: onDemandPrices(views) };
    return known.prices;
  };
}

/**
 * US dollars per hour of the cheapest instance that holds one task within its constraints, at its on-demand price,
 * without sharing. Cheapest is the one with the lowest price of the task's work: work worth more than that always pays
 * in the end. A constraint to spot is ignored: this is the yardstick of worth, not a place to run.
 */
export function onDemandPrices(views: readonly PoolView[]): TaskPrice {
  const pools = new Map<string, Pool>();
  for (const { pool } of views) pools.set(`${pool.type.name}/${pool.zone}`, pool);
  const list = [...pools.values()];
  const capacities = list.map((p) => vector(p.type.capacity));
  const known = new Map<string, TaskRate>();

  const cheapest: TaskPrice = ({ resources, constraints, preferences }) => {
    const need = vector(resources);
    const [allowed] = constraints.purchaseOptions ?? [];
    const satisfied = (pool: Pool): boolean =>
      brokenConstraint(constraints, allowed === undefined ? pool : { ...pool, option: allowed }) === null;
    let best = { usdPerHour: vcpusIn(resources.cpu) * FALLBACK_USD_PER_VCPU_HOUR, slowdown: 1 };
    let leastUsd = Infinity;
    list.forEach((pool, i) => {
      let share = 0;
      for (let k = 0; k < KINDS; k++) {
        const n = need[k] ?? 0;
        const have = capacities[i]?.[k] ?? 0;
        if (n > 0) share = Math.max(share, have > 0 ? n / have : Infinity);
      }
      const usdPerHour = onDemandUsdOf(pool);
      if (share > 1 || !(usdPerHour > 0 && usdPerHour < leastUsd) || !satisfied(pool)) return;
      const slowdown = slowdownOn(preferences, pool);
      if (usdPerHour * slowdown >= leastUsd) return;
      leastUsd = usdPerHour * slowdown;
      best = { usdPerHour, slowdown };
    });
    return best;
  };
  const byStage = new WeakMap<Asked, TaskRate>();
  return (stage) => {
    const asked = byStage.get(stage);
    if (asked !== undefined) return asked;
    const { resources, constraints, preferences } = stage;
    const soft = slowsAnywhere(preferences) ? JSON.stringify(preferences) : '';
    const key = `${vector(resources).join(',')}|${JSON.stringify(constraints)}|${soft}`;
    let rate = known.get(key);
    if (rate === undefined) {
      rate = cheapest(stage);
      if (known.size >= MOST_KNOWN) known.clear();
      known.set(key, rate);
    }
    byStage.set(stage, rate);
    return rate;
  };
}
