import type { AppraisePolicy } from '../../policy/contracts.ts';
import { appraise } from './appraise.ts';

/** As `appraise`, but spot pools are not looked at: what is never bought is not planned for either. */
export const appraiseWithoutSpot: AppraisePolicy = (context) => {
  const { snapshot } = context;
  return appraise({
    ...context,
    snapshot: { ...snapshot, pools: snapshot.pools.filter(({ pool }) => pool.option !== 'spot') },
  });
};
