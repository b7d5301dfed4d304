/**
 * Risk of capacity from a trained model: one question per decision, about the pools in its training data. The others
 * get a reason, and observed interruptions (hazard.ts) answer for them, because the model was not shown to be better
 * there (docs/forecast-capacity.md).
 */
import type { PoolId } from '../../kernel/ids.ts';
import { raw, type EpochMs } from '../../kernel/units.ts';
import type { CapacityModel } from '../../domain/forecast.ts';
import { CAPACITY_FEATURES, type CapacityNews, type HeldSince } from '../features/capacity-features.ts';
import { askModel, type ModelCurve } from './model-curves.ts';

/** P(capacity ends); null for a pool that was not asked about. */
export type CapacityRisks = (pool: PoolId) => ModelCurve | null;

export interface CapacityQuestion {
  readonly now: EpochMs;
  /** Spot pools; each counts once. */
  readonly pools: Iterable<PoolId>;
  readonly news: Pick<CapacityNews, 'at'>;
  readonly held: HeldSince;
}

/** O(pools). */
export async function capacityRisks(model: CapacityModel, question: CapacityQuestion): Promise<CapacityRisks> {
  const { now, pools, news, held } = question;
  const view = news.at(raw(now), held);
  const rows = new Map<PoolId, Float32Array | string>();
  for (const pool of pools) {
    const isKnown = model.pools.has(pool);
    const row = isKnown ? view.features(pool) : null;
    rows.set(pool, row ?? (isKnown ? 'nothing was seen of it yet' : `model ${model.version} was not trained on it`));
  }
  const asked = [...rows].filter((entry): entry is [PoolId, Float32Array] => typeof entry[1] !== 'string');
  const batch = new Float32Array(asked.length * CAPACITY_FEATURES.length);
  asked.forEach(([, row], i) => batch.set(row, i * CAPACITY_FEATURES.length));
  const answer = await askModel(model, batch);
  const places = new Map(asked.map(([pool], i) => [pool, i]));
  return (pool) => {
    const row = rows.get(pool);
    if (row === undefined) return null;
    return typeof row === 'string' ? { kind: 'none', why: row } : answer(places.get(pool) ?? NaN);
  };
}
