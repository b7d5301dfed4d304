/**
 * Formats of request traces: counts of one minute per row. A minute with no row is unknown, not empty: a log that lacks
 * days says nothing about them. A minute of 0 requests was seen to have none.
 */
import { amountIn, tableOf, type Row, type SourceFile } from '../source.ts';
import { quote, type Tally } from '../tally.ts';

/** Counts by minute, in any order. */
export interface Counted {
  /** Minutes since any fixed instant. */
  readonly minute: number;
  readonly requests: number;
}

export interface RequestFormat {
  readonly format: string;
  readonly about: string;
  readonly columns: readonly string[];
  readonly notes: readonly string[];
  readonly read: (file: SourceFile, tally: Tally) => AsyncIterable<Counted>;
}

const MINUTE_MS = 60_000;

/** Minute of a time without a zone, as a log of one place has it. */
function minuteOf(text: string): number | null {
  const parts = /^(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):\d{2}$/.exec(text)?.slice(1).map(Number);
  if (parts === undefined) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = parts;
  return Date.UTC(year, month - 1, day, hour, minute) / MINUTE_MS;
}

const indexIn = (text: string): number | null => {
  const index = amountIn(text);
  return index !== null && Number.isInteger(index) ? index : null;
};

/** Reader of one row per minute. `minute`: null for a row that is none. */
const byRow = <C extends string>(
  columns: readonly C[],
  count: C,
  minute: (cells: Readonly<Record<C, string>>) => number | null,
) =>
  async function* read(file: SourceFile, tally: Tally): AsyncGenerator<Counted> {
    for await (const rows of tableOf(file, { columns, delimiter: ',', hasHeader: true }, tally)) {
      for (const { line, cells } of rows) {
        const [at, requests] = [minute(cells), amountIn(cells[count])];
        if (at === null || requests === null) tally.bad(file.label, line, faultOf(columns, { line, cells }));
        else yield { minute: at, requests };
      }
    }
  };

const faultOf = <C extends string>(columns: readonly C[], { cells }: Row<C>): string =>
  `a row has a minute and a count >= 0; got ${columns.map((c) => `${c} ${quote(cells[c])}`).join(', ')}`;

/** Minutes of a month of a log that counts from the first of each month. */
const minuteOfMonth = (month: string, index: string): number | null => {
  const first = minuteOf(`${month}-01 00:00:00`);
  const after = indexIn(index);
  return first === null || after === null ? null : first + after;
};

const WITH_TIMES = ['minute', 'requests'] as const;
const BY_MONTH = ['month', 'minute_index', 'requests'] as const;
const TWEETS = ['minute_index', 'tweets'] as const;

export const REQUEST_FORMATS: readonly RequestFormat[] = [
  {
    format: 'nasa-http',
    about: 'requests to the web server of NASA’s Kennedy Space Center, 1995: minutes counted by month',
    columns: BY_MONTH,
    notes: [],
    read: byRow(BY_MONTH, 'requests', (cells) => minuteOfMonth(cells.month, cells.minute_index)),
  },
  {
    format: 'requests-per-minute',
    about: 'a column of times and one of requests, as of the ClarkNet servers, 1995',
    columns: WITH_TIMES,
    notes: [],
    read: byRow(WITH_TIMES, 'requests', (cells) => minuteOf(cells.minute)),
  },
  {
    format: 'tweets-per-minute',
    about: 'tweets of the public sample stream of Twitter, 2021: minutes counted from the start',
    columns: TWEETS,
    notes: ['A tweet counts as a request.'],
    read: byRow(TWEETS, 'tweets', (cells) => indexIn(cells.minute_index)),
  },
];
