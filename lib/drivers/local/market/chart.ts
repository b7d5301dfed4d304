import type { EChartsOption } from 'echarts';
import { epochMs } from '../../../kernel/units.ts';
import { type Pool, onDemandUsdOf } from '../../../domain/pool.ts';
import { indexAt, priceAt } from '../../../market/price-steps.ts';
import type { Window } from '../../../market/statistics.ts';
import type { MarketTrace } from '../../../market/trace.ts';

/** Charts of markets as SVG and HTML, drawn by ECharts without a browser. ECharts is loaded when first needed. */
type Theme = 'light' | 'dark';

interface Palette {
  readonly background: string;
  readonly text: string;
  readonly faint: string;
  readonly grid: string;
  readonly series: readonly [string, string];
  readonly onDemand: string;
  readonly outage: string;
  readonly taken: string;
}

/** Colours of one hue each, distinguishable also without colour vision (Okabe and Ito), on either background. */
const PALETTES: Record<Theme, Palette> = {
  light: {
    background: '#ffffff',
    text: '#1f2430',
    faint: '#5d6577',
    grid: '#e6e9ef',
    series: ['#0072b2', '#d55e00'],
    onDemand: '#5d6577',
    outage: 'rgba(204, 121, 167, 0.28)',
    taken: '#d55e00',
  },
  dark: {
    background: '#14171f',
    text: '#e8ebf2',
    faint: '#a2abbd',
    grid: '#2b303c',
    series: ['#56b4e9', '#e69f00'],
    onDemand: '#a2abbd',
    outage: 'rgba(204, 121, 167, 0.34)',
    taken: '#e69f00',
  },
};

const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

async function render(option: EChartsOption, width: number, height: number): Promise<string> {
  const echarts = await import('echarts');
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
  try {
    chart.setOption({ animation: false, textStyle: { fontFamily: FONT }, ...option });
    return chart.renderToSVGString();
  } finally {
    chart.dispose();
  }
}

/** One plot: distribution functions over a logarithmic axis. */
export interface Panel {
  readonly title: string;
  /** Name of the horizontal axis. */
  readonly unit: string;
  /** Points (value > 0, share of the distribution at or below it). */
  readonly curves: readonly { readonly name: string; readonly points: readonly (readonly [number, number])[] }[];
}

const PANEL = { width: 430, height: 270, top: 74, left: 62 } as const;

/** Distribution functions side by side, two panels in a row, as SVG on a light background. */
export async function distributionCharts(panels: readonly Panel[]): Promise<string> {
  const palette = PALETTES.light;
  const place = panels.map((_, i) => ({
    left: PANEL.left + (i % 2) * PANEL.width,
    top: PANEL.top + Math.floor(i / 2) * PANEL.height,
  }));
  const names = [...new Set(panels.flatMap((p) => p.curves.map((c) => c.name)))];
  const option: EChartsOption = {
    backgroundColor: palette.background,
    color: [...palette.series],
    legend: { top: 10, left: 'center', itemGap: 30, data: names, textStyle: { color: palette.text, fontSize: 13 } },
    title: panels.map((p, i) => ({
      text: p.title,
      left: place[i]?.left ?? 0,
      top: (place[i]?.top ?? 0) - 30,
      textStyle: { fontSize: 13, color: palette.text },
    })),
    grid: place.map((at) => ({ ...at, width: PANEL.width - 90, height: PANEL.height - 110 })),
    xAxis: panels.map((p, i) => ({
      type: 'log' as const,
      gridIndex: i,
      name: p.unit,
      nameLocation: 'middle' as const,
      nameGap: 28,
      nameTextStyle: { color: palette.faint },
      min: lowest(p),
      axisLabel: { color: palette.faint, formatter: (x: number) => compact(x) },
      splitLine: { lineStyle: { color: palette.grid } },
    })),
    yAxis: panels.map((_, i) => ({
      type: 'value' as const,
      gridIndex: i,
      min: 0,
      max: 1,
      name: i % 2 === 0 ? 'share at or below' : '',
      nameLocation: 'middle' as const,
      nameGap: 38,
      nameTextStyle: { color: palette.faint },
      axisLabel: { color: palette.faint },
      splitLine: { lineStyle: { color: palette.grid } },
    })),
    series: panels.flatMap((p, i) =>
      p.curves.map((c, k) => ({
        type: 'line' as const,
        name: c.name,
        xAxisIndex: i,
        yAxisIndex: i,
        showSymbol: false,
        lineStyle: { width: 2, type: k === 0 ? ('solid' as const) : ('dashed' as const) },
        data: c.points.map(([x, y]) => [x, y]),
      })),
    ),
  };
  const rows = Math.ceil(panels.length / 2);
  return render(option, 2 * PANEL.width + 20, rows * PANEL.height + 60);
}

/** Largest power of ten (halved steps) below every point of a panel. */
const lowest = (p: Panel): number => {
  const least = Math.min(...p.curves.flatMap((c) => c.points.map(([x]) => x)));
  return 10 ** Math.floor(Math.log10(least));
};

const compact = (x: number): string =>
  x >= 1e6 ? `${x / 1e6}M` : x >= 1e3 ? `${x / 1e3}k` : String(Number(x.toPrecision(3)));

/** A moment at which the market takes instances: the price passes on-demand, or capacity ends. */
export interface Taken {
  readonly atMs: number;
  readonly cause: 'price' | 'capacity';
}

/** Content of a chart of one pool, in dollars and milliseconds, cut to a window. */
export interface PoolSeries {
  readonly pool: Pool;
  readonly points: readonly (readonly [atMs: number, usdPerHour: number])[];
  readonly outages: readonly (readonly [fromMs: number, toMs: number])[];
  readonly taken: readonly Taken[];
}

/** Price steps, times without capacity and moments of loss of one pool within a window. */
export function poolSeries(trace: MarketTrace, pool: Pool, window: Window): PoolSeries {
  const prices = trace.prices(pool.id);
  const onDemand = onDemandUsdOf(pool);
  const points: [number, number][] = [];
  const taken: Taken[] = [];
  const atStart = priceAt(prices, epochMs(window.fromMs));
  if (atStart !== null) points.push([window.fromMs, atStart]);
  for (let i = indexAt(prices.atMs, window.fromMs) + 1; i < prices.atMs.length; i++) {
    const at = prices.atMs[i] ?? Infinity;
    if (at >= window.toMs) break;
    const usd = prices.usdPerHour[i] ?? 0;
    const before = points.at(-1)?.[1];
    if (before !== undefined && before <= onDemand && usd > onDemand) taken.push({ atMs: at, cause: 'price' });
    points.push([at, usd]);
  }
  const last = points.at(-1);
  if (last !== undefined) points.push([window.toMs, last[1]]);
  const outages = outagesOf(trace, pool, window);
  for (const [from] of outages) if (from > window.fromMs) taken.push({ atMs: from, cause: 'capacity' });
  return { pool, points, outages, taken: taken.sort((a, b) => a.atMs - b.atMs) };
}

function outagesOf(trace: MarketTrace, pool: Pool, window: Window): (readonly [number, number])[] {
  const steps = trace.availability(pool.id);
  if (steps === null) return [];
  const outages: [number, number][] = [];
  let sinceMs: number | null = null;
  for (let i = Math.max(0, indexAt(steps.atMs, window.fromMs)); i < steps.atMs.length; i++) {
    const at = Math.max(window.fromMs, steps.atMs[i] ?? Infinity);
    if (at >= window.toMs) break;
    if (steps.available[i] === 0) sinceMs ??= at;
    else if (sinceMs !== null) {
      outages.push([sinceMs, at]);
      sinceMs = null;
    }
  }
  if (sinceMs !== null) outages.push([sinceMs, window.toMs]);
  return outages;
}

const MAX_POINTS = 1500;

/** At most about MAX_POINTS points that keep every bucket's lowest and highest: a spike never disappears. */
export function thinned(points: PoolSeries['points']): PoolSeries['points'] {
  if (points.length <= MAX_POINTS) return points;
  const bucket = Math.ceil((4 * points.length) / MAX_POINTS);
  const kept: (readonly [number, number])[] = [];
  for (let i = 0; i < points.length; i += bucket) {
    const part = points.slice(i, i + bucket);
    const low = part.reduce((a, b) => (b[1] < a[1] ? b : a));
    const high = part.reduce((a, b) => (b[1] > a[1] ? b : a));
    const last = part.at(-1) ?? low;
    kept.push(...[...new Set([part[0] ?? low, low, high, last])].sort((a, b) => a[0] - b[0]));
  }
  return kept;
}

/** ECharts shows a bare day of the month by default. */
const TIME_LABELS = {
  year: '{MMM} {yyyy}',
  month: '{d} {MMM}',
  day: '{d} {MMM}',
  hour: '{HH}:{mm}',
  minute: '{HH}:{mm}',
};

const ROW = { height: 190, top: 108, left: 72, width: 860 } as const;

/** Prices of pools below one another over one time axis, as SVG. */
export async function marketSvg(trace: MarketTrace, series: readonly PoolSeries[], theme: Theme): Promise<string> {
  const palette = PALETTES[theme];
  const from = Math.min(...series.map((s) => s.points[0]?.[0] ?? Infinity));
  const to = Math.max(...series.map((s) => s.points.at(-1)?.[0] ?? -Infinity));
  const top = (i: number): number => ROW.top + i * ROW.height;
  const option: EChartsOption = {
    backgroundColor: palette.background,
    useUTC: true,
    title: [
      { text: `Spot market ${trace.name}`, left: 20, top: 10, textStyle: { color: palette.text, fontSize: 15 } },
      ...series.map((s, i) => ({
        text: `${s.pool.type.name} in ${s.pool.zone}`,
        subtext: `on demand $${onDemandUsdOf(s.pool)}/h`,
        left: ROW.left,
        top: top(i) - 34,
        itemGap: 2,
        textStyle: { color: palette.text, fontSize: 12 },
        subtextStyle: { color: palette.faint, fontSize: 11 },
      })),
    ],
    legend: {
      top: 38,
      left: ROW.left - 5,
      textStyle: { color: palette.faint },
      data: ['spot price', 'on-demand price', 'price passes on-demand', 'capacity ends', 'no capacity'],
      itemGap: 22,
      selectedMode: false,
    },
    grid: series.map((_, i) => ({ left: ROW.left, width: ROW.width, top: top(i) + 4, height: ROW.height - 78 })),
    xAxis: series.map((_, i) => ({
      type: 'time' as const,
      gridIndex: i,
      min: from,
      max: to,
      axisLabel: { color: palette.faint, hideOverlap: true, formatter: TIME_LABELS },
      axisLine: { lineStyle: { color: palette.grid } },
      splitLine: { show: false },
    })),
    yAxis: series.map((_, i) => ({
      type: 'value' as const,
      gridIndex: i,
      min: 0,
      name: 'USD/h',
      nameTextStyle: { color: palette.faint, align: 'right' as const },
      splitNumber: 3,
      axisLabel: { color: palette.faint },
      splitLine: { lineStyle: { color: palette.grid } },
    })),
    series: series.flatMap((s, i) => poolLayers(s, i, palette, { fromMs: from, toMs: to })),
  };
  return render(option, ROW.left + ROW.width + 30, ROW.top + series.length * ROW.height - 40);
}

function poolLayers(s: PoolSeries, i: number, palette: Palette, span: Window): object[] {
  const axes = { xAxisIndex: i, yAxisIndex: i };
  const onDemand = onDemandUsdOf(s.pool);
  const marks = (name: string, cause: Taken['cause'], symbol: string, y: number): object => ({
    ...axes,
    type: 'scatter',
    name,
    symbol,
    symbolSize: 8,
    z: 4,
    itemStyle: { color: palette.taken },
    data: s.taken.filter((t) => t.cause === cause).map((t) => [t.atMs, y]),
  });
  return [
    {
      ...axes,
      type: 'line',
      name: 'spot price',
      step: 'end',
      showSymbol: false,
      lineStyle: { width: 1.5, color: palette.series[0] },
      itemStyle: { color: palette.series[0] },
      data: thinned(s.points).map(([at, usd]) => [at, usd]),
    },
    {
      ...axes,
      type: 'line',
      name: 'on-demand price',
      showSymbol: false,
      lineStyle: { width: 1.2, type: 'dashed', color: palette.onDemand },
      itemStyle: { color: palette.onDemand },
      data: [
        [span.fromMs, onDemand],
        [span.toMs, onDemand],
      ],
    },
    marks('price passes on-demand', 'price', 'triangle', onDemand),
    marks('capacity ends', 'capacity', 'diamond', 0),
    {
      // An empty line that carries the shaded areas and their entry in the legend.
      ...axes,
      type: 'line',
      name: 'no capacity',
      symbol: 'rect',
      lineStyle: { width: 0 },
      itemStyle: { color: palette.outage },
      data: [],
      markArea: {
        silent: true,
        itemStyle: { color: palette.outage },
        data: s.outages.map(([fromMs, toMs]) => [{ xAxis: fromMs }, { xAxis: toMs }]),
      },
    },
  ];
}

/** The same chart as a self-contained page that follows the reader's light or dark setting. */
export async function marketHtml(trace: MarketTrace, series: readonly PoolSeries[]): Promise<string> {
  const [light, dark] = [await marketSvg(trace, series, 'light'), await marketSvg(trace, series, 'dark')];
  const { light: day, dark: night } = PALETTES;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Spot market ${escape(trace.name)}</title>
<style>
:root { color-scheme: light dark; }
body { margin: 0; padding: 1rem; background: ${day.background}; color: ${day.text}; font-family: ${FONT}; }
figure { margin: 0 auto; max-width: 1000px; }
svg { width: 100%; height: auto; }
.dark { display: none; }
@media (prefers-color-scheme: dark) {
  body { background: ${night.background}; color: ${night.text}; }
  .dark { display: block; }
  .light { display: none; }
}
</style>
</head>
<body>
<figure class="light">${light}</figure>
<figure class="dark">${dark}</figure>
</body>
</html>
`;
}

const escape = (text: string): string => text.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);
