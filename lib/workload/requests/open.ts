import { basename, resolve } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { hasColumns, sourceFiles } from '../source.ts';
import { Tally } from '../tally.ts';
import { REQUEST_FORMATS, type Counted } from './formats.ts';
import type { RequestTrace } from './trace.ts';

/** Longest trace: ten years. */
const MOST_MINUTES = 10 * 366 * 1440;

/**
 * Request trace of a file, or of a folder with one such file; gzip or not. Rows may come in any order; of a minute that
 * is there twice the requests are added up. The last minute is left out if it has less than a tenth of the one before
 * it: a log ends within a minute.
 *
 * Throws EbbError `workload.invalid` for no file, no known format, several traces in a folder, or no usable row.
 */
export async function openRequests(path: string): Promise<RequestTrace> {
  const files = await sourceFiles(path);
  const known = files.flatMap((file) => {
    const format = REQUEST_FORMATS.find((of) => hasColumns(file.head, of.columns));
    return format === undefined ? [] : [{ file, format }];
  });
  const [only] = known;
  if (only === undefined || known.length > 1) {
    const formats = REQUEST_FORMATS.map((of) => `${of.format} (${of.columns.join(',')})`).join('; ');
    throw new EbbError('workload.invalid', {
      what: only === undefined ? 'no request trace' : 'several request traces; name one file',
      at: path,
      got: files
        .map((f) => f.label)
        .join(', ')
        .slice(0, 200),
      allowed: `a CSV file of one of these formats, by its header: ${formats}`,
    });
  }
  const tally = new Tally();
  const counted: Counted[] = [];
  for await (const row of only.format.read(only.file, tally)) counted.push(row);
  const { bad } = tally.report();
  if (counted.length === 0) {
    const first = bad.first[0];
    throw new EbbError('workload.invalid', {
      what: 'a request trace without a usable row',
      at: only.file.label,
      got: first === undefined ? 'no rows' : `line ${first.line}: ${first.what}`,
    });
  }
  const { perMinute, notes } = inOrder(counted, only.file.label);
  const unusable = bad.count === 0 ? [] : [`${bad.count} unusable rows, the first at line ${bad.first[0]?.line}.`];
  return { name: basename(resolve(path)), perMinute, notes: [...only.format.notes, ...unusable, ...notes] };
}

function inOrder(counted: readonly Counted[], label: string): Pick<RequestTrace, 'perMinute' | 'notes'> {
  const first = counted.reduce((least, { minute }) => Math.min(least, minute), Infinity);
  const last = counted.reduce((most, { minute }) => Math.max(most, minute), -Infinity);
  if (last - first >= MOST_MINUTES) {
    throw new EbbError('workload.invalid', {
      what: 'a request trace spans more than ten years',
      at: label,
      got: `minutes ${first} to ${last}`,
      next: 'Check the times of its first and last row.',
    });
  }
  const perMinute = new Float64Array(last - first + 1).fill(NaN);
  for (const { minute, requests } of counted) {
    const at = minute - first;
    const before = perMinute[at] ?? NaN;
    perMinute[at] = requests + (Number.isNaN(before) ? 0 : before);
  }
  const notes: string[] = [];
  const unknown = perMinute.filter((n) => Number.isNaN(n)).length;
  if (unknown > 0) notes.push(`${unknown} minutes have no row: nothing is known of them.`);
  const ends = perMinute.length;
  if (ends > 1 && (perMinute[ends - 1] ?? 0) < (perMinute[ends - 2] ?? 0) / 10) {
    notes.push('The last minute is left out: it is a part of one.');
    return { perMinute: perMinute.slice(0, -1), notes };
  }
  return { perMinute, notes };
}
