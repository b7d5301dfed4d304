/** Charts of the page as ECharts options, plain data. Tooltips are elements: names of pools never become HTML. */
import type { EChartsOption } from 'echarts';
import type { CostPayload, Curve } from '../payload.ts';
import type { PriceSeries } from '../prices.ts';
import { el } from './dom.ts';
import { count, dollars, duration, minute, percent } from './format.ts';
import { FONT, type Palette } from './palette.ts';

/** Properties of a chart's place. */
export interface Frame {
  readonly palette: Palette;
  readonly widthPx: number;
}

/** Argument of a tooltip for each series under the pointer (ECharts, `tooltip.formatter`), as far as used. */
interface Pointed {
  readonly seriesName?: string;
  readonly name?: string;
  readonly color?: unknown;
  readonly value?: unknown;
}

const NARROW_PX = 560;

/** Time labels: by default ECharts shows a bare day of the month. */
const TIME_LABELS = {
  year: '{MMM} {yyyy}',
  month: '{d} {MMM}',
  day: '{d} {MMM}',
  hour: '{HH}:{mm}',
  minute: '{HH}:{mm}',
  second: '{HH}:{mm}:{ss}',
};

function base({ palette }: Frame): EChartsOption {
  return {
    animation: false,
    useUTC: true,
    backgroundColor: 'transparent',
    textStyle: { fontFamily: FONT, color: palette.text },
  };
}

const legend = (palette: Palette, names: readonly string[]): object => ({
  top: 0,
  left: 0,
  data: names,
  icon: 'roundRect',
  itemWidth: 18,
  itemHeight: 10,
  itemGap: 14,
  textStyle: { color: palette.text },
});

const LEGEND_LINE_PX = 24;

/** Height of a legend, estimated from the wrapping of its names: ECharts tells it only after drawing. */
export function legendPx(names: readonly string[], widthPx: number): number {
  let [lines, usedPx] = [1, 0];
  for (const name of names) {
    const entryPx = 18 + 5 + name.length * 6.8 + 14;
    if (usedPx > 0 && usedPx + entryPx > widthPx) [lines, usedPx] = [lines + 1, 0];
    usedPx += entryPx;
  }
  return lines * LEGEND_LINE_PX;
}

const axis = (palette: Palette): object => ({
  axisLabel: { color: palette.faint, hideOverlap: true },
  axisLine: { lineStyle: { color: palette.line } },
  axisTick: { lineStyle: { color: palette.line } },
  nameTextStyle: { color: palette.faint },
  splitLine: { lineStyle: { color: palette.line } },
});

/** Name and value of each line of a tooltip. */
type Lines = readonly (readonly [string, string])[];

/** Lines of a tooltip as elements, marked with the series' colours. */
function tooltip(palette: Palette, lines: (pointed: readonly Pointed[]) => Lines): object {
  return {
    trigger: 'axis',
    confine: true,
    backgroundColor: palette.panel,
    borderColor: palette.line,
    textStyle: { color: palette.text, fontSize: 12 },
    formatter: (given: Pointed | readonly Pointed[]) => {
      const pointed = Array.isArray(given) ? (given as readonly Pointed[]) : [given as Pointed];
      return lines(pointed).map(([name, value]) =>
        el('div', { class: 'tip' }, el('span', {}, name), el('strong', {}, value)),
      );
    },
  };
}

const pairOf = (value: unknown): readonly [number, number] =>
  Array.isArray(value) ? [Number(value[0]), Number(value[1])] : [NaN, NaN];

const COST_NAMES = ['work', 'wasted', 'speculative', 'moved', 'idle', 'same work on demand'] as const;
const COST_ROW_PX = 34;

export const costHeightPx = (presets: number, widthPx: number): number =>
  legendPx(COST_NAMES, widthPx) + 50 + presets * COST_ROW_PX;

/** Mean cost per run by its use, one bar per preset. A mark shows the cost of the same work at on-demand prices. */
export function costChart(frame: Frame, costs: readonly CostPayload[]): EChartsOption {
  const { palette } = frame;
  const styled = axis(palette);
  return {
    ...base(frame),
    legend: legend(palette, COST_NAMES),
    grid: {
      left: 4,
      right: 18,
      top: legendPx(COST_NAMES, frame.widthPx) + 10,
      bottom: 22,
      outerBoundsMode: 'same',
      outerBoundsContain: 'axisLabel',
    },
    tooltip: { ...tooltip(palette, costLines), axisPointer: { type: 'shadow' } },
    xAxis: {
      type: 'value',
      ...styled,
      name: 'USD per run',
      nameLocation: 'middle',
      nameGap: 24,
      splitNumber: frame.widthPx < NARROW_PX ? 3 : 6,
      axisLabel: { color: palette.faint, hideOverlap: true, formatter: (usd: number) => axisDollars(usd) },
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: costs.map((c) => c.preset),
      ...styled,
      axisLabel: { color: palette.text, width: frame.widthPx < NARROW_PX ? 90 : 150, overflow: 'truncate' },
      axisTick: { show: false },
    },
    series: [...costBars(palette, costs), onDemandMarks(palette, costs)],
  };
}

const costLines = (pointed: readonly Pointed[]): Lines => [
  [pointed[0]?.name ?? '', ''],
  ...pointed.map((p) => [p.seriesName ?? '', dollars(Number(Array.isArray(p.value) ? p.value[0] : p.value))] as const),
];

function costBars(palette: Palette, costs: readonly CostPayload[]) {
  const kinds = [
    ['work', palette.work, (c: CostPayload) => c.workUsd],
    ['wasted', palette.wasted, (c: CostPayload) => c.wastedUsd],
    ['speculative', palette.speculative, (c: CostPayload) => c.speculativeUsd],
    ['moved', palette.moved, (c: CostPayload) => c.movedUsd],
    ['idle', palette.idle, (c: CostPayload) => c.idleUsd],
  ] as const;
  return kinds.map(([name, color, of]) => ({
    type: 'bar' as const,
    name,
    stack: 'cost',
    barMaxWidth: 22,
    itemStyle: { color },
    data: costs.map(of),
  }));
}

const onDemandMarks = (palette: Palette, costs: readonly CostPayload[]) => ({
  type: 'scatter' as const,
  name: 'same work on demand',
  symbol: 'rect',
  symbolSize: [3, 22],
  z: 5,
  itemStyle: { color: palette.text },
  data: costs.map((c) => [c.onDemandUsd, c.preset]),
});

const axisDollars = (usd: number): string =>
  usd >= 1e6 ? `$${usd / 1e6}M` : usd >= 1e3 ? `$${usd / 1e3}k` : `$${Number(usd.toPrecision(3))}`;

/** Labels of a logarithmic axis of durations, s. */
const MARKS_S = [1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400];

/** Distribution functions of durations on a logarithmic axis, one per preset. */
export function distributionChart(frame: Frame, curves: readonly Curve[], presets: readonly string[]): EChartsOption {
  const { palette } = frame;
  const styled = axis(palette);
  const names = curves.map((c) => c.preset);
  const { min, max } = durationRange(curves);
  const marks = MARKS_S.filter((m) => m >= min && m <= max);
  return {
    ...base(frame),
    legend: legend(palette, names),
    grid: {
      left: 8,
      right: 24,
      top: legendPx(names, frame.widthPx) + 12,
      bottom: 8,
      outerBoundsMode: 'same',
      outerBoundsContain: 'axisLabel',
    },
    tooltip: tooltip(palette, shareLines),
    xAxis: {
      type: 'log',
      min,
      max,
      ...styled,
      axisLabel: {
        color: palette.faint,
        hideOverlap: true,
        customValues: marks,
        formatter: (s: number) => duration(s),
      },
      axisTick: { customValues: marks, lineStyle: { color: palette.line } },
      splitLine: { show: false },
      axisPointer: { label: { show: false } },
    },
    yAxis: {
      type: 'value',
      min: 0,
      max: 1,
      ...styled,
      axisLabel: { color: palette.faint, formatter: (share: number) => `${Math.round(share * 100)} %` },
    },
    series: curves.map((c) => {
      const place = presets.indexOf(c.preset);
      const color = palette.series[place % palette.series.length] ?? palette.text;
      const first = atLeastASecond(c.points[0]?.[0] ?? 1);
      return {
        type: 'line' as const,
        name: c.preset,
        step: 'end' as const,
        showSymbol: false,
        lineStyle: { width: 2, color, type: place < palette.series.length ? ('solid' as const) : ('dashed' as const) },
        itemStyle: { color },
        data: [[min, 0], [first, 0], ...c.points.map(([x, p]) => [atLeastASecond(x), p]), [max, 1]],
      };
    }),
  };
}

/** Ends of the axis: labels that bracket the values, because a single value would give an axis without length. */
function durationRange(curves: readonly Curve[]): { readonly min: number; readonly max: number } {
  const values = curves.flatMap((c) => c.points.map(([x]) => atLeastASecond(x)));
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const min = MARKS_S.findLast((m) => m <= least) ?? 1;
  return { min, max: MARKS_S.find((m) => m >= most && m > min) ?? most * 2 };
}

const shareLines = (pointed: readonly Pointed[]): Lines => [
  ...pointed.slice(0, 1).map((p) => [`within ${duration(pairOf(p.value)[0])}`, ''] as const),
  ...pointed.map((p) => [p.seriesName ?? '', percent(pairOf(p.value)[1])] as const),
];

/** Least value for a logarithm. */
const atLeastASecond = (s: number): number => Math.max(s, 1);

export const distributionHeightPx = (curves: readonly Curve[], widthPx: number): number =>
  240 +
  legendPx(
    curves.map((c) => c.preset),
    widthPx,
  );

export interface InstancesOverTime {
  readonly atMs: ArrayLike<number>;
  readonly reserved: ArrayLike<number>;
  readonly onDemand: ArrayLike<number>;
  readonly spot: ArrayLike<number>;
  readonly vcpus: ArrayLike<number>;
  readonly fromMs: number;
  readonly endMs: number;
}

/**
 * Live instances over time by purchase option, stacked. Each area reaches from zero to the sum with those below it, and
 * lower ones are drawn on top.
 */
export function instancesChart(frame: Frame, series: InstancesOverTime): EChartsOption {
  const { palette } = frame;
  const styled = axis(palette);
  const { fromMs, endMs } = series;
  const areas = stacked(series, palette);
  return {
    ...base(frame),
    legend: {
      ...legend(
        palette,
        areas.map((a) => a.name),
      ),
      selectedMode: false,
    },
    grid: { left: 8, right: 14, top: 52, bottom: 46, outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' },
    tooltip: tooltip(palette, instanceLines),
    dataZoom: [timeSlider(palette)],
    xAxis: {
      type: 'time',
      min: fromMs,
      max: endMs,
      ...styled,
      splitLine: { show: false },
      axisLabel: { color: palette.faint, hideOverlap: true, formatter: TIME_LABELS },
    },
    yAxis: {
      type: 'value',
      ...styled,
      name: 'instances',
      nameTextStyle: { color: palette.faint, align: 'left' },
      nameGap: 8,
      minInterval: 1,
      splitNumber: 4,
    },
    series: areas.toReversed().map(({ name, color, points }, place) => ({
      type: 'line' as const,
      name,
      // Explicit, because a redrawn chart keeps older series of the same name below new ones.
      z: 2 + place,
      step: 'end' as const,
      showSymbol: false,
      lineStyle: { width: 1, color },
      itemStyle: { color },
      areaStyle: { color, opacity: 1 },
      data: points.map((p) => [...p]),
    })),
  };
}

const instanceLines = (pointed: readonly Pointed[]): Lines => [
  ...pointed.slice(0, 1).map((p) => [`${minute(pairOf(p.value)[0])} UTC`, ''] as const),
  // The third value of a point is the count of its option.
  ...pointed.map((p) => [p.seriesName ?? '', count(Array.isArray(p.value) ? Number(p.value[2]) : NaN)] as const),
];

const timeSlider = (palette: Palette) => ({
  type: 'slider' as const,
  height: 20,
  bottom: 4,
  showDetail: false,
  borderColor: palette.line,
  fillerColor: 'rgba(127, 140, 160, 0.25)',
  dataBackground: { lineStyle: { color: palette.faint }, areaStyle: { color: palette.line } },
  selectedDataBackground: { lineStyle: { color: palette.accent }, areaStyle: { color: palette.line } },
});

interface Area {
  readonly name: string;
  readonly color: string;
  /** Points of time, top of the area, and count of the option. */
  readonly points: readonly (readonly [number, number, number])[];
}

/** Areas from the lowest to the highest, without unused options. */
function stacked({ atMs, fromMs, endMs, ...counts }: InstancesOverTime, palette: Palette): readonly Area[] {
  const times = [fromMs, ...Array.from(atMs), endMs];
  const below = new Float64Array(times.length);
  const options = [
    ['reserved', palette.reserved, counts.reserved],
    ['on-demand', palette.onDemand, counts.onDemand],
    ['spot', palette.spot, counts.spot],
  ] as const;
  return options.flatMap(([name, color, own]) => {
    const values = [0, ...Array.from(own), own[own.length - 1] ?? 0];
    if (!values.some((n) => n > 0)) return [];
    const points = times.map((at, i) => [at, (below[i] = (below[i] ?? 0) + (values[i] ?? 0)), values[i] ?? 0] as const);
    return [{ name, color, points }];
  });
}

const PRICE_ROW = { heightPx: 150, headPx: 40, topPx: 34 } as const;

const priceColumns = (widthPx: number): number => (widthPx < 760 ? 1 : 2);

export const pricesHeightPx = (n: number, widthPx: number): number =>
  PRICE_ROW.topPx + Math.ceil(n / priceColumns(widthPx)) * (PRICE_ROW.heightPx + PRICE_ROW.headPx);

/** Small charts over the same times, one per pool: the spot price, and the on-demand price as a dashed line. */
export function pricesChart(frame: Frame, prices: readonly PriceSeries[]): EChartsOption {
  const { palette, widthPx } = frame;
  const styled = axis(palette);
  const columns = priceColumns(widthPx);
  const cellPx = widthPx / columns;
  const leftPx = (i: number): number => (i % columns) * cellPx;
  const topPx = (i: number): number =>
    PRICE_ROW.topPx + Math.floor(i / columns) * (PRICE_ROW.heightPx + PRICE_ROW.headPx);
  return {
    ...base(frame),
    legend: { ...legend(palette, ['spot price', 'on-demand price']), selectedMode: false },
    title: prices.map((p, i) => ({
      text: p.pool,
      left: leftPx(i) + 4,
      top: topPx(i),
      padding: 0,
      textStyle: { fontSize: 12, color: palette.text, width: cellPx - 30, overflow: 'truncate' as const },
    })),
    tooltip: tooltip(palette, priceTips),
    grid: prices.map((_, i) => ({
      left: leftPx(i) + 62,
      width: cellPx - 84,
      top: topPx(i) + 24,
      height: PRICE_ROW.heightPx - 34,
    })),
    xAxis: prices.map((p, i) => ({
      type: 'time' as const,
      gridIndex: i,
      min: p.fromMs,
      max: p.toMs,
      ...styled,
      splitLine: { show: false },
      splitNumber: 4,
      axisLabel: { color: palette.faint, hideOverlap: true, formatter: TIME_LABELS },
    })),
    yAxis: prices.map((_, i) => ({
      type: 'value' as const,
      gridIndex: i,
      min: 0,
      ...styled,
      splitNumber: 3,
      axisLabel: { color: palette.faint, formatter: (usd: number) => `${axisDollars(usd)}/h` },
    })),
    series: prices.flatMap((p, i) => priceLines(palette, p, i)),
  };
}

const priceTips = (pointed: readonly Pointed[]): Lines => [
  ...pointed.slice(0, 1).map((p) => [`${minute(pairOf(p.value)[0])} UTC`, ''] as const),
  ...pointed.map((p) => [p.seriesName ?? '', `${dollars(pairOf(p.value)[1])}/h`] as const),
];

/** Lines of the pool in the `place`-th chart. */
function priceLines(palette: Palette, p: PriceSeries, place: number): object[] {
  const line = { type: 'line', xAxisIndex: place, yAxisIndex: place, showSymbol: false };
  return [
    {
      ...line,
      name: 'spot price',
      step: 'end',
      lineStyle: { width: 1.5, color: palette.spot },
      itemStyle: { color: palette.spot },
      data: [...p.atMs.map((at, k) => [at, p.usdPerHour[k] ?? 0]), [p.toMs, p.usdPerHour.at(-1) ?? 0]],
    },
    {
      ...line,
      name: 'on-demand price',
      lineStyle: { width: 1.2, type: 'dashed', color: palette.faint },
      itemStyle: { color: palette.faint },
      data: [
        [p.fromMs, p.onDemandUsdPerHour],
        [p.toMs, p.onDemandUsdPerHour],
      ],
    },
  ];
}
