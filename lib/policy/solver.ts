/** A mixed-integer linear program in column form, rows as compressed sparse rows. Maximises. */
export interface Milp {
  readonly name: string;
  readonly columns: number;
  readonly rows: number;
  readonly objective: Float64Array;
  readonly columnLower: Float64Array;
  readonly columnUpper: Float64Array;
  /** 1 = integer, 0 = continuous. */
  readonly integer: Uint8Array;
  readonly rowLower: Float64Array;
  readonly rowUpper: Float64Array;
  /** CSR: row r has entries rowStart[r] .. rowStart[r+1]. */
  readonly rowStart: Int32Array;
  readonly columnIndex: Int32Array;
  readonly coefficient: Float64Array;
  /** Names of the formulation, made on demand for exported models and messages. */
  readonly columnName: (column: number) => string;
  readonly rowName: (row: number) => string;
}

/** Stopping rule. Deterministic limits (gap, nodes) for golden runs and simulation; wall time only in real time. */
export interface SolveLimits {
  readonly relativeGap: number;
  readonly maxNodes: number | null;
  readonly maxSeconds: number | null;
}

/**
 * FEASIBLE and NO SOLUTION FOUND are different words. Values are per column; bound is an upper bound on the objective.
 */
export type SolveOutcome = (
  | { readonly status: 'optimal'; readonly values: Float64Array; readonly objective: number; readonly bound: number }
  | {
      readonly status: 'feasible';
      readonly values: Float64Array;
      readonly objective: number;
      readonly bound: number;
      readonly gap: number;
      readonly limit: 'time' | 'nodes' | 'gap';
    }
  | { readonly status: 'no-solution'; readonly bound: number | null; readonly limit: 'time' | 'nodes' }
  | { readonly status: 'infeasible' }
  /** Also an unbounded model, which a plan never is. */
  | { readonly status: 'failed'; readonly detail: string }
) & {
  /** Real time that the call took, measured by the adapter: the core has no clock. */
  readonly elapsedMs?: number;
};

export interface Solver {
  /**
   * `start` is a feasible point to begin from (one value per column), if there is one. Never rejects: faults are
   * `failed`.
   */
  solve(model: Milp, limits: SolveLimits, start: Float64Array | null): Promise<SolveOutcome>;
  /**
   * Solves the LP relaxation only: objective is the bound. Null when it is not solved to optimality within the limits.
   */
  relax(
    model: Milp,
    limits: SolveLimits,
  ): Promise<{ bound: number; values: Float64Array; rowDuals: Float64Array } | null>;
  /** The model in LP or MPS format, with its names. */
  write(model: Milp, format: 'lp' | 'mps'): Promise<string>;
  close(): Promise<void>;
}

/**
 * The same solver under limits of its own. Simulations and golden runs stop by nodes and gap, never by the machine's
 * speed, so that one input gives one plan.
 */
export function limited(solver: Solver, limit: (asked: SolveLimits) => SolveLimits): Solver {
  return {
    solve: (model, limits, start) => solver.solve(model, limit(limits), start),
    relax: (model, limits) => solver.relax(model, limit(limits)),
    write: (model, format) => solver.write(model, format),
    close: () => solver.close(),
  };
}

/** No wall time, at most `maxNodes` branch-and-bound nodes. */
export const deterministic = (solver: Solver, maxNodes: number): Solver =>
  limited(solver, (asked) => ({ relativeGap: asked.relativeGap, maxNodes, maxSeconds: null }));
