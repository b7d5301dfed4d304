/**
 * Versions of stored values, and the upgrade of older values to this version.
 *
 * Every value (codec.ts) holds the version of its writer, in items, objects and the log alike. Readers upgrade it step
 * by step; nothing is rewritten for that. New writes have the newest form, and finished records keep their old form for
 * good. Items have a version too (`v`, of the last writer), which is checked before their values. Texts of `MEMORY`
 * belong to their learners, which read their own older forms.
 *
 * To change the form of a value, append a step here and record the new version (`npm run record:store`). Released steps
 * never change. Keys and plain attributes have no steps: their meaning never changes, and a new meaning gets a new
 * name.
 */
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Key } from './keys.ts';
import { type CostRow, withIdleHours } from '../../../domain/costs.ts';

/** First released version: no table of versions 1 to 4 is read (docs/adr/0013-submissions-are-taken-in.md). */
export const FIRST_VERSION = 5;

/** Place of a value: key of the item, and attribute. An object's content is the item's `b`. */
export interface Place extends Key {
  readonly attribute: string;
}

interface Upgrade {
  /** Values of items whose keys have this prefix. */
  readonly of: Place;
  readonly to: (value: Readonly<Record<string, unknown>>) => unknown;
}

/** Step i upgrades from version `FIRST_VERSION` + i to the next. */
export const STEPS: readonly (readonly Upgrade[])[] = [
  [
    // Record of an instance with the refusal of its end, and whether somebody stopped it.
    {
      of: { pk: 'I#', sk: 'FLEET', attribute: 'b' },
      to: (record) => ({ endRefused: null, isStopped: false, ...record }),
    },
  ],
  [
    // Sums of costs with separate idle time, which belongs to the jobs that caused it.
    {
      of: { pk: 'COSTS', sk: '', attribute: 'b' },
      to: (sums) =>
        Object.fromEntries(
          Object.entries(sums).map(([by, rows]) => [by, (rows as readonly CostRow[]).map(withIdleHours)]),
        ),
    },
  ],
  [
    // Ledger rows with the submitter of the job.
    {
      of: { pk: 'I#', sk: 'LEDGER#', attribute: 'b' },
      to: (rows) => (rows as unknown as readonly LedgerRow[]).map((row) => ({ ...row, caller: null })),
    },
  ],
  [
    // Since then sums of costs tell superseded running apart from work. Rows of the ledger before call it work.
    {
      of: { pk: 'COSTS', sk: '', attribute: 'b' },
      to: (sums) =>
        Object.fromEntries(
          Object.entries(sums).map(([by, rows]) => [
            by,
            (rows as readonly CostRow[]).map((row) => ({ ...row, speculativeUsd: 0 })),
          ]),
        ),
    },
  ],
  [
    // Since then sums of costs tell the time of moves apart. Rows of the ledger before call it work or wasted.
    {
      of: { pk: 'COSTS', sk: '', attribute: 'b' },
      to: (sums) =>
        Object.fromEntries(
          Object.entries(sums).map(([by, rows]) => [
            by,
            (rows as readonly CostRow[]).map((row) => ({ ...row, movedUsd: 0 })),
          ]),
        ),
    },
  ],
];

export const SCHEMA_VERSION = FIRST_VERSION + STEPS.length;

/** Value in the form of this version. Free if it already has it. */
export function upgraded(value: unknown, at: Place, version: number): unknown {
  const due = STEPS.slice(version - FIRST_VERSION).flat();
  return due
    .filter(({ of }) => at.pk.startsWith(of.pk) && at.sk.startsWith(of.sk) && at.attribute === of.attribute)
    .reduce<unknown>((now, { to }) => to(now as Readonly<Record<string, unknown>>), value);
}
