import { schedulerConfig, type SchedulerConfig } from '../../lib/domain/config.ts';
import { poolParts } from '../../lib/domain/pool.ts';
import { poolId, type JobId } from '../../lib/kernel/ids.ts';
import { epochMs, raw, seconds } from '../../lib/kernel/units.ts';
import { marketOfPreset } from '../../lib/market/fargate.ts';
import { traceOf, type SpotMarket } from '../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import type { Deciders } from '../../lib/drivers/sim/simulation.ts';
import type { Solver } from '../../lib/policy/solver.ts';
import type { EventRecord } from '../../lib/ports/store.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { noSolver } from '../../bench/load/no-solver.ts';
import { pool } from './builders.ts';
import { after, START_MS } from './mixed-workload.ts';
import { simulated } from './simulated.ts';

/** Small jobs in a simulation, and what became of them, from its events. Times in seconds of the workload. */

const DAY_MS = 86_400_000;

interface Zone {
  readonly name?: string;
  readonly usdPerHour?: number;
  readonly onDemandUsdPerHour?: number;
  /** When there is no spot capacity. */
  readonly outages?: readonly (readonly [number, number])[];
}

/** Machines of 4 vCPUs: in each zone a spot pool and an on-demand pool of 0.17 USD per hour. */
export function zones(...all: readonly Zone[]): MarketTrace {
  const startMs = raw(START_MS) - DAY_MS;
  const markets = all.map((zone): SpotMarket => {
    const { name = 'a', usdPerHour: price = 0.05, onDemandUsdPerHour = 0.17, outages = [] } = zone;
    const steps = outages.flatMap(([from, until]) => [[raw(after(from)), 0] as const, [raw(after(until)), 1] as const]);
    const up = [[startMs, 1] as const, ...steps];
    return {
      type: pool().type,
      zone: name,
      onDemandUsdPerHour,
      prices: { atMs: Float64Array.of(startMs), usdPerHour: Float64Array.of(price) },
      availability: {
        atMs: Float64Array.from(up, ([at]) => at),
        available: Uint8Array.from(up, ([, is]) => is),
      },
    };
  });
  return traceOf({ name: 'zones', startMs: epochMs(startMs), endMs: epochMs(raw(START_MS) + 2 * DAY_MS) }, markets);
}

/** One attempt of a task. */
export interface Stay {
  readonly job: string;
  readonly index: number;
  readonly instance: string;
  readonly option: string;
  readonly zone: string;
  readonly fromS: number;
  readonly untilS: number;
  /** `succeeded`, `interrupted`, `preempted`, `moved`; `runs` where the simulation ended first. */
  readonly end: string;
}

export interface Bought {
  readonly instance: string;
  readonly type: string;
  readonly option: string;
  readonly zone: string;
  readonly atS: number;
}

export interface Run {
  /** In the order of their starts. */
  readonly stays: readonly Stay[];
  readonly bought: readonly Bought[];
  /** Names of the jobs that succeeded after their deadline. */
  readonly late: ReadonlySet<string>;
}

export const staysOf = ({ stays }: Run, job: string): readonly Stay[] => stays.filter((s) => s.job === job);

export interface Setting {
  readonly jobs: readonly WorkloadJob[];
  readonly trace: MarketTrace;
  readonly vcpus?: number;
  readonly config?: Partial<SchedulerConfig>;
  readonly solver?: Solver;
  /** Least time between two decisions, seconds. */
  readonly minGapS?: number;
  /** True: some work may wait for ever. */
  readonly mayWait?: boolean;
}

/** Simulates the setting, which must come to the end of all work, unless some of it may wait for ever. */
export async function runOf({ jobs, trace, vcpus = 64, ...of }: Setting, deciders: Deciders): Promise<Run> {
  const offered = marketOfPreset(trace, deciders.stages);
  const { events, ended } = await simulated(jobs, {
    trace: offered,
    market: (now) => replayMarket(offered, now),
    vcpus,
    config: schedulerConfig.parse(of.config ?? {}),
    solver: of.solver ?? noSolver,
    deciders: () => deciders,
    ...(of.minGapS === undefined ? {} : { minGapS: seconds(of.minGapS) }),
  });
  if (ended !== 'done' && of.mayWait !== true)
    throw new Error(`the simulation under ${deciders.name} ended so: ${ended}`);
  return seen(events);
}

function seen(events: readonly EventRecord[]): Run {
  const names = new Map<JobId | null, string>();
  const bought = new Map<string, Bought>();
  const stays = new Map<string, Stay>();
  const late = new Set<string>();
  for (const { type, text, job, atMs, data } of events) {
    const atS = (raw(atMs) - raw(START_MS)) / 1000;
    const { attempt: id = '', instance = '', pool: of = '' } = data as Record<string, string>;
    const stay = stays.get(id);
    if (type === 'job-submitted') names.set(job, /^job (\S+)/.exec(text)?.[1] ?? '?');
    else if (type === 'job-succeeded' && data['late'] === true) late.add(names.get(job) ?? '?');
    else if (type === 'instance-requested') {
      const { type: size, option, zone } = poolParts(poolId(of));
      bought.set(instance, { instance, type: size, option, zone, atS });
    } else if (type === 'attempt-starting') {
      const { option = '?', zone = '?' } = bought.get(instance) ?? {};
      const index = Number(id.split('.').at(-2));
      const begun = { job: names.get(job) ?? '?', index, instance, option, zone };
      stays.set(id, { ...begun, fromS: atS, untilS: Infinity, end: 'runs' });
    } else if (stay !== undefined && /^attempt-(succeeded|failed|interrupted|preempted|moved|cancelled)$/.test(type)) {
      stays.set(id, { ...stay, untilS: atS, end: type.slice('attempt-'.length) });
    }
  }
  return { stays: [...stays.values()], bought: [...bought.values()], late };
}
