/**
 * Load of the provisioning benchmark: many waiting tasks of few shapes, and a market of many types. The question is
 * that of Karpenter's scheduling benchmark: which instances to buy for tasks that came at once.
 */
import { readFileSync } from 'node:fs';
import { randomStream } from '../../lib/kernel/random.ts';
import { mib, milliCpu, seconds, usdPerHour } from '../../lib/kernel/units.ts';
import type { Job } from '../../lib/domain/job.ts';
import { poolKey, type Pool, type PoolView } from '../../lib/domain/pool.ts';
import type { Constraints } from '../../lib/domain/job.ts';
import { builtInCatalogue, TODAY } from '../../lib/market/catalogue.ts';
import { milliCpuIn, vector } from '../../lib/domain/resources.ts';
import { job, needOf, NOW, spec, stage } from '../load/values.ts';

/** Tasks alike: one shape and one kind of constraint. */
export interface TaskClass {
  readonly milliCpu: number;
  readonly memMiB: number;
  readonly kind: Kind;
  readonly tasks: number;
}

export interface Shape {
  readonly name: string;
  readonly milliCpu: number;
  readonly memMiB: number;
  readonly usd: number;
}

const KINDS = ['any', 'zone1', 'zone12', 'od', 'spot'] as const;
export type Kind = (typeof KINDS)[number] | '';
const ZONES = ['zone-1', 'zone-2', 'zone-3'];
/** Requests of Karpenter's benchmark, mCPU and MiB. */
const MILLI_CPUS = [100, 250, 500, 1000, 1500];
const MEM_MIBS = [100, 256, 512, 1024, 2048, 4096];
/** Part of a machine that its system takes. */
const OVERHEAD = { milliCpu: 100, memMiB: 10 };
export const RUNTIME_S = 3600;

export const CONSTRAINTS: Readonly<Record<Kind, Constraints>> = {
  '': {},
  any: {},
  zone1: { zones: [ZONES[0] as string] },
  zone12: { zones: ZONES.slice(0, 2) },
  od: { purchaseOptions: ['on-demand'] },
  spot: { purchaseOptions: ['spot'] },
};

/** Each task draws its shape; kinds take turns. */
export function drawnTasks(tasks: number, seed: number, kinds: boolean): readonly TaskClass[] {
  const draw = randomStream(seed, 'bench/provision/tasks');
  const pick = <T>(of: readonly T[]): T => of[Math.floor(draw() * of.length)] as T;
  const counts = new Map<string, TaskClass & { tasks: number }>();
  for (let i = 0; i < tasks; i++) {
    const of = {
      milliCpu: pick(MILLI_CPUS),
      memMiB: pick(MEM_MIBS),
      kind: kinds ? (KINDS[i % 5] as Kind) : ('' as Kind),
    };
    const key = `${of.milliCpu} ${of.memMiB} ${of.kind}`;
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { ...of, tasks: 1 });
    else known.tasks++;
  }
  return [...counts.values()];
}

/** As many classes as asked for, of different shapes. */
export function manyClasses(classes: number, tasks: number): readonly TaskClass[] {
  const draw = randomStream(1, 'bench/provision/classes');
  return Array.from({ length: classes }, (_, i) => ({
    milliCpu: 100 + Math.floor(draw() * 4000),
    memMiB: 100 + Math.floor(draw() * 16_000),
    kind: KINDS[i % 5] as Kind,
    tasks: Math.max(1, Math.round(tasks / classes)),
  }));
}

/** `[{name, cpu, mem, usd}]`, MiB; requests `{pods: [{cpu, mem, kind}]}`, mCPU and MiB. */
export const shapesIn = (path: string): readonly Shape[] =>
  (JSON.parse(readFileSync(path, 'utf8')) as { name: string; cpu: number; mem: number; usd: number }[]).map(
    ({ name, cpu, mem, usd }) => ({ name, milliCpu: cpu * 1000, memMiB: mem, usd }),
  );

export function tasksIn(path: string): readonly TaskClass[] {
  const { pods } = JSON.parse(readFileSync(path, 'utf8')) as { pods: { cpu: number; mem: number; kind: Kind }[] };
  return [...Map.groupBy(pods, (p) => `${p.cpu} ${p.mem} ${p.kind}`).values()].map((of) => {
    const { cpu, mem, kind } = of[0] as (typeof pods)[number];
    return { milliCpu: cpu, memMiB: mem, kind, tasks: of.length };
  });
}

/** The first x86 types without GPU of the built-in catalogue. */
export function catalogueShapes(count: number): readonly Shape[] {
  const catalogue = builtInCatalogue();
  return catalogue
    .types()
    .flatMap((name): Shape[] => {
      const entry = catalogue.entry(name, TODAY);
      if (entry === null || entry.type.arch !== 'x86_64' || entry.type.capacity.gpus > 0) return [];
      const [cpu, memMiB] = vector(entry.type.capacity);
      return [{ name, milliCpu: cpu, memMiB, usd: Number(entry.onDemandUsdPerHour) }];
    })
    .slice(0, count);
}

/** Karpenter's fake types: i + 1 vCPUs, twice as many GiB, a price linear in both. */
export const fakeShapes = (count: number): readonly Shape[] =>
  Array.from({ length: count }, (_, i) => ({
    name: `fake${i}.large`,
    milliCpu: (i + 1) * 1000,
    memMiB: (i + 1) * 2048,
    usd: 0.1 * (i + 1) + (0.1 * ((i + 1) * 2 * 2 ** 30)) / 1e9,
  }));

/** Every shape in three zones, on demand and on spot. Flat: spot costs as much, and the third zone has none. */
export function poolViews(shapes: readonly Shape[], flat: boolean): readonly PoolView[] {
  return shapes.flatMap((shape, i) =>
    ZONES.flatMap((zone, z): PoolView[] => {
      const spotUsd = flat ? shape.usd : shape.usd * (0.3 + (0.2 * ((i * 7 + z * 13) % 17)) / 16);
      const onDemand = viewOf(shape, { zone, option: 'on-demand', usd: shape.usd });
      return flat && z === 2 ? [onDemand] : [onDemand, viewOf(shape, { zone, option: 'spot', usd: spotUsd })];
    }),
  );
}

function viewOf(
  { name, milliCpu: cpu, memMiB, usd: onDemandUsd }: Shape,
  { zone, option, usd }: Pick<Pool, 'zone' | 'option'> & { readonly usd: number },
): PoolView {
  const family = name.split('.')[0] ?? name;
  const capacity = {
    ...needOf(0, 0),
    cpu: milliCpu(cpu - OVERHEAD.milliCpu),
    memory: mib(memMiB - OVERHEAD.memMiB),
    disk: mib(100_000),
  };
  const type = { name, family, generation: Number(/\d+/.exec(family)?.[0] ?? 0), arch: 'x86_64', capacity } as const;
  const pool: Pool = {
    id: poolKey(name, zone, option),
    type,
    zone,
    option,
    onDemandUsdPerHour: usdPerHour(onDemandUsd),
  };
  return { pool, quote: usdPerHour(usd), open: true, closedReason: null };
}

/** A job for each class, or for each task. */
export function jobsOf(classes: readonly TaskClass[], single: boolean): readonly Job[] {
  let n = 0;
  const submitted = (of: TaskClass, tasks: number): Job => {
    const id = `j${String(n++).padStart(6, '0')}`;
    const resources = { ...needOf(0, of.memMiB), cpu: milliCpu(of.milliCpu) };
    const only = stage({ tasks, resources, constraints: CONSTRAINTS[of.kind], expectedRuntimeS: seconds(RUNTIME_S) });
    return job(id, { spec: spec({ name: id, stages: [only] }), submittedMs: NOW });
  };
  return classes.flatMap((of) =>
    single ? Array.from({ length: of.tasks }, () => submitted(of, 1)) : [submitted(of, of.tasks)],
  );
}

export const vcpusOfTasks = (jobs: readonly Job[]): number =>
  jobs.reduce((sum, j) => sum + j.spec.stages.reduce((n, s) => n + (s.tasks * milliCpuIn(s.resources)) / 1000, 0), 0);
