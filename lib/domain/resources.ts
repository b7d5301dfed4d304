import { add, isPositive, mib, milliCpu, ratio, raw, sub, type MiB, type MilliCpu } from '../kernel/units.ts';

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

/** Plain number of thousandths of a vCPU, as sums over groups and limits count them. */
export const milliCpuIn = ({ cpu }: Pick<Resources, 'cpu'>): number => raw(cpu);

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
  cpu: add(a.cpu, b.cpu),
  memory: add(a.memory, b.memory),
  gpus: a.gpus + b.gpus,
  disk: add(a.disk, b.disk),
});

export const minusResources = (a: Resources, b: Resources): Resources => ({
  cpu: sub(a.cpu, b.cpu),
  memory: sub(a.memory, b.memory),
  gpus: a.gpus - b.gpus,
  disk: sub(a.disk, b.disk),
});

/** Units of the kinds, for people. */
const UNITS: Readonly<Record<(typeof RESOURCE_KINDS)[number], string>> = {
  cpu: ' mCPU',
  memory: ' MiB',
  gpus: '',
  disk: ' MiB',
};

/** First kind of which there is too little, for people: `disk (20000 MiB needed, 8000 MiB there)`. Null: all fits. */
export function lackText(need: Resources, there: Resources): string | null {
  const has = vector(there);
  const kind = vector(need).findIndex((amount, i) => amount > (has[i] ?? 0));
  const name = RESOURCE_KINDS[kind];
  if (name === undefined) return null;
  const amount = (of: Resources): string => `${Math.floor(vector(of)[kind] ?? 0)}${UNITS[name]}`;
  return `${name} (${amount(need)} needed, ${amount(there)} there)`;
}

/** Free resources, mutable while packing. */
export type Filling = { -readonly [K in keyof Resources]: Resources[K] };

/** `minusResources`, in place. */
export function takeFrom(free: Filling, { cpu, memory, gpus, disk }: Resources): void {
  free.cpu = sub(free.cpu, cpu);
  free.memory = sub(free.memory, memory);
  free.gpus -= gpus;
  free.disk = sub(free.disk, disk);
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
  isWithin(need.cpu, free.cpu) &&
  isWithin(need.memory, free.memory) &&
  need.gpus <= free.gpus + SLACK &&
  isWithin(need.disk, free.disk);

/** Rounding error that sums of fractions may have. */
export const SLACK = 1e-6;

const isWithin = <Q extends MilliCpu | MiB>(need: Q, free: Q): boolean => raw(need) <= raw(free) + SLACK;

/** Number of times that `need` fits into `free`. */
export const countFits = (need: Resources, free: Resources): number =>
  Math.max(
    0,
    Math.min(
      countOf(need.cpu, free.cpu),
      countOf(need.memory, free.memory),
      need.gpus > 0 ? wholesIn(free.gpus / need.gpus) : Infinity,
      countOf(need.disk, free.disk),
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

const wholesIn = (times: number): number => Math.floor(times + 1e-9);
const countOf = <Q extends MilliCpu | MiB>(need: Q, free: Q): number =>
  isPositive(need) ? wholesIn(ratio(free, need)) : Infinity;

/**
 * Dominant share: the largest fraction of `capacity` that `need` takes, over all resources. Costs are attributed by it.
 */
export const dominantShare = (need: Resources, capacity: Resources): number =>
  Math.max(
    amountShare(need.cpu, capacity.cpu),
    amountShare(need.memory, capacity.memory),
    shareOf(need.gpus, capacity.gpus),
    amountShare(need.disk, capacity.disk),
  );

const shareOf = (need: number, capacity: number): number => (need === 0 ? 0 : need / Math.max(capacity, 1e-12));
const amountShare = <Q extends MilliCpu | MiB>(need: Q, capacity: Q): number => shareOf(raw(need), raw(capacity));
