/**
 * Throughput of pairs of programs on one machine, as Eva measured them on EC2 (EuroSys 2025), and the contention model
 * fitted to them. The measurements are read from the data sets, and never copied.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { levenbergMarquardt } from 'ml-levenberg-marquardt';
import type { Transfers } from '../../lib/domain/load.ts';
import { contended, type Machine, type TaskLoad } from '../../lib/drivers/sim/interference/contention.ts';

export interface Pairs {
  readonly programs: readonly string[];
  /** Throughput of the row's program beside the column's, over that alone; null: not measured. */
  readonly throughput: readonly (readonly (number | null)[])[];
}

export const PAIRS_FOLDER = 'colocation-interference';

export function readPairs(data: string): Pairs {
  const text = readFileSync(join(data, PAIRS_FOLDER, 'contention_matrix.csv'), 'utf8');
  const [head = [], ...rows] = parse(text, { relax_column_count: true, trim: true });
  const nameOf = (cell: string): string => cell.replace(/_node0$/, '');
  return {
    programs: head.slice(1).map(nameOf),
    throughput: rows.map((row) => row.slice(1).map((cell) => (cell === 'x' ? null : Number(cell)))),
  };
}

/** A machine of which each program has half. */
const HALVED: Machine = {
  vcpus: 2,
  most: { diskRead: 1, diskWritten: 1, netReceived: 1, netSent: 1 },
  seek: 0,
};
const NOTHING: Transfers = { diskRead: 0, diskWritten: 0, netReceived: 0, netSent: 0 };
/** Parameters of a program: demand for memory bandwidth and for the disk, and the parts of its time bound to each. */
const PER_PROGRAM = 4;

const loadOf = ([memory = 0, disk = 0, boundMemory = 0, boundDisk = 0]: readonly number[]): TaskLoad => {
  const bound = Math.max(1, boundMemory + boundDisk);
  return {
    vcpus: 1,
    memory,
    transfers: { ...NOTHING, diskRead: disk },
    bound: { cpu: 0, net: 0, memory: boundMemory / bound, disk: boundDisk / bound },
  };
};

const paceBeside = (me: TaskLoad, other: TaskLoad): number => contended([me, other], HALVED).paces[0] ?? 1;

export interface Fitted {
  readonly loads: ReadonlyMap<string, TaskLoad>;
  /** Root of the mean squared error of the throughputs, and that of their mean alone. */
  readonly rmse: number;
  readonly spread: number;
  readonly measured: number;
}

/** Two scarce devices for each program, by least squares (Levenberg and Marquardt). Deterministic. */
export function fitted({ programs, throughput }: Pairs): Fitted {
  const known = throughput.flatMap((row, i) => row.flatMap((y, j) => (y === null ? [] : [{ i, j, y }])));
  const programOf = (all: ArrayLike<number>, i: number): TaskLoad =>
    loadOf(Array.from({ length: PER_PROGRAM }, (_, k) => all[i * PER_PROGRAM + k] ?? 0));
  const model = (all: ArrayLike<number>) => (n: number) => {
    const { i, j } = known[Math.round(n)] ?? { i: 0, j: 0 };
    return paceBeside(programOf(all, i), programOf(all, j));
  };
  const size = programs.length * PER_PROGRAM;
  const constant = (value: number): number[] => Array.from({ length: size }, () => value);
  const { parameterValues } = levenbergMarquardt(
    { x: known.map((_, n) => n), y: known.map(({ y }) => y) },
    (all: number[]) => model(all),
    {
      // Different from program to program, so that no two devices and no two programs stay alike.
      initialValues: Array.from({ length: size }, (_, n) => 0.35 + 0.3 * ((n * 0.618034) % 1)),
      minValues: constant(0),
      maxValues: constant(1),
      gradientDifference: 0.02,
      centralDifference: true,
      damping: 0.1,
      maxIterations: 100,
    },
  );
  const predict = model(parameterValues);
  const mean = known.reduce((sum, { y }) => sum + y, 0) / known.length;
  const root = (error: (y: number, n: number) => number): number =>
    Math.sqrt(known.reduce((sum, { y }, n) => sum + error(y, n) ** 2, 0) / known.length);
  return {
    loads: new Map(programs.map((name, i) => [name, programOf(parameterValues, i)])),
    rmse: root((y, n) => y - predict(n)),
    spread: root((y) => y - mean),
    measured: known.length,
  };
}
