/** The page of bench/hopper.ts: completion times over beta, and a table for each load and beta. */
import type { EChartsOption } from 'echarts';
import { html, type Markup } from '../../lib/report/markup.ts';
import { drawing, pageOf, table } from '../page.ts';
import type { HopperRecord, Table } from './record.ts';
import { cellsOf, COLUMNS } from './table.ts';

export async function hopperPage({ command, part, when, commit, tables }: HopperRecord): Promise<string> {
  const draw = await drawing();
  const section = ([load, of]: readonly [number, readonly Table[]]): Markup =>
    html`<section>
      <h2>Load ${load}</h2>
      <div class="charts"><div>${draw(plotOf(of), { height: 400 })}</div></div>
      ${of.map(
        ({ beta, jobs, rows }) =>
          html`<h3>${beta === null ? 'All tails' : `beta ${beta}`}</h3>
            <p class="note">${jobs} jobs</p>
            ${table(COLUMNS, rows.map(cellsOf))}`,
      )}
    </section>`;
  return pageOf(
    'Hopper and its rivals',
    html`<p class="note">
        <code>${command}</code>, seeds to ${part}, ${when}, ${commit}. Completion times are ratios of sums over jobs
        with 95 % intervals, resampled by seeds. Every attempt takes a minute on average, from a Pareto distribution of
        index beta. Load is the demand of all tasks without copies over the slots. Wasted is the part of the slot time
        whose results were thrown away.
      </p>
      ${[...Map.groupBy(tables, (t) => t.load)].map(section)}`,
  );
}

function plotOf(tables: readonly Table[]): EChartsOption {
  const shown = tables.filter((t) => t.beta !== null);
  const presets = (shown[0]?.rows ?? []).map((r) => r.preset);
  return {
    title: { text: 'Mean completion time, seconds', left: 'center', textStyle: { fontSize: 13 } },
    legend: { bottom: 0 },
    grid: { left: 60, right: 24, top: 36, bottom: 88 },
    xAxis: { type: 'category', name: 'beta', data: shown.map((t) => String(t.beta)) },
    yAxis: { type: 'log', minorTick: { show: true } },
    series: presets.map((preset) => ({
      name: preset,
      type: 'line',
      data: shown.map((t) => Math.round(10 * (t.rows.find((r) => r.preset === preset)?.meanS ?? NaN)) / 10),
    })),
  };
}
