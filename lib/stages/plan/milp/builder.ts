import type { Milp } from '../../../policy/solver.ts';

/** A linear expression over columns. */
export interface Terms {
  readonly column: readonly number[];
  readonly coefficient: readonly number[];
}

export interface ColumnSpec {
  readonly lower: number;
  readonly upper: number;
  readonly integer: boolean;
  readonly name: () => string;
}

/** Collects columns and rows of a model; names are made only when somebody asks for them. */
export class MilpBuilder {
  readonly #objective: number[] = [];
  readonly #lower: number[] = [];
  readonly #upper: number[] = [];
  readonly #integer: number[] = [];
  readonly #columnNames: (() => string)[] = [];
  readonly #rowLower: number[] = [];
  readonly #rowUpper: number[] = [];
  readonly #rowStart: number[] = [0];
  readonly #index: number[] = [];
  readonly #coefficient: number[] = [];
  readonly #rowNames: (() => string)[] = [];

  column(spec: ColumnSpec): number {
    this.#objective.push(0);
    this.#lower.push(spec.lower);
    this.#upper.push(spec.upper);
    this.#integer.push(spec.integer ? 1 : 0);
    this.#columnNames.push(spec.name);
    return this.#objective.length - 1;
  }

  upperOf(column: number): number {
    return this.#upper[column] ?? 0;
  }

  addObjective(terms: Terms): void {
    terms.column.forEach((column, i) => {
      this.#objective[column] = (this.#objective[column] ?? 0) + (terms.coefficient[i] ?? 0);
    });
  }

  /** lower <= terms <= upper. A column may occur once. */
  row(terms: Terms, lower: number, upper: number, name: () => string): void {
    for (let i = 0; i < terms.column.length; i++) {
      this.#index.push(terms.column[i] ?? 0);
      this.#coefficient.push(terms.coefficient[i] ?? 0);
    }
    this.#rowStart.push(this.#index.length);
    this.#rowLower.push(lower);
    this.#rowUpper.push(upper);
    this.#rowNames.push(name);
  }

  build(name: string): Milp {
    const columnNames = this.#columnNames;
    const rowNames = this.#rowNames;
    return {
      name,
      columns: this.#objective.length,
      rows: this.#rowLower.length,
      objective: Float64Array.from(this.#objective),
      columnLower: Float64Array.from(this.#lower),
      columnUpper: Float64Array.from(this.#upper),
      integer: Uint8Array.from(this.#integer),
      rowLower: Float64Array.from(this.#rowLower),
      rowUpper: Float64Array.from(this.#rowUpper),
      rowStart: Int32Array.from(this.#rowStart),
      columnIndex: Int32Array.from(this.#index),
      coefficient: Float64Array.from(this.#coefficient),
      columnName: (column) => sanitise(columnNames[column]?.() ?? `x${column}`),
      rowName: (row) => sanitise(rowNames[row]?.() ?? `r${row}`),
    };
  }
}

/** LP format: letters, digits, `_` and `.`; at most 255 characters; must not look like a number. */
const sanitise = (name: string): string => name.replace(/[^A-Za-z0-9_.]/g, '_').slice(0, 250);
