/** Static parts of the page: what was run, what went wrong, figures of presets. They need no script. */
import { count, dollars, duration, minute, NONE, percent, plural, ratio } from './client/format.ts';
import { choices, type Estimate } from './comparison.ts';
import { excessText } from './excess.ts';
import { html, type Markup } from './markup.ts';
import { servicesMissed } from './services.ts';
import { figure, hasFigures, rangeOf, tableOf, type Column } from './tables.ts';
import type { RunOutcome } from './outcome.ts';
import type { Comparison, Difference, PresetFigures } from './figures.ts';

/** Inputs of a run, in the words of its author. */
export interface Provenance {
  readonly workload: string;
  readonly market: string;
  /** Command line, if there was one. */
  readonly command: string | null;
  /** Versions of software and data, by name. */
  readonly versions: Readonly<Record<string, string>>;
  /** Further facts that a reader needs first: unreadable lines of the workload, dropped jobs. */
  readonly notes: readonly string[];
  /** Assumptions of the workload's reader. */
  readonly assumptions: readonly string[];
}

export function headline(comparison: Comparison, runs: readonly RunOutcome[], of: Provenance): Markup {
  const bad = badNews(comparison, of.notes);
  const good = goodNews(comparison);
  const { presets, seeds } = comparison;
  const shown = (values: readonly string[]): string =>
    values.length > 6 ? `${values.slice(0, 6).join(', ')} and ${values.length - 6} more` : values.join(', ');
  const facts: readonly (readonly [string, string])[] = [
    ['Workload', of.workload],
    ...(of.assumptions.length === 0 ? [] : [['Assumed', of.assumptions.join(' ')] as const]),
    ['Market', of.market],
    [comparison.fromMs.length === 1 ? 'Window' : 'Windows', windowsText(windowsOf(runs))],
    ['Presets', presets.map((p) => p.preset).join(', ')],
    [seeds.length === 1 ? 'Seed' : 'Seeds', shown(seeds.map(String))],
    ['Runs', `${count(runs.length)}, ${count(runs.reduce((n, r) => n + r.totals.jobs, 0))} jobs in all`],
    ...(of.command === null ? [] : [['Command', of.command] as const]),
    [
      'Versions',
      Object.entries(of.versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(', '),
    ],
  ];
  return html`<section aria-label="Summary">
    ${verdict(bad, 'bad')}${verdict(good, '')}
    <dl class="facts">
      ${facts.map(
        ([name, value]) =>
          html`<dt>${name}</dt>
            <dd>${value}</dd>`,
      )}
    </dl>
  </section>`;
}

const verdict = (lines: readonly string[], kind: 'bad' | ''): Markup | null =>
  lines.length === 0
    ? null
    : html`<ul class="verdict ${kind}">
        ${lines.map((line) => html`<li class="${kind}">${line}</li>`)}
      </ul>`;

interface Window {
  readonly fromMs: number;
  readonly endMs: number;
}

/** Windows by their start. A window ends with the last of its runs. */
const windowsOf = (runs: readonly RunOutcome[]): readonly Window[] =>
  [...Map.groupBy(runs, (r) => r.fromMs)]
    .map(([fromMs, its]) => ({ fromMs, endMs: Math.max(...its.map((r) => r.endMs)) }))
    .sort((a, b) => a.fromMs - b.fromMs);

/** Windows in words: one or two in full, more by number and range. */
function windowsText(windows: readonly Window[]): string {
  const [first] = windows;
  if (windows.length <= 2 || first === undefined) return windows.map(windowText).join(', ');
  const endMs = Math.max(...windows.map((w) => w.endMs));
  const longestMs = Math.max(...windows.map((w) => w.endMs - w.fromMs));
  return `${windows.length} between ${minute(first.fromMs)} and ${minute(endMs)} UTC, up to ${duration(longestMs / 1000)} each`;
}

const windowText = ({ fromMs, endMs }: Window): string =>
  `${minute(fromMs)} to ${minute(endMs)} UTC (${duration((endMs - fromMs) / 1000)})`;

/** Missed deadlines, unfinished work and doubts, shown first. */
export function badNews(comparison: Comparison, notes: readonly string[]): readonly string[] {
  // Presets with equal shortcomings share a line: refusals do not depend on the preset.
  const said = Map.groupBy(comparison.presets, shortcomings);
  said.delete('');
  const all = comparison.presets.length;
  const lines = [...said].map(([text, presets]) =>
    all > 1 && presets.length === all ? `Every preset: ${text}.` : `${names(presets)}: ${text}.`,
  );
  return [...lines, ...tooLate(comparison), ...comparison.warnings, ...notes];
}

function tooLate({ presets }: Pick<Comparison, 'presets'>): readonly string[] {
  const possible = choices(presets);
  return possible.length > 1 && possible.every(missesMany)
    ? [`Every preset misses more than ${MISSED_MOST * 100} % of the deadlines.`]
    : [];
}

function shortcomings(p: PresetFigures): string {
  const parts: string[] = [];
  if (p.missed > 0)
    parts.push(`${count(p.missed)} of ${plural(p.deadlines, 'deadline')} missed (${percent(p.missed / p.deadlines)})`);
  if (p.failed > 0) parts.push(`${plural(p.failed, 'job')} failed or cancelled`);
  if (p.unfinished > 0) parts.push(`${plural(p.unfinished, 'job')} unfinished at the end`);
  if (p.refused > 0) parts.push(`${plural(p.refused, 'job')} refused at submission`);
  parts.push(...servicesMissed(p));
  return parts.join('; ');
}

const names = (presets: readonly PresetFigures[]): string => presets.map((p) => p.preset).join(', ');

/** Highest share of missed deadlines with which a preset is compared by cost. */
const MISSED_MOST = 0.01;
const missesMany = (p: PresetFigures): boolean =>
  (p.missedShare.value ?? 0) > MISSED_MOST || servicesMissed(p).length > 0;

export function goodNews({ presets, differences }: Pick<Comparison, 'presets' | 'differences'>): readonly string[] {
  const clean = presets.filter((p) => shortcomings(p) === '' && p.notSubmitted === 0 && p.aborted === 0);
  const lines = clean.length === 0 ? [] : [`All jobs done, no deadline missed: ${names(clean)}.`];
  const possible = choices(presets);
  const kept = possible.filter((p) => !missesMany(p));
  const [best] = possible.length > 1 ? kept : possible;
  if (best === undefined) return lines;
  const among = possible.length > 1 ? `Cheapest of those that miss at most ${MISSED_MOST * 100} %: ` : '';
  const alike = undecided(differences, best.preset, new Set(kept.map((p) => p.preset)));
  const doubt = alike.length === 0 ? '' : `; no difference shown to ${alike.join(', ')}`;
  return [...lines, `${among}${best.preset}, ${dollars(best.costUsd.value ?? NaN)} per run${against(best)}${doubt}.`];
}

/** Presets whose cost the runs do not tell from that of `preset`. */
const undecided = (differences: readonly Difference[], preset: string, among: ReadonlySet<string>): readonly string[] =>
  differences.flatMap((d) => {
    const other = d.a === preset ? d.b : d.b === preset ? d.a : null;
    return other !== null && among.has(other) && cheaper(d) === NOT_SHOWN ? [other] : [];
  });

/** What idles is in the on-demand reference too, so that where it is known a cost is held against it. */
function against({ toOnDemand, toOnDemandPrices }: PresetFigures): string {
  if (toOnDemand !== null && toOnDemand.value !== null)
    return `, ${percent(toOnDemand.value)} of the on-demand reference`;
  const { value } = toOnDemandPrices;
  return value === null ? '' : `, ${percent(value)} of the same work at on-demand prices with nothing idle`;
}

const PRESET_COLUMNS: readonly Column<PresetFigures>[] = [
  { title: 'Cost per run', hint: 'what the provider bills, USD', cell: (p) => figure(p.costUsd, dollars) },
  {
    title: 'Of on-demand prices',
    hint: 'cost over the same work at the on-demand prices of the instances that it ran on, nothing wasted, speculative, moved or idle',
    cell: (p) => figure(p.toOnDemandPrices, percent),
  },
  {
    title: '÷ on-demand',
    hint: 'cost over the on-demand reference: the cheapest of an instance for each task and two ways of packing',
    cell: (p) => figure(p.toOnDemand, ratio),
  },
  {
    title: '÷ lower bound',
    hint: 'charges before refunds over a lower bound that no way of doing all work in time undercuts',
    cell: (p) => figure(p.toBound, ratio),
  },
  { title: '÷ oracle', hint: 'cost over that of the preset oracle', cell: (p) => figure(p.toOracle, ratio) },
  {
    title: 'Missed deadlines',
    hint: 'of the admitted jobs that have one',
    cell: (p) =>
      html`${count(p.missed)} of
      ${count(p.deadlines)}${share(p.missedShare).map((part) => html`<span class="interval">${part}</span>`)}`,
    bad: (p) => p.missed > 0,
  },
  {
    title: 'Not done',
    hint: 'jobs unfinished at the end, failed or cancelled, refused at submission, and those that come after the end',
    cell: (p) =>
      html`${count(p.unfinished + p.failed + p.refused + p.notSubmitted)}${notDone(p).map(
        (part) => html`<span class="interval">${part}</span>`,
      )}`,
    bad: (p) => p.unfinished + p.failed + p.notSubmitted > 0,
  },
  {
    title: 'Wasted',
    hint: 'share of the cost that went into work done again',
    cell: (p) => figure(p.wastedShare, percent),
  },
  {
    title: 'Speculative',
    hint: 'share of the cost of attempts beside the one that succeeded first',
    cell: (p) => figure(p.speculativeShare, percent),
  },
  {
    title: 'Moved',
    hint: 'share of the cost of moves: saving, transfer, and room kept on the target',
    cell: (p) => figure(p.movedShare, percent),
  },
  {
    title: 'Idle',
    hint: 'share of the cost of starting up and of idle capacity',
    cell: (p) => figure(p.idleShare, percent),
  },
  {
    title: 'Utilisation',
    hint: 'share of the instance-hours that did work that counted',
    cell: (p) => figure(p.utilisation, percent),
  },
  {
    title: 'Interruptions',
    hint: 'instances that the market took, per run',
    cell: (p) => figure(p.interruptions, oneDigit),
  },
  { title: 'Launches', hint: 'instances per run', cell: (p) => figure(p.launches, oneDigit) },
];

const notDone = (p: PresetFigures): readonly string[] =>
  (['unfinished', 'failed', 'refused', 'notSubmitted'] as const).flatMap((k) =>
    p[k] > 0 ? [`${count(p[k])} ${k === 'notSubmitted' ? 'after the end' : k}`] : [],
  );

const oneDigit = (x: number): string => count(x, 1);

function share({ value, interval }: Estimate): readonly string[] {
  if (value === null) return [NONE];
  const range = rangeOf(interval, percent);
  return [percent(value), ...(range === null ? [] : [range])];
}

const DURATION_COLUMNS: readonly Column<PresetFigures>[] = [
  ...(['deadline', 'best-effort'] as const).flatMap((kind) =>
    (['p50', 'p90', 'p99'] as const).map((p) => ({
      title: `${kind} ${p}`,
      hint: `submission to completion of ${kind} jobs that succeeded, ${p.replace('p', '')}th percentile, mean over the runs`,
      cell: (f: PresetFigures) => figure(f.completionS[kind]?.[p] ?? null, duration),
    })),
  ),
  {
    title: 'late by, p50',
    hint: 'of jobs that succeeded after their deadline',
    cell: (f) => figure(f.latenessS?.p50 ?? null, duration),
  },
  {
    title: 'late by, p99',
    hint: 'of jobs that succeeded after their deadline',
    cell: (f) => figure(f.latenessS?.p99 ?? null, duration),
  },
];

const DIFFERENCE_COLUMNS: readonly Column<Difference>[] = [
  {
    title: 'Cost per run',
    hint: 'USD; negative: the first is cheaper',
    cell: (d) => figure(d.costUsd, signed(dollars)),
  },
  { title: 'Cost', hint: 'of the cost of the second', cell: (d) => figure(d.costShare, signed(percent)) },
  {
    title: 'Missed deadlines',
    hint: 'difference of the shares, in percentage points',
    cell: (d) => figure(d.missedShare, points),
  },
  { title: 'Wasted and idle', hint: 'USD per run', cell: (d) => figure(d.lostUsd, signed(dollars)) },
  {
    title: 'Cheaper',
    hint: 'where the interval of the difference in cost has no zero',
    cell: (d) => html`${cheaper(d)}`,
  },
];

const signed =
  (format: (x: number) => string) =>
  (x: number): string =>
    x > 0 ? `+${format(x)}` : format(x);

/** Difference with its sign as displayed. */
function points(x: number): string {
  const shown = Number((x * 100).toFixed(2));
  return `${shown > 0 ? '+' : ''}${shown} pp`.replace('-', '−');
}

/** Cheaper of two presets, as far as the runs can tell. */
export function cheaper({ a, b, costUsd: { value, interval } }: Difference): string {
  if (value === null || value === 0) return 'neither';
  if (interval === null) return `${value < 0 ? a : b} (one run)`;
  if (interval.high < 0) return a;
  return interval.low > 0 ? b : NOT_SHOWN;
}

const NOT_SHOWN = 'no difference shown';

/** Why presets are dearer than the lower bound. */
export const excesses = ({ presets }: Comparison): Markup =>
  html`${presets.map((p) => {
    const text = excessText(p);
    return text === null ? null : html`<p class="note">${text}</p>`;
  })}`;

export const presetsTable = ({ presets }: Comparison): Markup =>
  tableOf('Preset', PRESET_COLUMNS.filter(hasFigures(presets)), presets, (p) => p.preset);

export const durationsTable = ({ presets }: Comparison): Markup =>
  tableOf('Preset', DURATION_COLUMNS.filter(hasFigures(presets)), presets, (p) => p.preset);

export const differencesTable = ({ differences }: Comparison): Markup =>
  tableOf('First less second', DIFFERENCE_COLUMNS, differences, (d) => `${d.a} − ${d.b}`);

/** Selection of the run shown in detail. */
export function runOptions(runs: readonly RunOutcome[], comparison: Comparison): Markup {
  const several = comparison.fromMs.length > 1 || comparison.seeds.length > 1;
  return html`${runs.map(
    (r, i) =>
      html`<option value="${i}">
        ${r.preset}${several ? `, from ${minute(r.fromMs)}, seed ${r.seed}` : ''}${r.ended === 'aborted' ? ' (aborted)' : ''}
      </option>`,
  )}`;
}
