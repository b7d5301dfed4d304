import type { SchedulerConfig } from '../../domain/config.ts';
import type { Distribution } from '../../domain/distribution.ts';
import { chargedAloneS, furtherChargedS } from '../../market/billing.ts';

/**
 * Charged time for which one task holds an instance: its running time, rounded up to the billing unit. Seconds, means
 * over the running time.
 */
export interface Holding {
  readonly runtimeS: number;
  /** On a new instance, from its launch on under billing by the hour. */
  readonly ofNewS: number;
  /** On an instance that stays for other work: running time that is not paid anyway. */
  readonly besideS: (paidS: number) => number;
  /** On an instance that is kept for this task alone: charged time that is not paid anyway. */
  readonly aloneS: (paidS: number) => number;
}

type Rules = Pick<SchedulerConfig, 'billing' | 'startDelayMeanS'>;

/** O(bins) per question. */
export function holdingOf(runtime: Distribution, runtimeS: number, config: Rules): Holding {
  const expected = (of: (s: number) => number): number =>
    runtime.atS.reduce((sum, s, i) => sum + (runtime.weight[i] ?? 0) * of(s), 0);
  const beyond = (s: number, paidS: number): number => Math.max(0, s - paidS);
  return {
    runtimeS,
    ofNewS: chargedAloneS(runtime, config),
    besideS: (paidS) => expected((s) => beyond(s, paidS)),
    aloneS: (paidS) => expected((s) => furtherChargedS(beyond(s, paidS), config)),
  };
}
