import type { AppraisePolicy } from '../../policy/contracts.ts';
import { appraise } from './appraise.ts';

/** `appraise` without spot pools: the plan must not count on capacity that is never bought. */
export const appraiseWithoutSpot: AppraisePolicy = (context) => {
  const { snapshot } = context;
  return appraise({
    ...context,
    snapshot: { ...snapshot, pools: snapshot.pools.filter(({ pool }) => pool.option !== 'spot') },
  });
};
