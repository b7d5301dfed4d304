/** Tables of the evaluation, as text. */
import { against, type Cell, type Row } from '../../lib/models/evaluation/cells.ts';
import { LOSS_COSTS } from './choices.ts';
import { DECADES_USD } from './verdicts.ts';
import { intervalText, METRIC_NAMES, METRICS, RESAMPLES, type Interval } from '../../lib/models/evaluation/scores.ts';
import type { Evaluation } from './evaluation.ts';

const points = ({ value, low, high }: Interval): string =>
  `${(100 * value).toFixed(1)} [${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]`;
const SPLIT_NAMES: Readonly<Record<string, string>> = { test: 'later', unseen: 'unseen pools' };
export const cellName = ({ source, split, protocol }: Cell): string =>
  `${source}, ${SPLIT_NAMES[split] ?? split}, ${protocol}`;

/**
 * Gain over one of the medians: accuracy in points, F1 in per cent. F1 has no ratio to a forecast that never says
 * "lost".
 */
export function gain(row: Row, rows: readonly Row[], median: string): string {
  const other = rows.find((r) => r.cell === row.cell && r.forecast === median);
  if (other === undefined || other === row) return '-';
  const { accuracy, f1 } = against(row, other);
  return `${points(accuracy)} pt, F1 ${Number.isFinite(f1.value) ? `${points(f1)} %` : '-'}`;
}

const day = (iso: string): string => iso.slice(0, 10);
export const sourcesText = ({ manifest }: Evaluation): string[] =>
  manifest.sources.map(
    (s) =>
      `${s.name}: ${day(s.from)} to ${day(s.to)}, validation from ${day(s.validationFrom)}, later range from ${day(s.testFrom)}`,
  );

export function planText({ manifest: { plan, sha256 }, seed, machine }: Evaluation): string {
  const instants = `${plan.instants} ${plan.points === 'prices' ? 'published prices' : 'instants'} a market`;
  return `${machine}; data set ${sha256['features']?.slice(0, 12)}, seed ${plan.seed}, ${instants}, ${plan.bidsPerInstant} bids each; ${RESAMPLES} resamples of days, seed ${seed}`;
}

export function printEvaluation(evaluation: Evaluation): void {
  console.log(planText(evaluation));
  for (const text of sourcesText(evaluation)) console.log(text);
  console.log('\nLost within the hour; intervals: 95 %, by days');
  for (const [cell, rows] of Map.groupBy(evaluation.rows, (r) => r.cell)) {
    console.log(`\n${cellName(cell)}: ${cell.rows.length} bids, ${cell.days} days, ${share(cell.lost)} lost`);
    console.log(
      `  ${''.padEnd(22)}${METRICS.map((m) => METRIC_NAMES[m].padEnd(22)).join('')}above the historical median; above the rolling one`,
    );
    for (const row of rows) {
      const cells = METRICS.map((m) => intervalText(row.scores[m]).padEnd(22)).join('');
      console.log(
        `  ${row.forecast.padEnd(22)}${cells}${gain(row, rows, 'historical median')}; ${gain(row, rows, 'rolling median')}`,
      );
    }
  }
  printCurve(evaluation);
  printChoices(evaluation);
  printVerdicts(evaluation);
  printAblation(evaluation);
}

const share = (lost: Uint8Array): string => `${((100 * lost.reduce((a, b) => a + b, 0)) / lost.length).toFixed(1)} %`;

function printCurve({ curve }: Evaluation): void {
  console.log('\nThe curve, all bids: said, was, Brier, F1, calibration error');
  for (const { cell, forecast, horizonS, said, was, scores } of curve) {
    const of = [said, was, scores.brier, scores.f1, scores.ece].map((x) => x.toFixed(3)).join('  ');
    console.log(
      `  ${`${cell.source} ${cell.split}`.padEnd(40)}${forecast.padEnd(20)}${String(horizonS).padStart(6)} s  ${of}`,
    );
  }
  for (const [forecast, list] of Map.groupBy(curve, (c) => c.forecast)) {
    const worst = list.reduce((a, b) => (b.scores.ece > a.scores.ece ? b : a));
    console.log(
      `  worst calibration of ${forecast}: ${worst.scores.ece.toFixed(3)}, ${worst.cell.source} ${worst.cell.split} at ${worst.horizonS} s`,
    );
  }
}

function printChoices({ choices }: Evaluation): void {
  console.log(
    `\nAn hour on spot or on demand: mean cost in hours of on-demand, where a loss costs ${LOSS_COSTS.join(', ')} of them`,
  );
  for (const { cell, list } of choices) {
    console.log(`  ${cell.source}, ${cell.split}`);
    for (const c of list)
      console.log(`    ${c.forecast.padEnd(22)}${c.cost.map((x) => x.toFixed(4).padStart(9)).join('')}`);
  }
}

function printVerdicts({ verdicts }: Evaluation): void {
  const decades = DECADES_USD.map((usd) => `from ${usd}`.padEnd(14)).join('');
  console.log(
    `\nWith hindsight, bids of the paper: best F1 of any threshold; F1 at 0.5, the same if bids were drawn evenly by USD; F1 at 0.5 (share lost) by USD above the price\n${''.padEnd(24)}best (at)      0.5    evenly  ${decades}`,
  );
  for (const { cell, list } of verdicts) {
    console.log(`  ${cell.source}, ${cell.split}`);
    for (const v of list) {
      const by = v.decades.map((d) => `${d.f1.toFixed(3)} (${d.lost.toFixed(3)})`.padEnd(14)).join('');
      console.log(
        `    ${v.forecast.padEnd(20)}${v.best.f1.toFixed(3)} (${v.best.threshold.toFixed(3)})  ${v.f1.toFixed(3)}  ${v.evenF1.toFixed(3)}   ${by}`,
      );
    }
  }
}

function printAblation({ ablation }: Evaluation): void {
  if (ablation.length === 0) return;
  console.log('\nFeatures, by boosting on the 1 h label, bids of the paper');
  for (const { cell, forecast, scores } of ablation.filter((r) => r.cell.protocol === 'paper')) {
    console.log(
      `  ${`${cell.source} ${cell.split}`.padEnd(40)}${forecast.padEnd(40)}${METRICS.map((m) => intervalText(scores[m]).padEnd(22)).join('')}`,
    );
  }
}
