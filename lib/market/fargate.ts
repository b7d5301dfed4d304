/**
 * AWS Fargate as pools of a market: each valid size of a task is an instance type `fargate.CPUxMEMORY`, in ECS units of
 * CPU (1024 are a vCPU) and MiB, bought on demand. A task pays for its size, not for what it uses. Only the preset
 * `fargate` buys these (FARGATE in lib/domain/pool.ts). Storage up to 20 GB is free and is all that a task has.
 */
import { EbbError } from '../kernel/errors.ts';
import { epochMs, mib, milliCpu, raw, usdPerHour, type EpochMs } from '../kernel/units.ts';
import { FARGATE, poolKey, type InstanceType, type Pool } from '../domain/pool.ts';
import { withPools, type MarketTrace } from './trace.ts';

/** Prices of Linux on x86 in us-east-1, per hour. */
interface PriceList {
  readonly sinceMs: number;
  readonly usdPerVcpu: number;
  readonly usdPerGb: number;
}

/**
 * AWS News Blog, "Introducing AWS Fargate", 29 November 2017; AWS Compute Blog, "AWS Fargate Price Reduction", 7
 * January 2019. The latter prices are those of https://aws.amazon.com/fargate/pricing/ in June 2026.
 */
const PRICE_LISTS: readonly PriceList[] = [
  { sinceMs: Date.UTC(2019, 0, 7), usdPerVcpu: 0.04048, usdPerGb: 0.004445 },
  { sinceMs: Date.UTC(2017, 10, 29), usdPerVcpu: 0.0506, usdPerGb: 0.0127 },
];

const GB = 1024;
/**
 * Memory that goes with each CPU size: from, to and step in GB (Amazon ECS Developer Guide, "Fargate task definition
 * considerations", June 2026).
 */
const SIZES: readonly (readonly [cpu: number, fromGb: number, toGb: number, stepGb: number])[] = [
  [256, 0.5, 0.5, 1],
  [256, 1, 2, 1],
  [512, 1, 4, 1],
  [1024, 2, 8, 1],
  [2048, 4, 16, 1],
  [4096, 8, 30, 1],
  [8192, 16, 60, 4],
  [16384, 32, 120, 8],
];
const STORAGE_MIB = Math.floor(20e9 / 2 ** 20);

/** The valid sizes, smallest CPU first. */
const fargateTypes = (): readonly InstanceType[] =>
  SIZES.flatMap(([cpu, fromGb, toGb, stepGb]) =>
    Array.from({ length: Math.floor((toGb - fromGb) / stepGb) + 1 }, (_, i) => {
      const memory = (fromGb + i * stepGb) * GB;
      return {
        name: `${FARGATE}.${cpu}x${memory}`,
        family: FARGATE,
        generation: 0,
        arch: 'x86_64',
        capacity: { cpu: milliCpu((cpu * 1000) / 1024), memory: mib(memory), gpus: 0, disk: mib(STORAGE_MIB) },
      } satisfies InstanceType;
    }),
  );

/** The price list in force; before the first one, the first one. */
const pricesAt = (at: EpochMs): PriceList =>
  PRICE_LISTS.find((list) => list.sinceMs <= raw(at)) ?? (PRICE_LISTS.at(-1) as PriceList);

/** Pools of a zone, priced at that time. */
export function fargatePools(zone: string, at: EpochMs): readonly Pool[] {
  const { usdPerVcpu, usdPerGb } = pricesAt(at);
  return fargateTypes().map((type) => {
    const usd = (usdPerVcpu * raw(type.capacity.cpu)) / 1000 + (usdPerGb * raw(type.capacity.memory)) / GB;
    return {
      id: poolKey(type.name, zone, 'on-demand'),
      type,
      zone,
      option: 'on-demand',
      // Published to the millionth of a dollar.
      onDemandUsdPerHour: usdPerHour(Math.round(usd * 1e6) / 1e6),
    };
  });
}

/** True if it buys Fargate's sizes and no instances: it needs a market with Fargate. */
export function buysFargateAlone({ buys }: { readonly buys?: (pool: Pool) => boolean }): boolean {
  const [size] = fargatePools('us-east-1a', epochMs(0));
  if (buys === undefined || size === undefined || !buys(size)) return false;
  const instance: Pool = { ...size, type: { ...size.type, name: 'm5.large', family: 'm5', generation: 5 } };
  return !(['on-demand', 'spot', 'reserved'] as const).some((option) => buys({ ...instance, option }));
}

/** Throws `usage` for a preset that buys Fargate alone, where there are instances only. */
export function expectInstances(preset: string, stages: Parameters<typeof buysFargateAlone>[0]): void {
  if (!buysFargateAlone(stages)) return;
  throw new EbbError('usage', {
    what: `the preset ${preset} buys AWS Fargate, which only simulations have`,
    got: preset,
    allowed: 'presets that buy instances; `ebb config --presets` lists them',
    next: `choose another preset, or try ${preset} with \`ebb simulate --preset ${preset}\``,
  });
}

/** The market with Fargate in the first of its zones, priced as at its begin. */
export function withFargate(trace: MarketTrace): MarketTrace {
  const [zone] = trace.pools.map((p) => p.zone).sort();
  if (zone === undefined) return trace;
  const pools = fargatePools(zone, trace.startMs);
  return withPools(trace, new Map(pools.map((pool) => [pool, raw(pool.onDemandUsdPerHour)])));
}

/** The market that a preset needs: one with Fargate where it buys nothing else. */
export const marketOfPreset = (trace: MarketTrace, stages: Parameters<typeof buysFargateAlone>[0]): MarketTrace =>
  buysFargateAlone(stages) ? withFargate(trace) : trace;
