/** Runs as tables: one for each market, request trace and scaling policy. */
import { recorded, shown, type EstimateRecord } from '../cluster/results.ts';
import type { Figure, Table } from '../cluster/record.ts';
import { clusterRatio } from '../intervals.ts';
import type { Answer } from './order.ts';

const COLUMNS = ['preset', 'USD', '/ on demand', 'slow', '/ autoscale-lowest', 'lost', 'free', 'vCPU-hours'];
const LOWEST = 'autoscale-lowest';
const ON_DEMAND = 'on-demand-autoscale';

type Quantity = (figures: Answer['figures']) => number;
const usd: Quantity = (f) => f.billedUsd;
const slow: Quantity = (f) => f.slow;

/** Runs of one market, trace and scaling policy. */
class Ground {
  readonly name: string;
  readonly #answers: readonly Answer[];

  constructor(name: string, answers: readonly Answer[]) {
    this.name = name;
    this.#answers = answers;
  }

  of(preset: string): readonly Answer[] {
    return this.#answers.filter((a) => a.preset === preset);
  }

  mean(preset: string, quantity: Quantity): number {
    const of = this.of(preset);
    return of.reduce((sum, a) => sum + quantity(a.figures), 0) / Math.max(1, of.length);
  }

  slowShare = (preset: string): number => this.mean(preset, slow) / this.mean(preset, (f) => f.requests);

  /** Sum over the starts that both ran, with an interval over starts. */
  ratio(over: string, under: string, quantity: Quantity): EstimateRecord | null {
    const base = new Map(this.of(under).map((a) => [a.seed, quantity(a.figures)]));
    const pairs = this.of(over).flatMap((a) => {
      const below = base.get(a.seed);
      return below === undefined ? [] : [{ cluster: a.seed, over: quantity(a.figures), under: below }];
    });
    return pairs.length === 0 ? null : recorded(clusterRatio(pairs));
  }

  presets(): readonly string[] {
    return [...new Set(this.#answers.map((a) => a.preset))];
  }

  /** Cost of `base` with the buffer at which as many requests are slow, USD; null: no buffer that ran has so few. */
  usdAtEqualSlow(base: string, share: number): number | null {
    const points = this.presets()
      .filter((name) => name === base || name.startsWith(`${base}+`))
      .map((name) => ({ slow: this.slowShare(name), usd: this.mean(name, usd) }))
      .sort((a, b) => b.slow - a.slow);
    const enough = points.findIndex((p) => p.slow <= share);
    const [before, after] = [points[enough - 1], points[enough]];
    if (after === undefined) return null;
    if (before === undefined) return after.usd;
    return after.usd + ((before.usd - after.usd) * (share - after.slow)) / (before.slow - after.slow);
  }
}

const groundsOf = (answers: readonly Answer[]): readonly Ground[] =>
  [...Map.groupBy(answers, (a) => `${a.year}, ${a.requests}, ${a.scaling}, refunds ${a.refundRule}`)].map(
    ([name, of]) =>
      new Ground(
        name,
        of.toSorted((a, b) => a.seed - b.seed),
      ),
  );

export const tablesOf = (answers: readonly Answer[]): Table[] =>
  groundsOf(answers).map((ground) => ({
    title: ground.name,
    note: `${new Set(ground.of(LOWEST).map((a) => a.seed)).size} starts`,
    columns: COLUMNS,
    rows: ground.presets().map((preset) => [
      preset,
      ground.mean(preset, usd).toFixed(3),
      shown(ground.ratio(preset, ON_DEMAND, usd)),
      `${(100 * ground.slowShare(preset)).toFixed(2)} %`,
      shown(ground.ratio(preset, LOWEST, slow)),
      ground.mean(preset, (f) => f.interrupted).toFixed(1),
      `${(
        (100 * ground.mean(preset, (f) => f.refundedUsd)) /
        Math.max(
          1e-9,
          ground.mean(preset, (f) => f.refundedUsd + f.billedUsd),
        )
      ).toFixed(1)} %`,
      ground.mean(preset, (f) => f.vcpuHours).toFixed(0),
    ]),
    isMain: true,
  }));

const percentLess = (ratio: EstimateRecord | null): string =>
  ratio === null ? '-' : `${(100 * (1 - ratio.value)).toFixed(1)} % (ratio ${shown(ratio)})`;

/** The figures of Tributary's evaluation, on each ground that ran the presets for them. */
export const figuresOf = (answers: readonly Answer[]): Figure[] =>
  groundsOf(answers).flatMap((ground) => {
    const cheaper = ground.ratio('tributary', ON_DEMAND, usd);
    if (cheaper === null) return [];
    const figures: Figure[] = [
      {
        what: `saved against on-demand autoscale, ${ground.name}`,
        reach: '81 to 86 %',
        seen: percentLess(cheaper),
        met: cheaper.value <= 0.19,
      },
    ];
    const share = ground.slowShare('tributary');
    const buffered = ground.usdAtEqualSlow(LOWEST, share);
    const saved = buffered === null ? null : 1 - ground.mean('tributary', usd) / buffered;
    figures.push({
      what: `saved against autoscale-lowest with the buffer of as few slow requests, ${ground.name}`,
      reach: '47 to 62 %',
      seen: saved === null ? 'no buffer gets there' : `${(100 * saved).toFixed(1)} %`,
      met: saved === null || saved >= 0.47,
    });
    const fewer = ground.ratio('tributary', LOWEST, slow);
    if (fewer !== null) {
      figures.push({
        what: `fewer slow requests than autoscale-lowest, ${ground.name}`,
        reach: '31 to 65 %',
        seen: percentLess(fewer),
        met: fewer.value <= 0.69,
      });
    }
    for (const rival of ['exosphere', 'exosphere-averse', 'proteus']) {
      const [less, cost] = [ground.ratio('tributary', rival, slow), ground.ratio('tributary', rival, usd)];
      if (less === null || cost === null) continue;
      figures.push({
        what: `slow requests and cost over those of ${rival}, ${ground.name}`,
        reach: '< 1 and <= 1',
        seen: `${shown(less)} and ${shown(cost)}`,
        met: less.value < 1 && cost.value <= 1,
      });
    }
    return figures;
  });

/** What other forecasts than the history of prices cost and miss, on each ground. */
export const forecastFiguresOf = (answers: readonly Answer[]): Figure[] =>
  groundsOf(answers).flatMap((ground) =>
    ground
      .presets()
      .filter((name) => name.startsWith('tributary@'))
      .flatMap((name): Figure[] => {
        const [cost, late] = [ground.ratio(name, 'tributary', usd), ground.ratio(name, 'tributary', slow)];
        if (cost === null || late === null) return [];
        return [
          {
            what: `cost and slow requests over those by history, ${name}, ${ground.name}`,
            reach: name.endsWith('lstm') ? 'the paper: 0.63' : '-',
            seen: `${shown(cost)} and ${shown(late)}`,
            met: !name.endsWith('lstm') || cost.value <= 0.63,
          },
        ];
      }),
  );
