/** Runs as plain data: a service and jobs, on one system, each on its own, or on-demand. */
import { join } from 'node:path';
import { forecastOf } from '../../lib/cli/simulation/compose-simulation.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import { normaliseService } from '../../lib/domain/service-file/service-file.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { decidersNamed } from '../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../lib/drivers/sim/outcome-of-run.ts';
import type { SimulatedService } from '../../lib/drivers/sim/services/sim-traffic.ts';
import { simulate } from '../../lib/drivers/sim/simulation.ts';
import { highsSolver } from '../../lib/drivers/solver/highs-solver.ts';
import { epochMs, plus, seconds, ZERO_S } from '../../lib/kernel/units.ts';
import { billingAt } from '../../lib/market/billing.ts';
import { deterministic } from '../../lib/policy/solver.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { openRequests } from '../../lib/workload/requests/open.ts';
import { firstMinutes, scaledTo } from '../../lib/workload/requests/trace.ts';
import { jobsOf } from '../default/jobs.ts';
import { middlesIn, priceMarket } from '../default/markets.ts';

/** joint: one system. separate: one for the service and one for the jobs, whose bills are added up. */
export type System = 'joint' | 'separate' | 'joint-on-demand';

export interface Order {
  /** The system, under the name that the frame of comparisons has for it. */
  readonly preset: System;
  readonly data: string;
  readonly year: string;
  readonly requests: string;
  readonly minutes: number;
  readonly rps: number;
  readonly jobsPerHour: number;
  readonly seed: number;
  readonly start: number;
  readonly starts: number;
}

interface Figures {
  readonly usd: number;
  readonly requests: number;
  readonly slow: number;
  readonly failed: number;
  readonly replicaHours: number;
  readonly jobs: number;
  /** Jobs that were done after their deadline, or not at all. */
  readonly missed: number;
  readonly launches: number;
  readonly interruptions: number;
}

export interface Answer extends Order {
  readonly figures: Figures & { readonly tookS: number };
}

const SOLVER_NODES = 50;
const VCPUS = 2000;
/** After the last request, for jobs that are not done. */
const AFTER_S = 86_400;
/** A request of 0.1 s of a vCPU (Tributary, section 2.4.1). */
const SERVICE_S = 0.1;

export async function answerOf(order: Order): Promise<Answer> {
  const began = performance.now();
  const service = await serviceOf(order);
  const jobs = await jobsOf(
    `synthetic:perHour=${order.jobsPerHour},jobs=${Math.ceil((order.jobsPerHour * order.minutes) / 60)},medianRuntimeS=1200,runtimeSigma=1,maxTasks=20,dailyCycle=0`,
    { seed: 2000 + order.seed },
  );
  const both = { services: [service], jobs };
  const parts =
    order.preset === 'separate'
      ? [
          { services: [service], jobs: [] },
          { services: [], jobs },
        ]
      : [both];
  const runs: Figures[] = [];
  for (const part of parts) runs.push(await run(order, part));
  const sum = (of: (f: Figures) => number): number => runs.reduce((total, f) => total + of(f), 0);
  const figures = Object.fromEntries(
    Object.keys(runs[0] ?? {}).map((key) => [key, sum((f) => f[key as keyof Figures])]),
  );
  return { ...order, figures: { ...(figures as unknown as Figures), tookS: (performance.now() - began) / 1000 } };
}

async function serviceOf({ data, requests, minutes, rps }: Order): Promise<SimulatedService> {
  const trace = await openRequests(join(data, 'web-requests', requests));
  const { perMinute } = scaledTo(firstMinutes(trace, minutes), rps);
  const spec = normaliseService(
    {
      name: 'web',
      command: './serve',
      resources: { cpu: 1, memory: '1GiB' },
      target: { latency: '1s', percent: 95 },
      capacity: { perReplica: '10 rps' },
      min: 2,
      max: 200,
    },
    { baseDir: '/srv', defaultOwner: 'bench', scalings: ['reactive'] },
  );
  return { spec, perMinute, serviceS: SERVICE_S, queuePerVcpu: 10 };
}

async function run(
  order: Order,
  { services, jobs }: { readonly services: readonly SimulatedService[]; readonly jobs: readonly WorkloadJob[] },
): Promise<Figures> {
  const preset = order.preset === 'joint-on-demand' ? 'on-demand' : 'ebbtide';
  const trace = await priceMarket(order.data, order.year);
  const fromMs = epochMs(middlesIn(trace, order.starts)[order.start] ?? NaN);
  const solver = deterministic(highsSolver(), SOLVER_NODES);
  const forecast = await forecastOf({ preset, dir: '.ebb', forecast: 'preset', presets: {} });
  try {
    const result = await simulate({
      trace,
      market: (now) => replayMarket(trace, now),
      fromMs,
      toMs: plus(fromMs, seconds(order.minutes * 60 + AFTER_S)),
      jobs,
      services,
      namesJobs: false,
      deciders: decidersNamed(preset),
      forecast,
      solver,
      config: schedulerConfig.parse({ billing: billingAt(fromMs) }),
      vcpus: VCPUS,
      seed: order.seed,
      minGapS: seconds(5),
      setupS: ZERO_S,
    });
    const { totals, jobs: rows } = outcomeOf(result, { preset, seed: order.seed, fromMs });
    const undone = rows.state.filter((state) => state !== 'succeeded').length;
    const [of] = result.services;
    return {
      usd: totals.billedUsd,
      requests: of?.requests ?? 0,
      slow: of?.slow ?? 0,
      failed: of?.failed ?? 0,
      replicaHours: of?.replicaHours ?? 0,
      jobs: jobs.length,
      missed: totals.missed + undone,
      launches: totals.launches,
      interruptions: totals.interruptions,
    };
  } finally {
    await solver.close();
    await forecast.close();
  }
}
