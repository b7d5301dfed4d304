/**
 * Versions of what the table and the bucket hold, and how a value that an earlier version wrote becomes what this one
 * reads.
 *
 * Every value (codec.ts) bears the version that wrote it, in items, in objects and in the log alike. A reader brings it
 * up to its own version, one step after another; nothing is rewritten for that: what is written anyway is written in
 * the newest form, and what is over and never written again is read in its old form for good. Items bear a version, too
 * (`v`, of the last writer), which is looked at before their values are. Texts of `MEMORY` are their learners' own, who
 * read what they wrote before.
 *
 * To change the form of a value: append a step here, record what the new version writes (`npm run record:store`), and
 * never change one that was released. Keys and attributes that are no values have no steps: what they mean never
 * changes, and what is to mean something else gets a new name.
 */
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Key } from './keys.ts';
import { type CostRow, withIdleHours } from '../../../domain/costs.ts';

/** 1 to 4 were never released, and no table of theirs is read (docs/adr/0013-submissions-are-taken-in.md). */
export const FIRST_VERSION = 5;

/** Where a value lies: the item's key, and the attribute. What lies in an object is the item's `b`. */
export interface Place extends Key {
  readonly attribute: string;
}

interface Upgrade {
  /** Values of items whose keys begin so. */
  readonly of: Place;
  readonly to: (value: Readonly<Record<string, unknown>>) => unknown;
}

/** Step i takes values from version `FIRST_VERSION` + i to the next. */
export const STEPS: readonly (readonly Upgrade[])[] = [
  [
    // Since then the record of an instance says that its end was refused, and that somebody stopped it.
    {
      of: { pk: 'I#', sk: 'FLEET', attribute: 'b' },
      to: (record) => ({ endRefused: null, isStopped: false, ...record }),
    },
  ],
  [
    // Since then sums of costs tell idle time apart, which belongs to the jobs that caused it.
    {
      of: { pk: 'COSTS', sk: '', attribute: 'b' },
      to: (sums) =>
        Object.fromEntries(
          Object.entries(sums).map(([by, rows]) => [by, (rows as readonly CostRow[]).map(withIdleHours)]),
        ),
    },
  ],
  [
    // Since then rows of the ledger name who submitted the job.
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
];

export const SCHEMA_VERSION = FIRST_VERSION + STEPS.length;

/** The value as this version has it. Costs nothing where it is of this version. */
export function upgraded(value: unknown, at: Place, version: number): unknown {
  const due = STEPS.slice(version - FIRST_VERSION).flat();
  return due
    .filter(({ of }) => at.pk.startsWith(of.pk) && at.sk.startsWith(of.sk) && at.attribute === of.attribute)
    .reduce<unknown>((now, { to }) => to(now as Readonly<Record<string, unknown>>), value);
}
