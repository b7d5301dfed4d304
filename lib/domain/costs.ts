import { instanceHours, LEDGER_KINDS, type LedgerKind, type LedgerRow } from './ledger.ts';

export interface CostRow {
  /** Job id, owner, pool id or template; '(idle)' for time that no job is known to have caused. */
  readonly key: string;
  readonly workUsd: number;
  readonly wastedUsd: number;
  readonly speculativeUsd: number;
  readonly movedUsd: number;
  readonly idleUsd: number;
  /** On-demand price of the work alone, without wasted, speculative, moved and idle time. */
  readonly onDemandUsd: number;
  readonly instanceHours: number;
  /** Idle part of the instance-hours; absent in sums of versions that did not keep it. */
  readonly idleHours?: number;
}

export const COST_KEYS = ['job', 'owner', 'caller', 'pool', 'template'] as const;

export type By = (typeof COST_KEYS)[number];

/**
 * Keys whose sums are kept for good. Jobs, templates and callers (sessions of a role) may be as many as rows of the
 * ledger, so their aged-out sums are one row.
 */
export const KEPT_SUMS = ['owner', 'pool'] as const;

export type KeptSum = (typeof KEPT_SUMS)[number];

export const isKeptSum = (by: By): by is KeptSum => (KEPT_SUMS as readonly By[]).includes(by);

type Sums = { -readonly [K in keyof CostRow]-?: Required<CostRow>[K] };

const MONEY = [
  'workUsd',
  'wastedUsd',
  'speculativeUsd',
  'movedUsd',
  'idleUsd',
  'onDemandUsd',
  'instanceHours',
  'idleHours',
] as const;

/** All that was charged. */
export const billedUsd = (row: Pick<CostRow, `${LedgerKind}Usd`>): number =>
  LEDGER_KINDS.reduce((sum, kind) => sum + row[`${kind}Usd`], 0);

/** Key of idle time that no job is known to have caused, and of all idle time where it is shown apart. */
export const IDLE_KEY = '(idle)';

/** Key of jobs without a recorded caller. */
export const UNKNOWN_CALLER = '(unknown)';

/** Under which key a row is summed. */
export const costKeyOf = (row: LedgerRow, by: By): string =>
  row[by] ?? (by === 'caller' && row.job !== null ? UNKNOWN_CALLER : IDLE_KEY);

/** Sums of costs by key. */
export class CostSums {
  readonly #sums = new Map<string, Sums>();

  /** All rows of one instance. */
  addInstance(rows: readonly LedgerRow[], by: By): void {
    const hours = instanceHours(rows);
    rows.forEach((row, i) => {
      const sum = this.#of(costKeyOf(row, by));
      sum[`${row.kind}Usd`] += row.usd;
      if (row.kind === 'work') sum.onDemandUsd += row.onDemandUsd;
      sum.instanceHours += hours[i] ?? 0;
      if (row.kind === 'idle') sum.idleHours += hours[i] ?? 0;
    });
  }

  /** The row `times` times: -1 takes it away. */
  add(row: CostRow, times = 1): void {
    const sum = this.#of(row.key);
    for (const name of MONEY) sum[name] += times * amountOf(row, name);
  }

  /** In order of their keys. */
  rows(): CostRow[] {
    return [...this.#sums.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** All rows as one. */
  total(key: string): CostRow {
    const all = new CostSums();
    for (const row of this.#sums.values()) all.add({ ...row, key });
    return all.#of(key);
  }

  #of(key: string): Sums {
    let sum = this.#sums.get(key);
    if (sum === undefined) {
      const money = Object.fromEntries(MONEY.map((name) => [name, 0])) as Record<(typeof MONEY)[number], number>;
      sum = { key, ...money };
      this.#sums.set(key, sum);
    }
    return sum;
  }
}

const amountOf = (row: CostRow, name: (typeof MONEY)[number]): number => withIdleHours(row)[name];

/** A row of a version that kept no idle hours gets an estimate: the idle share of its cost, as prices hardly change. */
export function withIdleHours(row: CostRow): Required<CostRow> {
  if (row.idleHours !== undefined) return { ...row, idleHours: row.idleHours };
  const allUsd = row.workUsd + row.wastedUsd + row.idleUsd;
  const part = row.key === IDLE_KEY ? 1 : allUsd > 0 ? row.idleUsd / allUsd : 0;
  return { ...row, idleHours: row.instanceHours * part };
}

/** The ledger summed by key. */
export function costsBy(ledger: Iterable<readonly LedgerRow[]>, by: By): CostSums {
  const sums = new CostSums();
  for (const rows of ledger) sums.addInstance(rows, by);
  return sums;
}

/** Relative rounding error of a sum of many numbers. */
const ROUNDING = 1e-9;

/**
 * True if two sums of the same rows, in any order, could differ by this much. `of`: the sum; absent: a small one. Idle
 * hours are not compared, because those of earlier versions are estimates.
 */
export const isRounding = (difference: CostRow, of?: CostRow): boolean =>
  MONEY.filter((name) => name !== 'idleHours').every(
    (name) => Math.abs(difference[name]) <= ROUNDING * Math.max(1, Math.abs(of?.[name] ?? 0)),
  );

/** Key of the aged-out part of the sums by job. */
export const AGED_OUT = '(aged out)';
