/** Evaluation as one self-contained page: tables, and plots drawn by ECharts as SVG. */
import type { EChartsOption } from 'echarts';
import { html, type Markup } from '../../lib/report/markup.ts';
import { drawing, pageOf, table } from '../page.ts';
import { type Cell, type Forecast, judgedBy } from '../../lib/models/evaluation/cells.ts';
import { LOSS_COSTS } from './choices.ts';
import {
  intervalText,
  METRIC_NAMES,
  METRICS,
  precisionRecall,
  reliability,
} from '../../lib/models/evaluation/scores.ts';
import { cellName, gain, planText, sourcesText } from './tables.ts';
import type { Evaluation } from './evaluation.ts';

const RECALLS = 120;

export async function forecastReport(evaluation: Evaluation): Promise<string> {
  const plots = await plotsOf(evaluation);
  return pageOf(
    'Forecasts of price losses',
    html`<p class="note">${planText(evaluation)}</p>
      ${sourcesText(evaluation).map((text) => html`<p class="note">${text}</p>`)}
      <p>
        Will the price pass the bid within the hour? The historical median is made once from the training range, the
        rolling one anew at each moment from the last seven days. F1 and accuracy: threshold 0.5, as in the paper.
        Intervals: 95 %, resampled by days.
      </p>
      ${plots} ${scoresSections(evaluation)} ${choicesSection(evaluation)} ${ablationSection(evaluation)}
      ${curveSection(evaluation)}`,
  );
}

function scoresSections({ cells, rows }: Evaluation): Markup[] {
  const names = [
    'Forecast',
    ...METRICS.map((m) => METRIC_NAMES[m]),
    'above the historical median',
    'above the rolling median',
  ];
  return cells.map((cell) => {
    const mine = rows.filter((r) => r.cell === cell);
    const lines = mine.map((row) => [
      row.forecast,
      ...METRICS.map((m) => intervalText(row.scores[m])),
      gain(row, mine, 'historical median'),
      gain(row, mine, 'rolling median'),
    ]);
    const lost = cell.lost.reduce((a, b) => a + b, 0) / cell.lost.length;
    return html`<h2>${cellName(cell)}</h2>
      <p class="note">${cell.rows.length} bids on ${cell.days} days, ${(100 * lost).toFixed(1)} % lost</p>
      ${table(names, lines)}`;
  });
}

function choicesSection({ choices }: Evaluation): Markup {
  const parts = choices.map(
    ({ cell, list }) =>
      html`<h3>${cellName(cell)}</h3>
        ${table(
          ['Chosen by', ...LOSS_COSTS.map((c) => `a loss costs ${c} h`)],
          list.map((c) => [c.forecast, ...c.cost.map((x) => x.toFixed(4))]),
        )}`,
  );
  return html`<h2>What a forecast is worth</h2>
    <p>
      An hour of work goes on spot where its price and the expected cost of a loss are below the price on demand. Mean
      cost in hours of on-demand.
    </p>
    ${parts}`;
}

function ablationSection({ ablation }: Evaluation): Markup | null {
  if (ablation.length === 0) return null;
  const paper = ablation.filter((r) => r.cell.protocol === 'paper');
  return html`<h2>What the added features are worth</h2>
    <p class="note">Boosting on the 1 h label; each line adds to the one before.</p>
    ${table(
      ['Features', 'where', ...METRICS.map((m) => METRIC_NAMES[m])],
      paper.map((r) => [
        r.forecast,
        `${r.cell.source}, ${r.cell.split}`,
        ...METRICS.map((m) => intervalText(r.scores[m])),
      ]),
    )}`;
}

function curveSection({ curve }: Evaluation): Markup {
  return html`<h2>The whole curve</h2>
    ${table(
      ['Forecast', 'where', 'within, s', 'said', 'was', 'Brier', 'F1', 'calibration error'],
      curve.map((c) => [
        c.forecast,
        `${c.cell.source}, ${c.cell.split}`,
        String(c.horizonS),
        ...[c.said, c.was, c.scores.brier, c.scores.f1, c.scores.ece].map((x) => x.toFixed(3)),
      ]),
    )}`;
}

async function plotsOf({ cells, forecasts }: Evaluation): Promise<Markup> {
  const drawn = await drawing();
  const parts = cells
    .filter((cell) => cell.protocol === 'paper')
    .map(
      (cell) =>
        html`<h3>${cellName(cell)}</h3>
          <div class="charts">
            <div>${drawn(reliabilityPlot(cell, forecasts))}</div>
            <div>${drawn(precisionRecallPlot(cell, forecasts))}</div>
          </div>`,
    );
  return html`<h2>Reliability, precision and recall</h2>
    ${parts}`;
}

const axis = (name: string) => ({
  type: 'value' as const,
  min: 0,
  max: 1,
  name,
  nameLocation: 'middle' as const,
  nameGap: 30,
});

const plot = (title: string, names: readonly [string, string], series: EChartsOption['series']): EChartsOption => ({
  title: { text: title, left: 'center', textStyle: { fontSize: 13 } },
  legend: { top: 30, left: 'center', textStyle: { fontSize: 11 }, itemWidth: 16, itemHeight: 8 },
  grid: { left: 56, right: 20, top: 92, bottom: 48 },
  xAxis: axis(names[0]),
  yAxis: axis(names[1]),
  series: series ?? [],
});

function reliabilityPlot(cell: Cell, forecasts: readonly Forecast[]): EChartsOption {
  const lines = forecasts.map((forecast) => {
    const bins = reliability(judgedBy(cell, forecast));
    return {
      type: 'line' as const,
      name: forecast.name,
      data: bins.map((b) => [b.said, b.was]),
      symbolSize: (_: unknown, { dataIndex }: { dataIndex: number }) => 4 + 12 * Math.sqrt(bins[dataIndex]?.share ?? 0),
    };
  });
  const ideal = {
    type: 'line' as const,
    data: [
      [0, 0],
      [1, 1],
    ],
    showSymbol: false,
    silent: true,
    lineStyle: { type: 'dotted' as const, color: '#888888' },
  };
  return plot('Reliability (larger marks: more bids)', ['said', 'was lost'], [...lines, ideal]);
}

function precisionRecallPlot(cell: Cell, forecasts: readonly Forecast[]): EChartsOption {
  const lines = forecasts.map((forecast) => ({
    type: 'line' as const,
    name: forecast.name,
    showSymbol: false,
    data: precisionRecall(judgedBy(cell, forecast), RECALLS).map(([recall, precision]) => [recall, precision]),
  }));
  return plot('Precision and recall', ['recall', 'precision'], lines);
}
