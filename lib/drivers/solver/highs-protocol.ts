import type { Milp, SolveLimits, SolveOutcome } from '../../policy/solver.ts';

/** Numbers of a model for the worker thread (names stay behind; functions cannot be sent). */
export type ModelNumbers = Omit<Milp, 'columnName' | 'rowName'>;

export type HighsRequest =
  | {
      readonly kind: 'solve';
      readonly model: ModelNumbers;
      readonly limits: SolveLimits;
      readonly start: Float64Array | null;
    }
  | { readonly kind: 'relax'; readonly model: ModelNumbers; readonly limits: SolveLimits }
  | {
      readonly kind: 'write';
      readonly model: ModelNumbers;
      readonly format: 'lp' | 'mps';
      readonly columnNames: readonly string[];
      readonly rowNames: readonly string[];
    };

export interface Relaxed {
  readonly bound: number;
  readonly values: Float64Array;
  readonly rowDuals: Float64Array;
}

export type HighsReply =
  | { readonly kind: 'solve'; readonly outcome: SolveOutcome }
  | { readonly kind: 'relax'; readonly relaxed: Relaxed | null }
  | { readonly kind: 'write'; readonly text: string }
  | { readonly kind: 'failed'; readonly detail: string };
