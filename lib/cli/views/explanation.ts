import type { ExplanationView } from '../../api/schemas.ts';
import { dollars, duration, instant, percent, plural, rate } from '../format.ts';
import type { Output } from '../output.ts';
import { stateText } from './job-views.ts';
import { table, text } from './text-table.ts';

type Paint = Pick<Output, 'colors' | 'columns'>;
type Drivers = NonNullable<ExplanationView['forecast'][number]['drivers']>;
type Waiting = ExplanationView['waiting'][number];
type Move = ExplanationView['moves'][number];

/** State of a job and its reasons. Lines that differ by their instance only are joined; `--json` keeps them apart. */
export function explanation(output: Paint, e: ExplanationView): string {
  const { colors } = output;
  const sections = [
    `${colors.bold(text(e.name))}  ${e.job}  ${stateText(output, e.state)}${e.at === null ? '' : colors.dim(`  as decided at ${instant(e.at)}`)}`,
    text(e.headline),
  ];
  if (e.waiting.length > 0) sections.push([colors.bold('Waiting'), ...waitingLines(e.waiting)].join('\n'));
  if (e.placed.length > 0) {
    const placed = alikeButInstance(e.placed, (p) => `${p.stage} ${p.pool} ${p.why}`).map(
      ({ first: p, all }) =>
        `  ${text(p.stage)}: ${plural(tasksOf(all), 'task')} in ${p.pool} - ${text(
          naming(
            p.why,
            all.map((x) => x.why),
          ),
        )}`,
    );
    sections.push([colors.bold('Placed'), ...placed].join('\n'));
  }
  if (e.copies.length > 0) {
    const copies = e.copies.map((c) => `  ${text(c.stage)}[${c.index}]: ${text(c.why)}`);
    sections.push([colors.bold('Copies'), ...copies].join('\n'));
  }
  if (e.moves.length > 0) sections.push([colors.bold('Moves'), ...e.moves.flatMap(moveLines)].join('\n'));
  if (e.considered.length > 0) sections.push(considered(output, e.considered));
  if (e.forecast.length > 0) {
    sections.push([colors.bold('Forecast of interruptions'), ...e.forecast.flatMap(forecastLines)].join('\n'));
  }
  if (e.excluded.length > 0) {
    const excluded = e.excluded.map((x) => `  ${text(x.constraint)}: ${plural(x.pools, 'pool')}`);
    sections.push([colors.bold('Excluded by'), ...excluded].join('\n'));
  }
  if (e.runtime !== null) {
    const { medianS, p90S, basis } = e.runtime;
    sections.push(
      `${colors.bold('Running time of a task')}\n  median ${duration(medianS)}, 90 % within ${duration(p90S)} - ${text(basis)}`,
    );
  }
  if (e.admission.notes.length > 0) {
    sections.push([colors.bold('At submission'), ...e.admission.notes.map((n) => `  ${text(n)}`)].join('\n'));
  }
  return sections.join('\n\n');
}

const MOVE_STATES: Readonly<Record<Move['state'], string>> = {
  waits: 'waits for its target',
  saves: 'saves',
  arrives: 'arrives',
};

/** `  main[0]: i-1 (pool) -> i-2 (pool), saves - why` */
function moveLines(m: Move): string[] {
  const what = `  ${text(m.stage)}[${m.index}]: ${placeText(m.from)} -> ${placeText(m.to)}, ${MOVE_STATES[m.state]} - ${text(m.why)}`;
  const usd = [
    ...(m.savedUsd === null ? [] : [`saves ${dollars(m.savedUsd)}`]),
    ...(m.riskUsd === null ? [] : [`risks ${dollars(m.riskUsd)}`]),
  ];
  return usd.length === 0 ? [what] : [what, `    ${usd.join(', ')}`];
}

const placeText = ({ instance, pool }: Move['from']): string => {
  if (instance === null) return pool === null ? 'an instance with room' : `a new instance in ${pool}`;
  return pool === null ? instance : `${instance} (${pool})`;
};

function waitingLines(waiting: readonly Waiting[]): string[] {
  return alikeButInstance(waiting, (w) => `${w.stage} ${w.why} ${w.detail}`).flatMap(({ first: w, all }) => {
    const starts = all.flatMap((x) => x.expectedStartAt ?? []).sort();
    const details = all.map((x) => x.detail);
    return [
      `  ${text(w.stage)}: ${plural(tasksOf(all), 'task')} (${w.why}) - ${text(naming(w.detail, details))}`,
      `    what would change it: ${text(w.wouldChange)}`,
      ...(starts.length === 0 ? [] : [`    expected to start: ${span(starts)}`]),
    ];
  });
}

function span(sorted: readonly string[]): string {
  const first = instant(sorted[0] ?? null);
  const last = instant(sorted.at(-1) ?? null);
  return first === last ? first : `${first} to ${last}`;
}

function forecastLines({ pool, bid, pWithinHour, reason, drivers }: ExplanationView['forecast'][number]): string[] {
  const at = bid === 'uncapped' ? 'uncapped' : `bid ${rate(bid)}`;
  const first = `  ${pool}, ${at}: ${percent(pWithinHour)} within an hour - ${text(reason)}`;
  return drivers === null ? [first] : [first, `    ${driversText(drivers)}`];
}

/** Drivers of a price risk, in words. */
export function driversText({ aboveUsd, lastAboveS, knownS, range24hUsd }: Drivers): string {
  const crossed =
    lastAboveS === null
      ? `not passed in the ${duration(knownS)} that are known`
      : lastAboveS === 0
        ? 'passed by the price now'
        : `last passed ${duration(lastAboveS)} ago`;
  return `bid ${aboveUsd.toFixed(4)} USD/h above the price, ${crossed}; the price moved within ${range24hUsd.toFixed(4)} USD/h in a day`;
}

const tasksOf = (all: readonly { readonly tasks: number }[]): number => all.reduce((n, x) => n + x.tasks, 0);

/** Ids of instances, as the kernel makes them. */
const INSTANCE = /\bi-[0-9a-z]{8,}\b/g;

interface Alike<T> {
  readonly first: T;
  readonly all: readonly T[];
}

function alikeButInstance<T>(items: readonly T[], said: (item: T) => string): readonly Alike<T>[] {
  const groups = Map.groupBy(items, (item) => said(item).replace(INSTANCE, 'i-'));
  return [...groups.values()].flatMap((all) => (all[0] === undefined ? [] : [{ first: all[0], all }]));
}

/** First sentence with the instances of all. */
function naming(first: string, all: readonly string[]): string {
  const ids = [...new Set(all.flatMap((s) => s.match(INSTANCE) ?? []))];
  return ids.length < 2 ? first : first.replace(INSTANCE, ids.join(', '));
}

/** Offers that the plan chose from; dominated ones are counted. */
function considered(output: Paint, offers: ExplanationView['considered']): string {
  const kept = offers.filter((c) => !c.verdict.startsWith('not kept'));
  const left = offers.length - kept.length;
  const rest = left === 0 ? '' : `\n${output.colors.dim(`and ${left} that others are better than: see --json`)}`;
  const drawn = table(
    output,
    [
      { title: 'POOL', cell: (c) => c.pool, wrap: 22 },
      { title: 'BID', cell: (c) => (c.bid === 'uncapped' ? 'uncapped' : rate(c.bid)), right: true, optional: 2 },
      { title: 'PRICE', cell: (c) => rate(c.priceUsdPerHour), right: true, optional: 1 },
      { title: 'P(TAKEN)', cell: (c) => percent(c.pInterrupted), right: true },
      { title: 'P(LATE)', cell: (c) => percent(c.pLate), right: true },
      { title: 'COST/TASK', cell: (c) => dollars(c.expectedCostUsd), right: true },
      { title: 'VERDICT', cell: (c) => text(c.verdict), wrap: 16 },
    ],
    kept.length === 0 ? offers : kept,
    'nothing',
  );
  return `${output.colors.bold('Considered')}\n${drawn}${kept.length === 0 ? '' : rest}`;
}
