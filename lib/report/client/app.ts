/** Page of the report: charts of all runs, then one run at a time with its instances, pools, prices and jobs. */
import type * as ECharts from 'echarts';
import type { Payload, PoolPayload, RunPayload } from '../payload.ts';
import {
  costChart,
  costHeightPx,
  distributionChart,
  distributionHeightPx,
  instancesChart,
  pricesChart,
  pricesHeightPx,
  type Frame,
} from './charts.ts';
import { decodeJobs, decodeNumbers } from './columns.ts';
import { byId, el } from './dom.ts';
import { count, dollars, percent, plural, NONE } from './format.ts';
import { jobTable } from './job-rows.ts';
import { JobTableView } from './job-table.ts';
import { PALETTES } from './palette.ts';
import { ThemeSwitch } from './theme.ts';

/** Global that the script before this one defines. */
declare const echarts: typeof ECharts;

/** Pools with price charts: those with the highest cost in the shown run. */
const DRAWN_POOLS = 6;

/** Chart with its place on the page, redrawn for another width, theme or run. */
interface Chart {
  readonly place: HTMLElement;
  readonly drawn: ECharts.EChartsType;
  option: ((frame: Frame) => ECharts.EChartsOption) | null;
  heightPx: (widthPx: number) => number;
}

class Page {
  readonly #payload = JSON.parse(byId('data', HTMLScriptElement).text) as Payload;
  readonly #theme = new ThemeSwitch(() => this.#drawAll());
  readonly #charts = new Map<string, Chart>();
  readonly #jobs = new JobTableView();
  #shown = 0;

  start(): void {
    const { costs, completionS, latenessS, presets } = this.#payload;
    this.#chart(
      'cost-chart',
      (frame) => costChart(frame, costs),
      (widthPx) => costHeightPx(costs.length, widthPx),
    );
    for (const [id, curves] of [
      ['deadline-chart', completionS.deadline],
      ['best-effort-chart', completionS['best-effort']],
      ['lateness-chart', latenessS],
    ] as const)
      if (curves.length > 0)
        this.#chart(
          id,
          (frame) => distributionChart(frame, curves, presets),
          (widthPx) => distributionHeightPx(curves, widthPx),
        );
    const select = byId('run', HTMLSelectElement);
    select.addEventListener('change', () => this.#show(Number(select.value)));
    new ResizeObserver(() => this.#drawAll()).observe(document.body);
    this.#show(Number(select.value));
  }

  /** Shows one run. Data decoded meanwhile for another run is dropped. */
  #show(index: number): void {
    this.#shown = index;
    const run = this.#payload.runs[index];
    if (run === undefined) return;
    this.#pools(run);
    this.#refused(run);
    this.#prices(run);
    this.#instances(run, index).catch(failed);
    this.#jobsOf(run, index).catch(failed);
  }

  async #instances(run: RunPayload, index: number): Promise<void> {
    const [atMs, vcpus, reserved, onDemand, spot] = await Promise.all(
      (['atMs', 'vcpus', 'reserved', 'on-demand', 'spot'] as const).map((c) => decodeNumbers(run.series[c], blob)),
    );
    if (this.#shown !== index || !atMs || !vcpus || !reserved || !onDemand || !spot) return;
    const { fromMs, endMs } = run;
    const most = Array.from(vcpus).reduce((a, b) => Math.max(a, b), 0);
    byId('instances-note', HTMLElement).textContent =
      atMs.length === 0 ? 'Nothing was launched.' : `At most ${count(most)} vCPUs at once. Times are UTC.`;
    if (atMs.length === 0) this.#remove('instances-chart');
    else
      this.#chart(
        'instances-chart',
        (frame) => instancesChart(frame, { atMs, vcpus, reserved, onDemand, spot, fromMs, endMs }),
        () => 300,
      );
  }

  async #jobsOf(run: RunPayload, index: number): Promise<void> {
    if (run.jobs === null) {
      this.#jobs.show(null);
      return;
    }
    const jobs = await decodeJobs(run.jobs, blob);
    if (this.#shown === index) this.#jobs.show(jobTable(jobs));
  }

  #pools({ pools }: RunPayload): void {
    byId('pool-rows', HTMLTableSectionElement).replaceChildren(...pools.map(poolRow));
    byId('pools-note', HTMLElement).textContent =
      pools.length === 0
        ? 'Nothing was bought.'
        : `${plural(pools.length, 'pool')}${pools.length > 1 ? ', most spent on first' : ''}.`;
  }

  #refused({ refused }: RunPayload): void {
    const lines = refused.map((r) =>
      el(
        'li',
        {},
        `${plural(r.count, 'job')} refused (${r.code})`,
        el('ul', {}, ...r.first.map(({ key, what }) => el('li', {}, `${key}: ${what}`))),
        r.count > r.first.length ? `and ${count(r.count - r.first.length)} more` : '',
      ),
    );
    byId('refused', HTMLElement).replaceChildren(...lines);
    byId('refused-part', HTMLElement).hidden = lines.length === 0;
  }

  #prices(run: RunPayload): void {
    const known = new Map(this.#payload.prices.filter((p) => p.fromMs === run.fromMs).map((p) => [p.pool, p]));
    const drawn = run.pools
      .filter((p) => p.launches > 0)
      .flatMap((p) => known.get(p.pool) ?? [])
      .slice(0, DRAWN_POOLS);
    byId('prices-part', HTMLElement).hidden = drawn.length === 0;
    if (drawn.length === 0) this.#remove('prices-chart');
    else
      this.#chart(
        'prices-chart',
        (frame) => pricesChart(frame, drawn),
        (widthPx) => pricesHeightPx(drawn.length, widthPx),
      );
  }

  #chart(id: string, option: (frame: Frame) => ECharts.EChartsOption, heightPx: Chart['heightPx']): void {
    const known = this.#charts.get(id);
    const place = known?.place ?? byId(id, HTMLElement);
    place.hidden = false;
    const chart = known ?? { place, drawn: echarts.init(place, null, { renderer: 'canvas' }), option, heightPx };
    chart.option = option;
    chart.heightPx = heightPx;
    this.#charts.set(id, chart);
    this.#draw(chart);
  }

  #remove(id: string): void {
    this.#charts.get(id)?.drawn.dispose();
    this.#charts.delete(id);
    byId(id, HTMLElement).hidden = true;
  }

  #draw({ place, drawn, option, heightPx }: Chart): void {
    const widthPx = place.clientWidth;
    if (widthPx === 0 || option === null) return;
    const height = heightPx(widthPx);
    place.style.height = `${height}px`;
    drawn.resize({ width: widthPx, height });
    drawn.setOption(option({ palette: PALETTES[this.#theme.theme], widthPx }), { notMerge: true });
  }

  #drawAll(): void {
    for (const chart of this.#charts.values()) this.#draw(chart);
  }
}

function poolRow(p: PoolPayload): HTMLTableRowElement {
  const cell = (text: string): HTMLElement => el('td', { class: 'right' }, text);
  return el(
    'tr',
    {},
    el('th', { scope: 'row' }, p.pool),
    el('td', {}, p.option),
    cell(count(p.launches)),
    cell(count(p.interruptions)),
    cell(count(p.refused)),
    cell(count(p.hours, 1)),
    cell(dollars(p.billedUsd)),
    cell(p.onDemandUsd > 0 ? percent(p.billedUsd / p.onDemandUsd) : NONE),
  );
}

const blob = (index: number): string => byId(`blob-${index}`, HTMLScriptElement).text;

/** Message of a broken file on the page, not only in the console. */
function failed(error: unknown): void {
  const notice = byId('failure', HTMLElement);
  notice.textContent = `This report cannot be shown in full: ${error instanceof Error ? error.message : String(error)}`;
  notice.hidden = false;
}

try {
  new Page().start();
} catch (error) {
  failed(error);
}
