import type { Cell, Forecast, Row } from '../../lib/models/evaluation/cells.ts';
import type { Choice } from './choices.ts';
import type { Verdicts } from './verdicts.ts';
import type { DatasetRows } from '../../lib/models/evaluation/dataset-rows.ts';
import type { Scores } from '../../lib/models/evaluation/scores.ts';

export interface Evaluation {
  readonly machine: string;
  readonly manifest: DatasetRows['manifest'];
  readonly seed: number;
  readonly cells: readonly Cell[];
  readonly forecasts: readonly Forecast[];
  readonly rows: readonly Row[];
  readonly ablation: readonly Row[];
  readonly curve: readonly CurveRow[];
  readonly choices: readonly { readonly cell: Cell; readonly list: readonly Choice[] }[];
  readonly verdicts: readonly { readonly cell: Cell; readonly list: readonly Verdicts[] }[];
}

export interface CurveRow {
  readonly cell: Cell;
  readonly horizonS: number;
  readonly forecast: string;
  readonly scores: Scores;
  readonly said: number;
  readonly was: number;
}
