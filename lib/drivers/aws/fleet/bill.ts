import { EbbError } from '../../../kernel/errors.ts';
import type { InstanceId } from '../../../kernel/ids.ts';
import { epochMs, gte, raw, type EpochMs } from '../../../kernel/units.ts';
import type { Bill } from '../../../domain/ledger.ts';
import { billOf, type BillingRules } from '../../../market/billing.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { Inbox } from './inbox.ts';
import { bidOf, paidUntilMs } from './instance-record.ts';

export interface BillParts {
  readonly inbox: Pick<Inbox, 'record'>;
  /** Prices as far as they are known. */
  readonly prices: () => Promise<MarketTrace>;
  readonly rules: BillingRules;
}

/** Cost of an instance by the published prices of its pool. Throws `not-found` for an unknown instance. */
export async function instanceBill(
  { inbox, prices, rules }: BillParts,
  instance: InstanceId,
  until: EpochMs,
): Promise<Bill> {
  const record = await inbox.record(instance);
  if (record === null || record.launchedMs === null) {
    throw new EbbError('not-found', { what: `there is no bill for instance ${instance}`, next: 'see `ebb instances`' });
  }
  const { gone, launchedMs, pool } = record;
  const takenByMarket = gone?.cause === 'interrupted' && gte(until, epochMs(gone.atMs));
  const untilMs = epochMs(paidUntilMs(record, raw(until)));
  const use = { launchedMs: epochMs(launchedMs), untilMs, bid: bidOf(record), takenByMarket };
  return billOf(await prices(), pool, use, rules);
}
