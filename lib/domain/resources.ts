import { mib, milliCpu, raw, type MiB, type MilliCpu } from '../kernel/units.ts';

/** Needs of a task, or capacity of an instance. */
export interface Resources {
  readonly cpu: MilliCpu;
  readonly memory: MiB;
  readonly gpus: number;
  readonly disk: MiB;
}

/** Order of resources in vectors. */
export const RESOURCE_KINDS = ['cpu', 'memory', 'gpus', 'disk'] as const;

/** How many kinds there are: the stride of tables of vectors. */
export const KINDS = RESOURCE_KINDS.length;

export const NO_RESOURCES: Resources = { cpu: milliCpu(0), memory: mib(0), gpus: 0, disk: mib(0) };

/** As numbers in the order of RESOURCE_KINDS (mCPU, MiB, count, MiB): for hot loops. */
export const vector = (r: Resources): readonly [number, number, number, number] => [
  raw(r.cpu),
  raw(r.memory),
  r.gpus,
  raw(r.disk),
];

export const fromVector = (v: readonly number[]): Resources => ({
  cpu: milliCpu(v[0] ?? 0),
  memory: mib(v[1] ?? 0),
  gpus: v[2] ?? 0,
  disk: mib(v[3] ?? 0),
});

/** A new resource vector, kind by kind. */
const zip = (a: Resources, b: Resources, of: (a: number, b: number) => number): Resources => {
  const other = vector(b);
  return fromVector(vector(a).map((x, kind) => of(x, other[kind] ?? 0)));
};
/** The larger amount of each kind. */
export const mostOfEach = (a: Resources, b: Resources): Resources => zip(a, b, (x, y) => Math.max(x, y));
/** The smaller amount of each kind. */
export const leastOfEach = (a: Resources, b: Resources): Resources => zip(a, b, (x, y) => Math.min(x, y));

export const times = (r: Resources, n: number): Resources => fromVector(vector(r).map((x) => x * n));

// Resources are named only here, and written out: these functions run for every attempt in every cycle.
export const plusResources = (a: Resources, b: Resources): Resources => ({
  cpu: milliCpu(raw(a.cpu) + raw(b.cpu)),
  memory: mib(raw(a.memory) + raw(b.memory)),
  gpus: a.gpus + b.gpus,
  disk: mib(raw(a.disk) + raw(b.disk)),
});

export const minusResources = (a: Resources, b: Resources): Resources => ({
  cpu: milliCpu(raw(a.cpu) - raw(b.cpu)),
  memory: mib(raw(a.memory) - raw(b.memory)),
  gpus: a.gpus - b.gpus,
  disk: mib(raw(a.disk) - raw(b.disk)),
});

/** Free resources, mutable while packing. */
export type Filling = { -readonly [K in keyof Resources]: Resources[K] };

/** `minusResources`, in place. */
export function takeFrom(free: Filling, { cpu, memory, gpus, disk }: Resources): void {
  free.cpu = milliCpu(raw(free.cpu) - raw(cpu));
  free.memory = mib(raw(free.memory) - raw(memory));
  free.gpus -= gpus;
  free.disk = mib(raw(free.disk) - raw(disk));
}

/** Adds the kinds to those of `rows` from `at` on: for sums and tables in one array. */
export function addInto(rows: Float64Array, at: number, { cpu, memory, gpus, disk }: Resources): void {
  rows[at] = (rows[at] as number) + raw(cpu);
  rows[at + 1] = (rows[at + 1] as number) + raw(memory);
  rows[at + 2] = (rows[at + 2] as number) + gpus;
  rows[at + 3] = (rows[at + 3] as number) + raw(disk);
}

/** As `fits`, of the kinds in `rows` from `at` on. */
export const fitsFrom = (rows: Float64Array, at: number, free: Resources): boolean =>
  (rows[at] as number) <= raw(free.cpu) + SLACK &&
  (rows[at + 1] as number) <= raw(free.memory) + SLACK &&
  (rows[at + 2] as number) <= free.gpus + SLACK &&
  (rows[at + 3] as number) <= raw(free.disk) + SLACK;

/** True if `need` fits into `free`, with a tolerance for rounding of fractions. */
export const fits = (need: Resources, free: Resources): boolean =>
  raw(need.cpu) <= raw(free.cpu) + SLACK &&
  raw(need.memory) <= raw(free.memory) + SLACK &&
  need.gpus <= free.gpus + SLACK &&
  raw(need.disk) <= raw(free.disk) + SLACK;

/** What sums of fractions may be off by. */
export const SLACK = 1e-6;

/** Number of times that `need` fits into `free`. */
export const countFits = (need: Resources, free: Resources): number =>
  Math.max(
    0,
    Math.min(
      countOf(raw(need.cpu), raw(free.cpu)),
      countOf(raw(need.memory), raw(free.memory)),
      countOf(need.gpus, free.gpus),
      countOf(raw(need.disk), raw(free.disk)),
    ),
  );

/** As `countFits`, of vectors; 0 where nothing is needed. */
export function countInVector(need: readonly number[], free: readonly number[]): number {
  let count = Infinity;
  for (let k = 0; k < KINDS; k++) {
    const n = need[k] ?? 0;
    if (n > 0) count = Math.min(count, Math.floor(((free[k] ?? 0) + SLACK) / n));
  }
  return count === Infinity ? 0 : Math.max(0, count);
}

/** Machines of this capacity that hold the sum of needs, were it divisible. */
export const machinesFor = (sum: ArrayLike<number>, capacity: Resources): number =>
  vector(capacity).reduce((most, c, k) => Math.max(most, c > 0 ? Math.ceil((sum[k] ?? 0) / c - 1e-9) : 0), 0);

const countOf = (need: number, free: number): number => (need > 0 ? Math.floor(free / need + 1e-9) : Infinity);

/**
 * Dominant share: the largest fraction of `capacity` that `need` takes, over all resources. Costs are attributed by it.
 */
export const dominantShare = (need: Resources, capacity: Resources): number =>
  Math.max(
    shareOf(raw(need.cpu), raw(capacity.cpu)),
    shareOf(raw(need.memory), raw(capacity.memory)),
    shareOf(need.gpus, capacity.gpus),
    shareOf(raw(need.disk), raw(capacity.disk)),
  );

const shareOf = (need: number, capacity: number): number => (need === 0 ? 0 : need / Math.max(capacity, 1e-12));
