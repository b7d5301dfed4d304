import type { AppraisePolicy } from '../../domain/stages.ts';
import { appraise } from './appraise.ts';

/** As `appraise`, but spot pools are not looked at: what is never bought is not planned for either. */
export const appraiseWithoutSpot: AppraisePolicy = (snapshot, forecasts, worths, config) =>
  appraise(
    { ...snapshot, pools: snapshot.pools.filter(({ pool }) => pool.option !== 'spot') },
    forecasts,
    worths,
    config,
  );
