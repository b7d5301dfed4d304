/**
 * Value of forecasts for a decision: an hour of work on spot or on-demand. On-demand costs 1. Spot costs its price
 * relative to on-demand, and after a loss `lossCost` hours of on-demand (repeated work, a missed deadline). Spot is
 * chosen if its expected cost is lower, so the threshold follows from the costs of errors and differs by price. Nothing
 * is tuned.
 */
import type { Cell, Forecast } from '../../lib/models/evaluation/cells.ts';
import type { DatasetRows } from '../../lib/models/evaluation/dataset-rows.ts';

/** Losses: half an hour of work repeated, an hour lost, a missed deadline worth ten hours. */
export const LOSS_COSTS = [0.5, 1, 10] as const;

export interface Choice {
  readonly forecast: string;
  /** Mean cost per LOSS_COSTS, in hours of on-demand. */
  readonly cost: readonly number[];
}

export function choices(rows: DatasetRows, cell: Cell, forecasts: readonly Forecast[]): Choice[] {
  const { features } = rows.manifest;
  const column = features.indexOf('priceRatioLog');
  const ratios = cell.rows.map((row) => Math.exp(rows.features[row * features.length + column] ?? NaN));
  const mean = (takesSpot: (i: number, lossCost: number) => boolean): number[] =>
    LOSS_COSTS.map((lossCost) => {
      let sum = 0;
      for (const [i, ratio] of ratios.entries()) {
        sum += takesSpot(i, lossCost) ? ratio + lossCost * (cell.lost[i] ?? 0) : 1;
      }
      return sum / ratios.length;
    });
  const by = (p: (i: number) => number) => (i: number, lossCost: number) => (ratios[i] ?? 1) + lossCost * p(i) < 1;
  return [
    { forecast: 'always spot', cost: mean(() => true) },
    { forecast: 'always on demand', cost: mean(() => false) },
    ...forecasts.map(({ name, p }) => ({ forecast: name, cost: mean(by((i) => p[cell.rows[i] ?? -1] ?? NaN)) })),
    { forecast: 'knows what comes', cost: mean(by((i) => cell.lost[i] ?? 0)) },
  ];
}
