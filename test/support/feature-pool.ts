import type { FeaturePool } from '../../lib/market/features/market-features.ts';
import { poolKey } from '../../lib/domain/pool.ts';

export const C4_LARGE: FeaturePool = {
  id: poolKey('c4.large', 'us-east-1a', 'spot'),
  type: 'c4.large',
  family: 'c4',
  zone: 'us-east-1a',
  onDemandUsd: 0.11,
};
