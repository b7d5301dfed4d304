/** Sums of costs by use. */
import type { CostReport } from './schemas.ts';

/** US dollars by use, and instance-hours. */
export type Money = CostReport['total'];

export const NO_MONEY: Money = {
  workUsd: 0,
  wastedUsd: 0,
  speculativeUsd: 0,
  movedUsd: 0,
  idleUsd: 0,
  totalUsd: 0,
  onDemandUsd: 0,
  instanceHours: 0,
};

/** Sum of costs. */
export const sumOfMoney = (parts: readonly Money[]): Money => parts.reduce(plusMoney, NO_MONEY);
export const plusMoney = (a: Money, b: Money): Money => combined(a, b, 1);
export const minusMoney = (a: Money, b: Money): Money => combined(a, b, -1);

const combined = (a: Money, b: Money, sign: 1 | -1): Money => ({
  workUsd: a.workUsd + sign * b.workUsd,
  wastedUsd: a.wastedUsd + sign * b.wastedUsd,
  speculativeUsd: a.speculativeUsd + sign * b.speculativeUsd,
  movedUsd: a.movedUsd + sign * b.movedUsd,
  idleUsd: a.idleUsd + sign * b.idleUsd,
  totalUsd: a.totalUsd + sign * b.totalUsd,
  onDemandUsd: a.onDemandUsd + sign * b.onDemandUsd,
  instanceHours: a.instanceHours + sign * b.instanceHours,
});
