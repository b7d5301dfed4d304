import { number, numberOf } from '../store/codec.ts';
import { spentKey } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';

const DAY_MS = 86_400_000;
/** Days that sums are kept; graphs of CloudWatch show older ones. */
const KEEP_DAYS = 31;

const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);
const keyOf = (day: number) => spentKey(new Date(day * DAY_MS).toISOString().slice(0, 10));

/**
 * Cost of ended instances by the day (UTC) of their end, for a graph and an alarm, so that no ledger is read. A
 * repeated commit may count twice; the ledger is exact.
 */
export class Spent {
  readonly #table: Pick<Table, 'add' | 'get'>;

  constructor(table: Pick<Table, 'add' | 'get'>) {
    this.#table = table;
  }

  async add(endedMs: number, usd: number): Promise<void> {
    const day = dayOf(endedMs);
    if (usd > 0) {
      await this.#table.add(keyOf(day), 'usd', usd, { ttl: number(Math.ceil((day + KEEP_DAYS) * (DAY_MS / 1000))) });
    }
  }

  async on(ms: number): Promise<number> {
    return numberOf(await this.#table.get(keyOf(dayOf(ms))), 'usd');
  }
}

/** Midnight (UTC) before this time. */
export const startOfDay = (ms: number): number => dayOf(ms) * DAY_MS;
