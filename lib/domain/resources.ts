import { mib, milliCpu, raw, type MiB, type MilliCpu } from '../kernel/units.ts';

/** What a task needs, or an instance has. */
export interface Resources {
  readonly cpu: MilliCpu;
  readonly memory: MiB;
  readonly gpus: number;
  readonly disk: MiB;
}

/** Order of the kinds wherever resources are a vector. */
export const RESOURCE_KINDS = ['cpu', 'memory', 'gpus', 'disk'] as const;

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

export const times = (r: Resources, n: number): Resources => fromVector(vector(r).map((x) => x * n));

export function plusResources(a: Resources, b: Resources): Resources {
  const y = vector(b);
  return fromVector(vector(a).map((x, i) => x + (y[i] ?? 0)));
}

export function minusResources(a: Resources, b: Resources): Resources {
  const y = vector(b);
  return fromVector(vector(a).map((x, i) => x - (y[i] ?? 0)));
}

/** Whether `need` fits into `free` (with room for rounding of fractions). */
export function fits(need: Resources, free: Resources): boolean {
  const f = vector(free);
  return vector(need).every((x, i) => x <= (f[i] ?? 0) + 1e-6);
}

/** How many of `need` fit into `free` at once. */
export function countFits(need: Resources, free: Resources): number {
  const f = vector(free);
  let count = Infinity;
  vector(need).forEach((x, i) => {
    if (x > 0) count = Math.min(count, Math.floor((f[i] ?? 0) / x + 1e-9));
  });
  return Math.max(0, count);
}

/** Largest fraction that `need` takes of `capacity` over all kinds: the dominant share, by which costs are attributed. */
export function dominantShare(need: Resources, capacity: Resources): number {
  const c = vector(capacity);
  return Math.max(...vector(need).map((x, i) => (x === 0 ? 0 : x / Math.max(c[i] ?? 0, 1e-12))));
}
