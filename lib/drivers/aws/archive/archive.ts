/**
 * The archive in the bucket: `archive/<kind>/dt=<day>/<sequence>-<event>.jsonl.gz`, one row a line.
 *
 * The stream comes at least once, and a batch that failed comes again, whole or in halves. An object has the name of
 * the first change that is in it, and its day is the change's own, so that what comes again overwrites what it wrote
 * before: halves included, as each begins with the same change or one that had no object of its own. A batch that is
 * cut otherwise (the mapping was made anew) can leave a row twice: `seq` and `id` tell.
 */
import { gzipSync } from 'node:zlib';
import type { Blobs } from '../store/blobs.ts';
import { ARCHIVE_PREFIX } from '../store/keys.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { rowsOf, type ArchiveKind, type StreamRecord } from './archive-rows.ts';

export interface Archived {
  readonly rows: number;
  /** The first change that cannot be read; those before it are archived. */
  readonly unreadable: { readonly sequence: string; readonly error: EbbError } | null;
}

interface Sheet {
  readonly kind: ArchiveKind;
  readonly day: string;
  readonly name: string;
  readonly lines: string[];
}

/** Archives a batch of changes, in their order. Throws what the bucket throws: the batch then comes again. */
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
        // What it is comes last: none of its keys may take the place of these.
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
