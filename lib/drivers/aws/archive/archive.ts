/**
 * The archive in the bucket: `archive/<kind>/dt=<day>/<sequence>-<event>.jsonl.gz`, one row per line.
 *
 * The stream delivers at least once, and a failed batch comes again, whole or in halves. An object is named after its
 * first change, and its day is that change's. So a repeated batch overwrites its object. Halves do so too: each begins
 * with the same change or with one that had no object.
 * A batch that is cut differently, after the mapping was replaced, can leave a row twice. `seq` and `id` identify such
 * rows.
 */
import { gzipSync } from 'node:zlib';
import type { Blobs } from '../store/blobs.ts';
import { ARCHIVE_PREFIX } from '../store/keys.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { rowsOf, type ArchiveKind, type StreamRecord } from './archive-rows.ts';

export interface Archived {
  readonly rows: number;
  /** The first unreadable change. Changes before it are archived. */
  readonly unreadable: { readonly sequence: string; readonly error: EbbError } | null;
}

interface Sheet {
  readonly kind: ArchiveKind;
  readonly day: string;
  readonly name: string;
  readonly lines: string[];
}

/** Archives a batch of changes in order. Errors of the bucket are thrown: the batch then comes again. */
export async function archive(
  records: readonly StreamRecord[],
  blobs: Pick<Blobs, 'put' | 'valueOf'>,
): Promise<Archived> {
  const sheets = new Map<string, Sheet>();
  let unreadable: Archived['unreadable'] = null;
  let count = 0;
  for (const record of records) {
    const { SequenceNumber: seq, ApproximateCreationDateTime: atS } = record.dynamodb;
    const at = new Date(atS * 1000).toISOString();
    const day = at.slice(0, 10);
    try {
      for (const { kind, id, value } of await rowsOf(record, blobs)) {
        const place = `${kind}/dt=${day}`;
        const sheet = sheets.get(place) ?? { kind, day, name: `${seq}-${record.eventID.slice(0, 8)}`, lines: [] };
        sheets.set(place, sheet);
        // The row's own keys come last: no key of the value may replace them.
        sheet.lines.push(JSON.stringify({ ...value, rowId: id, seq, archivedAt: at }));
        count += 1;
      }
    } catch (error) {
      if (!(error instanceof EbbError) || (error.code !== 'store.newer' && error.code !== 'store.corrupt')) throw error;
      unreadable = { sequence: seq, error };
      break;
    }
  }
  for (const { kind, day, name, lines } of sheets.values()) {
    const content = gzipSync(`${lines.join('\n')}\n`);
    await blobs.put(`${ARCHIVE_PREFIX}${kind}/dt=${day}/${name}.jsonl.gz`, content);
  }
  return { rows: count, unreadable };
}
