import type { Milp } from '../../lib/policy/solver.ts';

/** A model written down by hand: dense rows. */
export interface Dense {
  readonly objective: readonly number[];
  readonly lower?: readonly number[];
  readonly upper?: readonly number[];
  readonly integer?: readonly boolean[];
  readonly rows: readonly { readonly of: readonly number[]; readonly from?: number; readonly to?: number }[];
}

export function milpOf(name: string, dense: Dense): Milp {
  const rowStart = [0];
  const columnIndex: number[] = [];
  const coefficient: number[] = [];
  for (const row of dense.rows) {
    row.of.forEach((value, column) => {
      if (value === 0) return;
      columnIndex.push(column);
      coefficient.push(value);
    });
    rowStart.push(columnIndex.length);
  }
  const n = dense.objective.length;
  return {
    name,
    columns: n,
    rows: dense.rows.length,
    objective: Float64Array.from(dense.objective),
    columnLower: Float64Array.from(dense.objective, (_, j) => dense.lower?.[j] ?? 0),
    columnUpper: Float64Array.from(dense.objective, (_, j) => dense.upper?.[j] ?? Infinity),
    integer: Uint8Array.from(dense.objective, (_, j) => (dense.integer?.[j] === true ? 1 : 0)),
    rowLower: Float64Array.from(dense.rows, (row) => row.from ?? -Infinity),
    rowUpper: Float64Array.from(dense.rows, (row) => row.to ?? Infinity),
    rowStart: Int32Array.from(rowStart),
    columnIndex: Int32Array.from(columnIndex),
    coefficient: Float64Array.from(coefficient),
    columnName: (column) => `x_${column}`,
    rowName: (row) => `limit_${row}`,
  };
}

/** Chairs and tables: 30 c + 50 t, c + 2 t <= 40, 2 c + t <= 50. LP optimum (20, 10) is whole already: 1100. */
export const workshop = milpOf('workshop', {
  objective: [30, 50],
  integer: [true, true],
  rows: [
    { of: [1, 2], to: 40 },
    { of: [2, 1], to: 50 },
  ],
});

/** 0/1 knapsack: values 60 100 120, weights 10 20 30, room 50. Best is items 2 and 3: 220; the relaxation gives 240. */
export const knapsack = milpOf('knapsack', {
  objective: [60, 100, 120],
  upper: [1, 1, 1],
  integer: [true, true, true],
  rows: [{ of: [10, 20, 30], to: 50 }],
});

/** max x + y, x + 2 y <= 4, 3 x + y <= 6: LP optimum at (1.6, 1.2), 2.8. */
export const linear = milpOf('linear', {
  objective: [1, 1],
  rows: [
    { of: [1, 2], to: 4 },
    { of: [3, 1], to: 6 },
  ],
});

/** x + y = 3 with x, y in {0, 1}. */
export const impossible = milpOf('impossible', {
  objective: [1, 1],
  upper: [1, 1],
  integer: [true, true],
  rows: [{ of: [1, 1], from: 3, to: 3 }],
});

/** Its relaxation is feasible (0.5), no whole number is. */
export const impossibleWhole = milpOf('impossible-whole', {
  objective: [1],
  upper: [1],
  integer: [true],
  rows: [{ of: [2], from: 1, to: 1 }],
});

/** Nothing limits y. */
export const endless = milpOf('endless', { objective: [1, 1], rows: [{ of: [1, -1], to: 1 }] });

/** No row at all: bounds decide. 2 * 3 + (-1) * 0 = 6. */
export const boundsOnly = milpOf('bounds-only', { objective: [2, -1], upper: [3, 5], rows: [] });

/**
 * A market split instance (Cornuejols and Dawande 1998): `rows` equalities over `columns` binaries, halves of random
 * sums; branch and bound needs an enormous tree, and a feasible point is unlikely to exist or be found soon.
 */
export function marketSplit(rows: number, columns: number, draw: () => number): Milp {
  const matrix = Array.from({ length: rows }, () => Array.from({ length: columns }, () => Math.floor(draw() * 100)));
  return milpOf('market-split', {
    objective: Array.from({ length: columns }, () => 1),
    upper: Array.from({ length: columns }, () => 1),
    integer: Array.from({ length: columns }, () => true),
    rows: matrix.map((of) => {
      const half = Math.floor(of.reduce((a, b) => a + b, 0) / 2);
      return { of, from: half, to: half };
    }),
  });
}

/** Correlated multi-row knapsack: optimal only after a search, feasible at once (all zero). */
export function hardKnapsack(columns: number, rows: number, draw: () => number): Milp {
  const weights = Array.from({ length: rows }, () =>
    Array.from({ length: columns }, () => 20 + Math.floor(draw() * 80)),
  );
  return milpOf('hard-knapsack', {
    objective: Array.from({ length: columns }, (_, j) => weights.reduce((s, row) => s + (row[j] ?? 0), 0) / rows + 10),
    upper: Array.from({ length: columns }, () => 1),
    integer: Array.from({ length: columns }, () => true),
    rows: weights.map((of) => ({ of, to: Math.floor(of.reduce((a, b) => a + b, 0) / 2) })),
  });
}
