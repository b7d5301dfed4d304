/** The page of a comparison on a cluster: targets, plots and tables. */
import type { EChartsOption } from 'echarts';
import { html, type Markup } from '../../lib/report/markup.ts';
import { drawing, pageOf, table } from '../page.ts';
import type { Comparison, Plot, Table } from './record.ts';

export async function comparisonPage(of: Comparison): Promise<string> {
  const draw = await drawing();
  const section = ({ title, note, columns, rows, plot }: Table): Markup =>
    html`<section>
      <h2>${title}</h2>
      <p class="note">${note}</p>
      ${plot === undefined ? null : html`<div class="charts"><div>${draw(optionOf(plot))}</div></div>`}
      ${table(columns, rows)}
    </section>`;
  const figures = of.figures.map((f) => [f.what, f.reach, f.seen, f.met ? 'reached' : 'missed']);
  return pageOf(
    of.title,
    html`<p class="note">${of.about.replaceAll('`', '')}</p>
      <p class="note"><code>${of.command}</code>, the ${of.part} part, ${of.when}, ${of.commit}</p>
      ${figures.length === 0 ? null : table(['figure', 'to reach', 'seen', ''], figures)} ${of.tables.map(section)}`,
  );
}

const optionOf = ({ title, x, xName, isLog, series }: Plot): EChartsOption => ({
  title: { text: title, left: 'center', textStyle: { fontSize: 13 } },
  legend: { bottom: 0 },
  grid: { left: 60, right: 32, top: 36, bottom: 88 },
  xAxis: { type: 'category', name: xName, nameLocation: 'middle', nameGap: 26, data: [...x] },
  yAxis: isLog ? { type: 'log', minorTick: { show: true } } : { type: 'value' },
  series: series.map(({ name, values }) => ({ name, type: 'line', data: [...values] })),
});
