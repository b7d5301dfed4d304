/**
 * Costs and missed deadlines of presets side by side, from the outcomes of their runs: presets x windows x seeds, as
 * plain data.
 *
 * A cell is one window of the market with one seed. Presets are compared over the cells that both ran to the end, so
 * that market and workload are equal (paired).
 *
 * Independent units are resampled. If each seed has its own market, these are the markets with all their windows. If
 * seeds share one, they are whole windows with all seeds, which see the same prices; with one window, the seeds.
 */
import { EbbError } from '../kernel/errors.ts';
import { Bootstrap, LEVEL, RESAMPLES, type Estimate, type Share } from './bootstrap.ts';
import { ORACLE } from './hindsight.ts';
import { warningsOf } from './warnings.ts';
import { QUANTILES, type References, type RunOutcome, type ServiceUse, type Totals } from './outcome.ts';
import type { Comparison, Difference, Method, Percentiles, PresetFigures, ServiceFigures } from './figures.ts';

export type { Estimate } from './bootstrap.ts';

/**
 * Comparison of runs. `planned`: the preset of each requested run, if some may not have begun. O(runs + presets^2 x
 * RESAMPLES x units). Throws EbbError `usage` without runs, or for two runs of one preset, window and seed.
 */
export function compare(
  runs: readonly RunOutcome[],
  planned: readonly string[] = runs.map((r) => r.preset),
): Comparison {
  const presets = cellsByPreset(runs);
  const fromMs = distinct(runs.map((r) => r.fromMs));
  const seeds = distinct(runs.map((r) => r.seed));
  const markets = distinct(runs.flatMap((r) => r.marketSeed ?? []));
  const units = unitsOf({ markets: markets.length, windows: fromMs.length, seeds: seeds.length });
  const statistics = new Statistics(UNIT[units]);
  const names = [...presets.keys()];
  const cellsOf = (name: string): Cells => presets.get(name) ?? new Map<string, RunOutcome>();
  const differences = names.flatMap((a, i) =>
    names.slice(i + 1).flatMap((b) => difference(statistics, [a, b], pairs(cellsOf(a), cellsOf(b)))),
  );
  const figures = names.map((name) =>
    presetFigures(statistics, name, {
      runs: [...cellsOf(name).values()],
      oracle: pairs(cellsOf(name), cellsOf(ORACLE)),
    }),
  );
  const method = methodOf(units, { markets, windows: fromMs, seeds, none: [0] }[units].length);
  const warnings = warningsOf({ presets: figures, method, runs, planned });
  return { method, fromMs, seeds, presets: figures, differences, planned: planned.length, warnings };
}

const unitsOf = (n: { readonly markets: number; readonly windows: number; readonly seeds: number }): Method['units'] =>
  n.markets > 1 ? 'markets' : n.windows > 1 ? 'windows' : n.seeds > 1 ? 'seeds' : 'none';

/** Key of a run's independent unit. */
const UNIT = {
  markets: (r) => r.marketSeed ?? 0,
  windows: (r) => r.fromMs,
  seeds: (r) => r.seed,
  none: () => 0,
} as const satisfies Record<Method['units'], (r: RunOutcome) => number>;

/**
 * Presets eligible by cost per run, the cheapest first. Oracles are excluded, and presets with aborted or missing runs:
 * unfinished work costs nothing.
 */
export function choices(presets: readonly PresetFigures[]): readonly PresetFigures[] {
  const most = Math.max(...presets.map((p) => p.runs));
  return presets
    .filter((p) => p.preset !== ORACLE && p.aborted === 0 && p.runs === most && p.costUsd.value !== null)
    .toSorted((a, b) => (a.costUsd.value ?? 0) - (b.costUsd.value ?? 0));
}

/** A run and the cost that its own is held against, USD. */
interface Held {
  readonly run: RunOutcome;
  readonly usd: number;
}

const meanOf = (held: readonly Held[]): number | null =>
  held.length === 0 ? null : total(held, (h) => h.usd) / held.length;

const onDemandBill = ({ pools }: RunOutcome): number =>
  total(pools, (use) => (use.option === 'on-demand' ? use.billedUsd : 0));

/** Runs of one preset by cell. */
type Cells = ReadonlyMap<string, RunOutcome>;
type Pair = readonly [RunOutcome, RunOutcome];

function cellsByPreset(runs: readonly RunOutcome[]): ReadonlyMap<string, Cells> {
  if (runs.length === 0)
    throw new EbbError('usage', { what: 'no run to compare', allowed: 'one run of one preset or more' });
  const presets = new Map<string, Map<string, RunOutcome>>();
  for (const run of runs) {
    const cells = presets.get(run.preset) ?? new Map<string, RunOutcome>();
    presets.set(run.preset, cells);
    const cell = `${run.fromMs}/${run.seed}`;
    if (cells.has(cell))
      throw new EbbError('usage', {
        what: 'two runs are of the same preset, window and seed',
        got: `${run.preset} from ${new Date(run.fromMs).toISOString()} with seed ${run.seed}`,
        allowed: 'each of them once',
      });
    cells.set(cell, run);
  }
  return presets;
}

const pairs = (a: Cells, b: Cells): readonly Pair[] =>
  [...a].flatMap(([cell, run]) => {
    const other = b.get(cell);
    return other === undefined || run.ended === 'aborted' || other.ended === 'aborted' ? [] : [[run, other] as const];
  });

const distinct = (values: readonly number[]): readonly number[] => [...new Set(values)].sort((x, y) => x - y);

/** Sums over the runs of each independent unit. */
class Statistics {
  readonly #unit: (run: RunOutcome) => number;
  readonly #bootstrap = new Bootstrap();

  constructor(unit: (run: RunOutcome) => number) {
    this.#unit = unit;
  }

  ratio(runs: readonly RunOutcome[], above: (t: Totals) => number, below: (t: Totals) => number): Estimate {
    return this.ofUnits(runs.map((r) => [r, { above: above(r.totals), below: below(r.totals) }]));
  }

  mean(runs: readonly RunOutcome[], of: (t: Totals) => number): Estimate {
    return this.ratio(runs, of, () => 1);
  }

  paired(cells: readonly Pair[], above: (a: Totals, b: Totals) => number, below?: (b: Totals) => number): Estimate {
    return this.ofUnits(
      cells.map(([a, b]) => [a, { above: above(a.totals, b.totals), below: below?.(b.totals) ?? 1 }]),
    );
  }

  /** Of what runs cost, over what they are held against; null without such runs. */
  toReference(held: readonly Held[], above: (t: Totals) => number): Estimate | null {
    if (held.length === 0) return null;
    return this.ofUnits(held.map(({ run, usd }) => [run, { above: above(run.totals), below: usd }]));
  }

  /** Difference a - b of two ratios of sums with different denominators. */
  pairedShare(cells: readonly Pair[], above: (t: Totals) => number, below: (t: Totals) => number): Estimate {
    // Linearised about both ratios (delta method), so that one resampled sum suffices: exact for equal denominators.
    const part = (k: 0 | 1): { readonly at: number; readonly sum: number } => {
      const sum = total(cells, (c) => below(c[k].totals));
      return { at: sum === 0 ? 0 : total(cells, (c) => above(c[k].totals)) / sum, sum };
    };
    const [a, b] = [part(0), part(1)];
    if (a.sum === 0 || b.sum === 0) return { value: null, interval: null, n: 0 };
    const share = (t: Totals, of: typeof a): number => (above(t) - of.at * below(t)) * (cells.length / of.sum);
    return this.paired(cells, (x, y) => a.at - b.at + share(x, a) - share(y, b));
  }

  /** Of sums over the runs of each unit. */
  ofUnits(parts: readonly (readonly [RunOutcome, Share])[]): Estimate {
    const units = new Map<number, Share>();
    for (const [run, share] of parts) {
      const unit = this.#unit(run);
      const before = units.get(unit) ?? { above: 0, below: 0 };
      units.set(unit, { above: before.above + share.above, below: before.below + share.below });
    }
    // Sorted: the interval does not depend on the order of the runs.
    return this.#bootstrap.ratio([...units].sort(([x], [y]) => x - y).map(([, share]) => share));
  }
}

const total = <T>(items: readonly T[], of: (item: T) => number): number => items.reduce((sum, x) => sum + of(x), 0);

const COUNTED = [
  'jobs',
  'tasks',
  'succeeded',
  'failed',
  'unfinished',
  'refused',
  'notSubmitted',
  'deadlines',
  'missed',
] as const;

const countsOf = (runs: readonly RunOutcome[]): Pick<PresetFigures, (typeof COUNTED)[number]> =>
  Object.fromEntries(COUNTED.map((name) => [name, total(runs, (r) => r.totals[name])])) as Pick<
    PresetFigures,
    (typeof COUNTED)[number]
  >;

function presetFigures(
  statistics: Statistics,
  preset: string,
  of: { readonly runs: readonly RunOutcome[]; readonly oracle: readonly Pair[] },
): PresetFigures {
  const { runs, oracle } = of;
  const perRun = (pick: (t: Totals) => number): number => total(runs, (r) => pick(r.totals)) / runs.length;
  return {
    preset,
    runs: runs.length,
    aborted: runs.filter((r) => r.ended === 'aborted').length,
    timeOver: runs.filter((r) => r.ended === 'time-over').length,
    ...countsOf(runs),
    costUsd: statistics.mean(runs, billed),
    workUsd: perRun((t) => t.workUsd),
    wastedUsd: perRun((t) => t.wastedUsd),
    speculativeUsd: perRun((t) => t.speculativeUsd),
    movedUsd: perRun((t) => t.movedUsd),
    idleUsd: perRun((t) => t.idleUsd),
    onDemandUsd: perRun((t) => t.onDemandUsd),
    refundedUsd: perRun((t) => t.refundedUsd),
    onDemandBillUsd: total(runs, onDemandBill) / runs.length,
    interruptions: statistics.mean(runs, (t) => t.interruptions),
    launches: statistics.mean(runs, (t) => t.launches),
    moves: statistics.mean(runs, (t) => t.moves),
    instanceHours: perRun((t) => t.instanceHours),
    lostHours: perRun((t) => t.lostHours),
    toOnDemandPrices: statistics.ratio(runs, billed, (t) => t.onDemandUsd),
    ...againstReferences(statistics, runs),
    toOracle: oracle.length === 0 ? null : statistics.paired(oracle, billed, billed),
    missedShare: statistics.ratio(
      runs,
      (t) => t.missed,
      (t) => t.deadlines,
    ),
    wastedShare: statistics.ratio(runs, (t) => t.wastedUsd, billed),
    speculativeShare: statistics.ratio(runs, (t) => t.speculativeUsd, billed),
    movedShare: statistics.ratio(runs, (t) => t.movedUsd, billed),
    idleShare: statistics.ratio(runs, (t) => t.idleUsd, billed),
    utilisation: statistics.ratio(
      runs,
      (t) => t.utilisation * t.instanceHours,
      (t) => t.instanceHours,
    ),
    completionS: {
      deadline: percentiles(statistics, runs, (t) => t.completionS.deadline),
      'best-effort': percentiles(statistics, runs, (t) => t.completionS['best-effort']),
    },
    latenessS: percentiles(statistics, runs, (t) => t.latenessS),
    services: servicesOf(statistics, runs),
  };
}

function servicesOf(statistics: Statistics, runs: readonly RunOutcome[]): readonly ServiceFigures[] {
  const uses = runs.flatMap((run) => (run.services ?? []).map((use) => ({ run, use })));
  return [...Map.groupBy(uses, ({ use }) => use.service)].map(([service, its]): ServiceFigures => {
    const [first] = its;
    const sum = (of: (use: ServiceUse) => number): number => total(its, ({ use }) => of(use));
    const ratio = (above: (use: ServiceUse) => number, below: (use: ServiceUse) => number): Estimate =>
      statistics.ofUnits(its.map(({ run, use }) => [run, { above: above(use), below: below(use) }]));
    return {
      service,
      latencyS: first?.use.latencyS ?? NaN,
      maySlow: 1 - (first?.use.target ?? NaN),
      requests: sum((use) => use.requests) / runs.length,
      slowShare: ratio(
        (use) => use.slow,
        (use) => use.requests,
      ),
      failedShare: ratio(
        (use) => use.failed,
        (use) => use.requests,
      ),
      replicaHours: sum((use) => use.replicaHours) / runs.length,
      interruptions: sum((use) => use.interruptions) / runs.length,
      costUsd: ratio(
        (use) => use.billedUsd,
        () => 1,
      ),
      toOnDemandPrices: ratio(
        (use) => use.billedUsd,
        (use) => use.onDemandUsd,
      ),
    };
  });
}

const billed = (t: Totals): number => t.billedUsd;

function againstReferences(
  statistics: Statistics,
  runs: readonly RunOutcome[],
): Pick<PresetFigures, 'referenceUsd' | 'lowerBoundUsd' | 'toOnDemand' | 'toBound'> {
  const held = (reference: keyof References): Held[] =>
    runs.flatMap((run) => {
      const usd = run.ended === 'aborted' ? null : (run.references?.[reference] ?? null);
      return usd === null || !(usd > 0) ? [] : [{ run, usd }];
    });
  const [onDemand, bounded] = [held('onDemandUsd'), held('lowerBoundUsd')];
  return {
    referenceUsd: meanOf(onDemand),
    lowerBoundUsd: meanOf(bounded),
    toOnDemand: statistics.toReference(onDemand, billed),
    toBound: statistics.toReference(bounded, (t) => t.billedUsd + t.refundedUsd),
  };
}

function percentiles(
  statistics: Statistics,
  runs: readonly RunOutcome[],
  of: (t: Totals) => readonly number[] | undefined,
): Percentiles | null {
  const known = runs.filter((r) => (of(r.totals)?.length ?? 0) > 0);
  if (known.length === 0) return null;
  const at = (p: (typeof QUANTILES)[number]): Estimate =>
    statistics.mean(known, (t) => of(t)?.[QUANTILES.indexOf(p)] ?? NaN);
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

function difference(
  statistics: Statistics,
  [a, b]: readonly [string, string],
  cells: readonly Pair[],
): readonly Difference[] {
  if (cells.length === 0) return [];
  const lost = (t: Totals): number => t.wastedUsd + t.speculativeUsd + t.movedUsd + t.idleUsd;
  return [
    {
      a,
      b,
      cells: cells.length,
      costUsd: statistics.paired(cells, (x, y) => x.billedUsd - y.billedUsd),
      costShare: statistics.paired(
        cells,
        (x, y) => x.billedUsd - y.billedUsd,
        (y) => y.billedUsd,
      ),
      missedShare: statistics.pairedShare(
        cells,
        (t) => t.missed,
        (t) => t.deadlines,
      ),
      lostUsd: statistics.paired(cells, (x, y) => lost(x) - lost(y)),
    },
  ];
}

function methodOf(units: Method['units'], n: number): Method {
  const of = { level: LEVEL, resamples: RESAMPLES, units, n };
  if (units === 'none')
    return {
      ...of,
      text: 'One run of each preset: there are no intervals. Ask for more windows or seeds to get some.',
    };
  const what = {
    markets: `${n} generated markets, each with all its windows`,
    windows: `${n} windows, each with all its seeds`,
    seeds: `${n} seeds of one window`,
  }[units];
  const same = units === 'seeds' ? ' They say nothing about other windows of the market.' : '';
  return {
    ...of,
    text: `Intervals: ${LEVEL * 100} % by the percentile bootstrap (${RESAMPLES} resamples of ${what}); differences and ratios between presets are paired.${same}`,
  };
}
