import type { Check } from '../../drivers/local/models/check.ts';
import type { Judgement } from '../../drivers/local/models/judging.ts';
import type { Training } from '../../drivers/local/models/training.ts';
import type { Choice } from '../../models/choices.ts';
import { LEAST_DAYS } from '../../models/evaluation/comparison.ts';
import type { EvaluationRecord, ForecastFigures } from '../../models/evaluation/evaluation-record.ts';
import { METRIC_NAMES, METRICS, type Metric } from '../../models/evaluation/scores.ts';
import type { ShelvedModel } from '../../models/library.ts';
import type { ModelManifest } from '../../models/manifest.ts';
import { trainingFacts } from '../../models/training-facts.ts';
import type { Risk } from '../../models/preemption.ts';
import type { InUse } from '../../models/versions.ts';
import { duration, instant, percent, plural } from '../format.ts';
import type { Output } from '../output.ts';
import { table, text, type Column } from './text-table.ts';

type TableStyle = Pick<Output, 'colors' | 'columns'>;
const day = (iso: string): string => iso.slice(0, 10);
const size = (bytes: number | null): string => (bytes === null ? '-' : `${(bytes / 1e6).toFixed(2)} MB`);

/** Metrics that fit a list. */
const LISTED: readonly Metric[] = ['accuracy', 'aucPr', 'brier', 'ece'];

export function modelsTable(output: TableStyle, models: readonly ShelvedModel[]): string {
  const figure = (metric: Metric): Column<ShelvedModel> => ({
    title: METRIC_NAMES[metric].toUpperCase(),
    cell: ({ version, evaluation }) =>
      threeDigits(evaluation?.forecasts.find((f) => f.name === version)?.[metric].value),
    right: true,
  });
  return table(
    output,
    [
      { title: '', cell: (m) => (m.inUse ? '*' : '') },
      { title: 'VERSION', cell: (m) => text(m.version), wrap: 15 },
      { title: 'FROM', cell: (m) => m.from, optional: 2 },
      {
        title: 'KIND',
        cell: ({ manifest }) => (manifest === null ? '-' : (trainingFacts(manifest).kind ?? '-')),
        wrap: 8,
        optional: 1,
      },
      {
        title: 'TRAINED ON',
        cell: (m) => (m.damage === null ? trainedOn(m.manifest) : `damaged: ${m.damage}`),
        wrap: 16,
      },
      { title: 'SIZE', cell: (m) => size(m.bytes), right: true, optional: 3 },
      ...LISTED.map(figure),
    ],
    models,
    'no trained model: the program ships none, and this directory has none',
  );
}

const threeDigits = (value: number | null | undefined): string =>
  value === null || value === undefined ? '-' : value.toFixed(3);

function trainedOn(manifest: ModelManifest | null): string {
  const sources = manifest === null ? [] : trainingFacts(manifest).sources;
  const from = sources.map((s) => s.from).sort()[0];
  const to = sources
    .map((s) => s.testFrom)
    .sort()
    .at(-1);
  return from === undefined || to === undefined
    ? '-'
    : `${plural(sources.length, 'market')}, ${day(from)} to ${day(to)}`;
}

/** Setting that selects the forecast of a risk, and the fallback without a model. */
export const SETTING: Record<Risk, string> = { price: 'forecast', capacity: 'capacityForecast' };
const INSTEAD: Record<Risk, string> = { price: 'history', capacity: 'observed interruptions' };

/** `mark`: sign before the version in lists. */
export function inUseText(inUse: InUse, risk: Risk, mark = ''): string {
  if (inUse.kind === 'none')
    return `no trained model exists: \`${SETTING[risk]}=model\` falls back on ${INSTEAD[risk]}`;
  if (inUse.kind === 'damaged') return `nothing is in use: ${inUse.what}; the forecast is from ${INSTEAD[risk]}`;
  const { version, chosen } = inUse;
  if (chosen === null) return `in use${mark}: ${version}, the newest that came with the program`;
  const why = chosen.why === '' ? '' : `: ${text(chosen.why)}`;
  return `in use${mark}: ${version}, chosen ${instant(chosen.at)} by ${text(chosen.by)}${why}`;
}

export function historyTable(output: TableStyle, choices: readonly Choice[]): string {
  return table(
    output,
    [
      { title: 'WHEN (UTC)', cell: (c) => instant(c.at) },
      { title: 'CHOICE', cell: (c) => (c.kind === 'use' ? text(c.version) : 'rollback') },
      { title: 'BY', cell: (c) => text(c.by), wrap: 8 },
      { title: 'WHY', cell: (c) => text(c.why), wrap: 16 },
    ],
    choices,
    'no version was ever chosen here',
  );
}

/** One version in plain words. */
export function modelPage(output: TableStyle, model: ShelvedModel, check: Check): string {
  const { version, from, folder, manifest } = model;
  const title = `${output.colors.bold(text(version))}  ${from === 'own' ? 'of this directory' : 'came with the program'}${model.inUse ? ', in use' : ''}`;
  return [
    title,
    folder,
    '',
    `Checked: ${checkText(check)}`,
    ...(manifest === null ? [] : originLines(manifest, model.bytes)),
    ...(model.evaluation === null
      ? ['', 'Figures: not evaluated yet; see `ebb models evaluate`']
      : ['', evaluationText(output, model.evaluation)]),
  ].join('\n');
}

function checkText(check: Check): string {
  if (check.kind !== 'whole') return `${check.kind}: ${check.what}`;
  const { golden } = check;
  const hash = 'the file is that of its manifest (SHA-256)';
  if (golden.kind === 'unknown') return `${hash}; ${golden.what}`;
  return `${hash}, and answers ${plural(golden.rows, 'row')} as where it was trained (worst difference ${golden.worst.toPrecision(1)})`;
}

function originLines(manifest: ModelManifest, bytes: number | null): string[] {
  const { kind, seed, rows, sources } = trainingFacts(manifest);
  const facts = [
    kind ?? 'kind not said',
    ...(rows === null ? [] : [`${plural(rows, manifest.pools === undefined ? 'bid' : 'moment')} to train on`]),
    ...(seed === null ? [] : [`seed ${seed}`]),
    bytes === null ? `opset ${manifest.opset}` : `${size(bytes)} of ONNX, opset ${manifest.opset}`,
  ];
  return [
    `Model: ${facts.join(', ')}`,
    ...sources.map(
      (s) =>
        `Market: ${text(s.name)}: trained ${day(s.from)} to ${day(s.validationFrom)}, calibrated to ${day(s.testFrom)}, held out to ${day(s.to)}`,
    ),
    ...(manifest.pools === undefined
      ? []
      : [`Pools (it is asked about no others): ${wrapped(manifest.pools.map(text))}`]),
    `Horizons: ${manifest.output.horizonsS.map((s) => duration(s)).join(', ')}`,
    `Features (${manifest.input.width}): ${wrapped(manifest.input.features.map(text))}`,
  ];
}

const WIDTH = 100;
function wrapped(words: readonly string[]): string {
  const lines = [''];
  for (const word of words) {
    const last = lines.length - 1;
    const joined = lines[last] === '' ? word : `${lines[last]}, ${word}`;
    if (joined.length > WIDTH) lines.push(word);
    else lines[last] = joined;
  }
  return lines.join(',\n  ');
}

/** Intervals by resampled days need several days. */
const intervalsOf = ({ days }: { readonly days: number }): boolean => days >= LEAST_DAYS;
const FEW_DAYS = `fewer than ${LEAST_DAYS} days, so no intervals`;

/** Figures of a held-out range, with 95 % intervals by days. */
export function evaluationText(output: TableStyle, e: EvaluationRecord): string {
  const head = `Lost within ${duration(e.horizonS)}: ${plural(e.bids, askedOf(e))} on ${plural(e.days, 'day')}, ${day(e.from)} to ${day(e.to)}, of ${e.markets.map(text).join(', ')}; ${percent(e.lostShare)} lost; ${intervalsOf(e) ? '95 % intervals by days' : FEW_DAYS}`;
  const columns: Column<ForecastFigures>[] = [
    { title: 'FORECAST', cell: (f) => text(f.name) },
    ...METRICS.map((m) => ({
      title: METRIC_NAMES[m].toUpperCase(),
      cell: (f: ForecastFigures) => (intervalsOf(e) ? interval(f[m]) : threeDigits(f[m].value)),
    })),
  ];
  return `${head}\n${table(output, columns, e.forecasts, 'nothing was judged')}`;
}

const askedOf = ({ asked }: EvaluationRecord): string => (asked === 'moments' ? 'moment' : 'bid');

const interval = ({ value, low, high }: ForecastFigures[Metric]): string =>
  value === null ? '-' : `${threeDigits(value)} [${threeDigits(low)}, ${threeDigits(high)}]`;

/** Figures, then the first forecast against each other, paired. */
export function judgementText(output: TableStyle, { record, differences }: Judgement): string {
  const [first] = record.forecasts;
  const lines = differences.map((d) => differenceText(first?.name ?? '', d, askedOf(record)));
  return [evaluationText(output, record), '', ...lines].join('\n');
}

const VERDICTS = { better: 'better', worse: 'worse', undecided: 'not shown to be better or worse' } as const;

function differenceText(name: string, { than, difference }: Judgement['differences'][number], asked: string): string {
  const { value, low, high, days, bids, horizonsS, verdict } = difference;
  const signed = (x: number): string => `${x < 0 ? '' : '+'}${x.toFixed(4)}`;
  const over = horizonsS.map((s) => duration(s)).join(', ');
  const interval = intervalsOf(difference) ? ` [${signed(low)}, ${signed(high)}]` : '';
  return `${text(name)} against ${text(than)}: ${VERDICTS[verdict]}; Brier ${signed(value)}${interval} (${plural(bids, asked)}, ${plural(days, 'day')}; horizons ${over})`;
}

/** Result of a training, the reason last. */
export function trainingText(output: TableStyle, { version, judgement, rival, taken, folder }: Training): string {
  const outcome = taken
    ? `${text(version)} is better than ${text(rival)} and in use from now on; \`ebb models use --rollback\` takes it back`
    : `${text(version)} is not shown to be better than ${text(rival)}, which stays; \`ebb models use ${text(version)}\` chooses it all the same`;
  return [judgementText(output, judgement), '', folder, outcome].join('\n');
}
