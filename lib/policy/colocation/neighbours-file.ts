/** A file of what one deployment has learned of neighbours, for another one to begin with. */
import { z } from 'zod';
import { EbbError } from '../../kernel/errors.ts';
import { VERSION } from './neighbour-rows.ts';

const FORMAT = 'ebbtide-neighbours';
/** Prefix of the learner's rows, and kinds of them that say something elsewhere: not those of instances. */
const ROW = /^neighbours\/(?:groups|[tgsm]\/.{1,2000})$/s;
/** Rows at most: templates, those that are told apart, groups and types of machines. */
const MOST_ROWS = 5000;
/** Characters of a row at most. */
const MOST_TEXT = 100_000;

const file = z.strictObject({
  format: z.literal(FORMAT),
  version: z.literal(VERSION),
  rows: z
    .record(z.string().regex(ROW), z.string().max(MOST_TEXT))
    .refine((rows) => Object.keys(rows).length <= MOST_ROWS, `has more than ${MOST_ROWS} rows`),
});

/** Rows that go into a file. */
export const exportedRows = (rows: ReadonlyMap<string, string>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...rows].filter(([key, text]) => ROW.test(key) && text !== '').sort(([a], [b]) => (a < b ? -1 : 1)),
  );

export const neighboursFile = (rows: Readonly<Record<string, string>>): string =>
  `${JSON.stringify({ format: FORMAT, version: VERSION, rows }, null, 1)}\n`;

/** Rows of a file. Throws `usage` for a file of another version, or that is no such file. */
export function rowsOfNeighboursFile(text: string, path: string): ReadonlyMap<string, string> {
  const refuse = (what: string, allowed: string): never => {
    throw new EbbError('usage', {
      what: `what was learned of neighbours cannot be read: ${what}`,
      got: path,
      allowed,
      next: 'write the file with `ebb neighbours export FILE` of this version',
    });
  };
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return refuse('the file is no JSON', `a file with \`format: ${FORMAT}\``);
  }
  const { format, version } = z
    .looseObject({ format: z.unknown(), version: z.unknown() })
    .catch({ format: undefined, version: undefined })
    .parse(given);
  if (format !== FORMAT) return refuse('it is another kind of file', `a file with \`format: ${FORMAT}\``);
  if (version !== VERSION) return refuse(`it is of version ${JSON.stringify(version)}`, `version ${VERSION}`);
  const parsed = file.safeParse(given);
  if (parsed.success) return new Map(Object.entries(parsed.data.rows));
  const [issue] = parsed.error.issues;
  return refuse(`${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim(), 'the rows that an export has');
}
