/**
 * Machines of the user's own as a market: per kind and rack a reserved pool of as many instances as there are machines.
 * They are up at once, are never taken away, and cost what their owner says, by default nothing.
 */
import { parse } from 'yaml';
import { z } from 'zod';
import type { SchedulerConfig } from '../domain/config.ts';
import { ALLOWED_CPU, ALLOWED_SIZE, parseCpu, parseSize } from '../domain/job-file/amounts.ts';
import { LABEL_KEY, LABEL_TEXT } from '../domain/labels.ts';
import { poolKey, vcpusOf, type Pool } from '../domain/pool.ts';
import { EbbError, type Issue } from '../kernel/errors.ts';
import { epochMs, mib, raw, usdPerHour, vcpusIn } from '../kernel/units.ts';
import { EBS_VOLUME_GIB } from './catalogue.ts';
import { withPools, type MarketTrace } from './trace.ts';

/** Most machines, kinds and racks: every pool is looked at in every decision. */
const MOST_MACHINES = 100_000;
const MOST_KINDS = 64;
const MOST_RACKS = 1000;
const MOST_POOLS = 2000;

/** Lasts from before the first to after the last job: it has no prices that begin or end. */
const START_MS = Date.UTC(2000, 0, 1);
const END_MS = Date.UTC(2100, 0, 1);

/**
 * List price that bills are compared with, and that worths follow from: AWS Fargate's per vCPU and GiB
 * (lib/market/fargate.ts), and per GPU what a g4dn.xlarge costs beyond them.
 */
const LIST_USD = { vcpu: 0.04048, gib: 0.004445, gpu: 0.293 };

const amount = <T>(parsed: (value: string | number) => T | null, allowed: string) =>
  z.union([z.number(), z.string()]).transform((value, context): T => {
    const found = parsed(value);
    if (found !== null) return found;
    context.issues.push({ code: 'custom', message: `must be ${allowed}`, input: value });
    return z.NEVER;
  });
const sizeOf = (least: number) => (value: string | number) => {
  const size = parseSize(String(value));
  return size !== null && raw(size) >= least && raw(size) <= 2 ** 30 ? size : null;
};

const kindSchema = z.strictObject({
  cpu: amount((v) => {
    const cpu = parseCpu(v);
    return cpu !== null && raw(cpu) >= 1 && raw(cpu) <= 10_000_000 ? cpu : null;
  }, `${ALLOWED_CPU}, from 1m to 10000`),
  memory: amount(sizeOf(1), `${ALLOWED_SIZE}, from 1MiB to 1024TiB`),
  disk: amount(sizeOf(0), ALLOWED_SIZE).default(mib(EBS_VOLUME_GIB * 1024)),
  gpu: z.int().min(0).max(64).default(0),
  arch: z.enum(['x86_64', 'arm64']).default('x86_64'),
  rack: z.int().min(1).max(MOST_RACKS).default(1),
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be lower-case letters, digits and dashes, a letter first, at most 32')
    .optional(),
  labels: z
    .record(z.string().regex(LABEL_KEY, LABEL_TEXT), z.union([z.string(), z.number(), z.boolean()]).transform(String))
    .default({}),
  usdPerHour: z.number().nonnegative().max(1e6).default(0),
});

/** Machines that are alike. */
export interface MachineKind extends Omit<z.output<typeof kindSchema>, 'name'> {
  readonly count: number;
  readonly name: string;
}

/** Example for messages. */
const EXAMPLE = '256x{cpu: 4, memory: 16GiB, rack: 8}';

/**
 * Machines from a text: `COUNTx{cpu: .., memory: ..}`, several joined by `+`. Other keys: `gpu`, `disk`, `arch`,
 * `rack` (number of racks), `name`, `labels`, `usdPerHour`. Throws `usage`, all findings at once.
 */
export function parseCluster(text: string): readonly MachineKind[] {
  const parts = partsOf(text);
  const issues: Issue[] = [];
  const kinds = parts.flatMap((part, i): MachineKind[] => {
    const [count, given] = partOf(part, issues);
    const parsed = kindSchema.safeParse(given);
    if (parsed.success) {
      const { name = parts.length === 1 ? 'machine' : `machine-${i + 1}`, ...of } = parsed.data;
      if (of.rack > count) issues.push({ at: name, message: `${of.rack} racks for ${count} machines` });
      return [{ ...of, name, count }];
    }
    if (given !== null)
      for (const { path, message } of parsed.error.issues) issues.push({ at: [part, ...path].join(' '), message });
    return [];
  });
  issues.push(...sumIssues(kinds));
  if (issues.length === 0) return kinds;
  throw new EbbError('usage', {
    what: '--cluster does not describe machines',
    got: text,
    issues,
    allowed: 'COUNTx{cpu, memory, gpu, disk, arch, rack, name, labels, usdPerHour}, several joined by +',
    next: `e.g. --cluster '${EXAMPLE}'`,
  });
}

/** The text at each `+` outside of braces. */
function partsOf(text: string): readonly string[] {
  const parts: string[] = [];
  let [depth, from] = [0, 0];
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '{') depth++;
    else if (c === '}') depth--;
    else if (c === '+' && depth === 0) {
      parts.push(text.slice(from, i).trim());
      from = i + 1;
    }
  }
  return [...parts, text.slice(from).trim()];
}

function partOf(part: string, issues: Issue[]): readonly [count: number, given: unknown] {
  const [, digits = '', braces = ''] = /^(\d{1,9})\s*x\s*(\{.*\})$/s.exec(part) ?? [];
  const count = Number(digits);
  if (braces === '' || count < 1) {
    issues.push({ at: part, message: `must be like ${EXAMPLE}` });
    return [0, null];
  }
  try {
    return [count, parse(braces, { maxAliasCount: 0 }) as unknown];
  } catch (error) {
    issues.push({ at: part, message: `its braces cannot be read: ${String((error as Error).message).split('\n')[0]}` });
    return [0, null];
  }
}

function sumIssues(kinds: readonly MachineKind[]): readonly Issue[] {
  const sum = (of: (kind: MachineKind) => number): number => kinds.reduce((n, kind) => n + of(kind), 0);
  const names = new Set(kinds.map((k) => k.name));
  const over = (what: string, n: number, most: number): Issue[] =>
    n > most ? [{ at: what, message: `${n} are more than the ${most} that are possible` }] : [];
  return [
    ...over(
      'machines',
      sum((k) => k.count),
      MOST_MACHINES,
    ),
    ...over('kinds of machines', kinds.length, MOST_KINDS),
    ...over(
      'kinds x racks',
      sum((k) => k.rack),
      MOST_POOLS,
    ),
    ...(names.size < kinds.length ? [{ at: 'name', message: 'two kinds of machines share a name' }] : []),
  ];
}

/** Pools of a cluster with their prices, one for each kind and rack; machines are spread evenly over the racks. */
function poolsOf(kinds: readonly MachineKind[]): ReadonlyMap<Pool, number> {
  const pools = new Map<Pool, number>();
  for (const { count, name, cpu, memory, disk, gpu, arch, rack: racks, labels, usdPerHour: price } of kinds) {
    const type = { name, family: name, generation: 0, arch, capacity: { cpu, memory, gpus: gpu, disk } };
    const listUsd = LIST_USD.vcpu * vcpusIn(cpu) + (LIST_USD.gib * raw(memory)) / 1024 + LIST_USD.gpu * gpu;
    for (let r = 0; r < racks; r++) {
      const zone = `rack-${r + 1}`;
      const pool: Pool = {
        id: poolKey(name, zone, 'reserved'),
        type,
        zone,
        option: 'reserved',
        onDemandUsdPerHour: usdPerHour(Math.round(listUsd * 1e6) / 1e6),
        reservedInstances: Math.floor(count / racks) + (r < count % racks ? 1 : 0),
        labels: { rack: zone, machine: name, ...labels },
        isOwn: true,
      };
      pools.set(pool, price);
    }
  }
  return pools;
}

/** vCPUs of all machines of the user's own. */
export const ownVcpus = ({ pools }: Pick<MarketTrace, 'pools'>): number =>
  pools.reduce((sum, p) => sum + (p.isOwn === true ? vcpusOf(p) * (p.reservedInstances ?? 0) : 0), 0);

/**
 * A market with a described cluster beside it; null: the cluster alone, from the year 2000 to 2100.  Throws `usage`.
 */
export function marketWithCluster(trace: MarketTrace | null, cluster: string): MarketTrace {
  const kinds = parseCluster(cluster);
  return trace === null ? clusterMarket(kinds) : withCluster(trace, kinds);
}

/** True for a market in which everything is the user's own. */
export const isOwnAlone = ({ pools }: Pick<MarketTrace, 'pools'>): boolean => pools.every((p) => p.isOwn === true);

/** Settings that follow from such a market: nothing is waited for until it is up. */
export const settingsOfCluster = (
  trace: Pick<MarketTrace, 'pools'>,
): Partial<Pick<SchedulerConfig, 'startDelayMeanS' | 'startDelayMaxS'>> =>
  isOwnAlone(trace) ? { startDelayMeanS: 0, startDelayMaxS: 0 } : {};

/** The cluster as a market of its own. */
const clusterMarket = (kinds: readonly MachineKind[]): MarketTrace => withCluster(NO_MARKET, kinds);

/** A market with the cluster beside it. */
const withCluster = (trace: MarketTrace, kinds: readonly MachineKind[]): MarketTrace =>
  withPools(trace, poolsOf(kinds));

const NO_MARKET: MarketTrace = {
  name: 'cluster',
  startMs: epochMs(START_MS),
  endMs: epochMs(END_MS),
  pools: [],
  prices: () => ({ atMs: new Float64Array(), usdPerHour: new Float64Array() }),
  availability: () => null,
};
