/** The page of bench/stratus.ts: a chart of costs and a table for each workload and market, and the sweep of errors. */
import type { EChartsOption } from 'echarts';
import { html, type Markup } from '../../lib/report/markup.ts';
import { drawing, pageOf, table } from '../page.ts';
import type { PresetRow, StratusRecord, SweepRow, Table } from './record.ts';
import { COLUMNS, cellsOf, SWEEP_COLUMNS, sweepCells } from './table.ts';

type Draw = Awaited<ReturnType<typeof drawing>>;

export async function stratusPage({ command, part, gapS, tables }: StratusRecord): Promise<string> {
  const draw = await drawing();
  return pageOf(
    'Stratus and its rivals',
    html`<p class="note">
        <code>${command}</code>, windows to ${part}, at least ${gapS} s between decisions. Costs are ratios of sums over
        windows with 95 % intervals, resampled by windows. Latency is the time from submission to completion over the
        running time of the longest task. Used is the requested part of what was rented, of the constraining resource.
      </p>
      ${tables.map((of) => section(of, draw))}`,
  );
}

const section = (of: Table, draw: Draw): Markup =>
  html`<section>
    <h2>${of.workload}, ${of.market}</h2>
    <p class="note">
      ${of.about}; ${of.windows} windows, ${of.jobs} jobs, ${of.tasks} tasks; ${of.constrains} constrains; ${of.when},
      ${of.commit}
    </p>
    <div class="charts"><div>${draw(costPlot(of.presets), { height: 400 })}</div></div>
    ${table([...COLUMNS], of.presets.map(cellsOf))} ${of.sweep === undefined ? null : sweepPart(of.sweep, draw)}
  </section>`;

const sweepPart = (sweep: readonly SweepRow[], draw: Draw): Markup =>
  html`<h3>Error of running times</h3>
    <p class="note">
      Stratus is told running times that are off by a factor between h and 1. The dotted line is the cost with true
      running times.
    </p>
    <div class="charts"><div>${draw(sweepPlot(sweep))}</div></div>
    ${table([...SWEEP_COLUMNS], sweepCells(sweep))}`;

/** A bar per preset with its interval, cheapest at the top; what costs more than MOST_SHOWN is cut off and says so. */
function costPlot(presets: readonly PresetRow[]): EChartsOption {
  const rows = presets
    .flatMap(({ preset, toStratus }) => (toStratus === null ? [] : [{ preset, ...toStratus }]))
    .sort((a, b) => b.value - a.value);
  const shown = (x: number): number => Math.min(x, MOST_SHOWN);
  return {
    title: { text: 'Cost over that of stratus', left: 'center', textStyle: { fontSize: 13 } },
    grid: { left: 150, right: 56, top: 36, bottom: 32 },
    xAxis: { type: 'value', min: 0, max: Math.min(MOST_SHOWN, Math.ceil(10 * Math.max(...rows.map(mostOf))) / 10) },
    yAxis: { type: 'category', data: rows.map((r) => r.preset) },
    series: [
      {
        type: 'bar',
        data: rows.map((r) => ({
          value: shown(r.value),
          itemStyle: { color: r.preset === 'ebbtide' ? '#009e73' : r.preset === 'stratus' ? '#0072b2' : '#b8bfcc' },
          label: { show: true, position: 'insideLeft', color: '#000000', formatter: r.value.toFixed(2) },
        })),
      },
      {
        type: 'custom',
        data: rows.map((r, i) => [i, shown(r.low ?? r.value), shown(r.high ?? r.value)]),
        renderItem: (_, api) => {
          const [x1 = 0, y = 0] = api.coord([api.value(1), api.value(0)]);
          const [x2 = 0] = api.coord([api.value(2), api.value(0)]);
          return { type: 'line', shape: { x1, y1: y, x2, y2: y }, style: { stroke: '#000000', lineWidth: 2 } };
        },
        z: 3,
      },
    ],
  };
}

const MOST_SHOWN = 3;
const mostOf = ({ value, high }: { readonly value: number; readonly high: number | null }): number => high ?? value;

function sweepPlot(sweep: readonly SweepRow[]): EChartsOption {
  const lines = [...Map.groupBy(sweep, (r) => r.preset)].map(([name, rows]) => ({
    type: 'line' as const,
    name,
    symbolSize: 5,
    data: rows.flatMap(({ h, toTrue }) => (toTrue === null ? [] : [[h, toTrue.value]])),
  }));
  const [first] = lines;
  const ideal = {
    type: 'line' as const,
    data: [0.01, 100].map((h) => [h, 1]),
    showSymbol: false,
    silent: true,
    lineStyle: { type: 'dotted' as const, color: '#888888' },
  };
  return {
    color: ['#0072b2', '#d55e00', '#888888'],
    title: { text: 'Cost over that with true running times', left: 'center', textStyle: { fontSize: 13 } },
    legend: { top: 32, left: 'center', itemGap: 24, data: lines.map((l) => l.name) },
    grid: { left: 56, right: 20, top: 72, bottom: 48 },
    xAxis: { type: 'log', min: 0.01, max: 100, name: 'h', nameLocation: 'middle', nameGap: 28 },
    yAxis: { type: 'value', scale: true },
    series: first === undefined ? [] : [...lines, ideal],
  };
}
