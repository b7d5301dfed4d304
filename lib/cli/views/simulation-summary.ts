import { choices, type Estimate } from '../../report/comparison.ts';
import { cheaper } from '../../report/sections.ts';
import { isMissed, serviceRows, type ServiceRow } from '../../report/services.ts';
import { excessText } from '../../report/excess.ts';
import { dollars, percent } from '../format.ts';
import type { Output } from '../output.ts';
import { table, text, type Column } from './text-table.ts';
import type { Comparison, Difference, PresetFigures } from '../../report/figures.ts';

type Paint = Pick<Output, 'colors' | 'columns'>;

/** Summary of `ebb simulate`: presets side by side, their certainty, problems, and the next step. */
export function simulationSummary(output: Paint, comparison: Comparison, report: string | null): string {
  const { colors } = output;
  const { presets, differences, method, warnings } = comparison;
  const parts = [
    ...warnings.map((w) => colors.yellow(`! ${w}`)),
    presetsTable(output, presets),
    ...servicesTable(output, presets),
    ...(differences.length === 0 ? [] : ['', differencesTable(output, ofTheCheapest(comparison))]),
    '',
    ...presets.flatMap((p) => excessText(p) ?? []),
    colors.dim(LEGEND),
    colors.dim(method.text),
    report === null ? colors.dim('charts and jobs: add --report FILE.html') : `open ${colors.bold(text(report))}`,
  ];
  return parts.join('\n');
}

/** One row per preset. Intervals stand below their figure, so that the table fits a terminal. */
export function presetsTable(output: Paint, presets: readonly PresetFigures[]): string {
  const { colors } = output;
  const figure = (of: Estimate | null, format: (x: number) => string): string => {
    const range = rangeText(of, format);
    return `${valueText(of, format)}${range === null ? '' : `\n${colors.dim(range)}`}`;
  };
  const alarming = (bad: boolean, shown: string): string => (bad ? colors.red(shown) : shown);
  const columns: readonly Column<PresetFigures>[] = [
    { title: 'PRESET', cell: (p) => text(p.preset), wrap: 10 },
    right('COST', (p) => figure(p.costUsd, dollars)),
    right('OF LIST', (p) => figure(p.toOnDemandPrices, percent)),
    right('÷ ON-DEMAND', (p) => figure(p.toOnDemand, ratio)),
    right('÷ LOWER BOUND', (p) => figure(p.toBound, ratio)),
    right('÷ ORACLE', (p) => figure(p.toOracle, ratio)),
    right('MISSED', (p) =>
      p.deadlines === 0
        ? NOTHING
        : `${alarming(p.missed > 0, `${p.missed} of ${p.deadlines}`)}\n${colors.dim(estimateText(p.missedShare, percent))}`,
    ),
    right('NOT DONE', (p) =>
      alarming(
        p.unfinished + p.failed + p.notSubmitted > 0,
        String(p.unfinished + p.failed + p.refused + p.notSubmitted),
      ),
    ),
    right('WASTED', (p) => valueText(p.wastedShare, percent), 2),
    right('SPECULATIVE', (p) => (p.speculativeUsd > 0 ? valueText(p.speculativeShare, percent) : NOTHING), 2),
    right('MOVED', (p) => (p.movedUsd > 0 ? valueText(p.movedShare, percent) : NOTHING), 2),
    right('IDLE', (p) => valueText(p.idleShare, percent), 1),
    right('UTILISED', (p) => valueText(p.utilisation, percent), 3),
    right('TAKEN', (p) => valueText(p.interruptions, oneDigit), 4),
  ];
  const known = columns.filter((c) => presets.some((p) => c.cell(p) !== NOTHING));
  return table(output, known, presets, 'no preset was simulated');
}

/** One row per service and preset; none without services. */
function servicesTable(output: Paint, presets: readonly PresetFigures[]): readonly string[] {
  const rows = serviceRows(presets);
  if (rows.length === 0) return [];
  const { colors } = output;
  const slow = (s: ServiceRow): string => {
    const shown = `${percentExactly(s.slowShare.value)} of ${percentExactly(s.maySlow)}`;
    return isMissed(s) ? colors.red(shown) : shown;
  };
  const columns: readonly Column<ServiceRow>[] = [
    { title: 'SERVICE', cell: (s) => text(s.service), wrap: 12 },
    { title: 'PRESET', cell: (s) => text(s.preset), wrap: 10 },
    { title: 'REQUESTS', cell: (s) => Math.round(s.requests).toLocaleString('en-US'), right: true },
    { title: 'SLOW', cell: slow, right: true, wrap: 15 },
    { title: 'FAILED', cell: (s) => percentExactly(s.failedShare.value), right: true },
    { title: 'REPLICAS', cell: (s) => `${oneDigit(s.replicaHours)} h`, right: true },
    { title: 'TAKEN', cell: (s) => oneDigit(s.interruptions), right: true, optional: 2 },
    { title: 'COST', cell: (s) => estimateText(s.costUsd, dollars), right: true, wrap: 9 },
    { title: 'OF LIST', cell: (s) => valueText(s.toOnDemandPrices, percent), right: true, optional: 1 },
  ];
  return ['', table(output, columns, rows, ''), colors.dim(SERVICE_LEGEND)];
}

/** Shares of requests are small: two digits. */
const percentExactly = (share: number | null): string =>
  share === null ? NOTHING : `${Number((100 * share).toPrecision(2))} %`;

const SERVICE_LEGEND =
  'SLOW: share of the requests later than the target, failed ones among them, of the share that the target allows; REPLICAS: hours of those that served; TAKEN: replicas that the market took; COST: charges of the replicas with their part of what idled.';

/** Legend of the short titles. */
const LEGEND =
  'COST per run; OF LIST: of the same work at the on-demand prices of its instances, nothing wasted, speculative, moved or idle; ÷ ON-DEMAND: over the cheapest on-demand way that knows nothing of the future; ÷ LOWER BOUND: charges before refunds over what no way of doing all work in time undercuts; NOT DONE: jobs unfinished, failed, refused or past the end; WASTED, MOVED, IDLE: of the cost, work that was lost, moves of tasks, and capacity that ran nothing; UTILISED: of the instance-hours, what ran work; TAKEN: instances that the market interrupted, per run.';

const NOTHING = '-';

const right = (title: string, cell: (p: PresetFigures) => string, optional?: number): Column<PresetFigures> => ({
  title,
  cell,
  right: true,
  wrap: 9,
  ...(optional === undefined ? {} : { optional }),
});

const valueText = (of: Estimate | null, format: (x: number) => string): string =>
  of === null || of.value === null ? NOTHING : format(of.value);

/** Null without an interval, or if both ends read alike. */
function rangeText(of: Estimate | null, format: (x: number) => string): string | null {
  if (of === null || of.interval === null) return null;
  const [low, high] = [format(of.interval.low), format(of.interval.high)];
  return low === high ? null : `[${low}, ${high}]`;
}

function estimateText(of: Estimate, format: (x: number) => string): string {
  const range = rangeText(of, format);
  return `${valueText(of, format)}${range === null ? '' : ` ${range}`}`;
}

const ratio = (x: number): string => x.toPrecision(3);
const oneDigit = (x: number): string => String(Number(x.toFixed(1)));

/**
 * Comparisons of the cheapest eligible preset with each other one. Without an eligible preset all pairs, as in the
 * report.
 */
function ofTheCheapest({ presets, differences }: Comparison): readonly Difference[] {
  const [cheapest] = choices(presets);
  return cheapest === undefined
    ? differences
    : differences.filter((d) => d.a === cheapest.preset || d.b === cheapest.preset);
}

function differencesTable(output: Paint, differences: readonly Difference[]): string {
  return table(
    output,
    [
      { title: 'DIFFERENCE', cell: (d) => `${text(d.a)} - ${text(d.b)}`, wrap: 14 },
      { title: 'COST', cell: (d) => estimateText(d.costUsd, signed(dollars)), right: true, wrap: 12 },
      { title: 'OF THE SECOND', cell: (d) => estimateText(d.costShare, signed(percent)), right: true, wrap: 12 },
      { title: 'MISSED', cell: (d) => estimateText(d.missedShare, points), right: true, wrap: 12 },
      { title: 'CHEAPER', cell: (d) => text(cheaper(d)), wrap: 13 },
    ],
    differences,
    '',
  );
}

const signed =
  (format: (x: number) => string) =>
  (x: number): string =>
    x > 0 ? `+${format(x)}` : format(x);

/** Difference with its sign as displayed. */
function points(x: number): string {
  const shown = Number((x * 100).toFixed(2));
  return `${shown > 0 ? '+' : ''}${shown} pp`;
}
