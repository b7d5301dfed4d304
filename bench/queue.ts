/**
 * Time to find short tasks for slot reuse (lib/stages/queue/queue.ts) when all running tasks are short.
 *
 *   node bench/queue.ts [instances=10000] [leftovers=2000] [pools=1000]
 *
 * Each instance runs ten tasks of seven sizes. Leftovers have 50 tasks, which all find a slot, or 1,000, most of which
 * do not.
 */
import { certain } from '../lib/domain/distribution.ts';
import type { Pool } from '../lib/domain/pool.ts';
import type { InstanceView } from '../lib/domain/snapshot.ts';
import type { QueueInput } from '../lib/policy/contracts.ts';
import { attemptId, instanceId } from '../lib/kernel/ids.ts';
import { seconds, usdPerHour } from '../lib/kernel/units.ts';
import { shortTasksQueue } from '../lib/stages/queue/queue.ts';
import { schedulerConfig } from '../lib/domain/config.ts';
import { decisionOf } from './load/decision.ts';
import { attempt, group, instance, needOf, NOW, openAt, poolOf, stage } from './load/values.ts';

const [instances = 10_000, count = 2000, poolCount = 1000] = process.argv.slice(2).map(Number);
const SIZES = [1, 2, 3, 4, 0.5, 0.25, 0.75];
const RUNS = 5;

const sizeOf = (i: number): number => SIZES[i % SIZES.length] ?? 1;
const pools = Array.from({ length: poolCount }, (_, i) => poolOf({ type: `m${i}.4xlarge`, vcpus: 16, gib: 64 }));

function poolAt(i: number): Pool {
  const pool = pools[i % poolCount];
  if (pool === undefined) throw new Error('there are pools');
  return pool;
}

function busy(i: number): InstanceView {
  const pool = poolAt(i);
  const of = instance(`i-${i}`, pool.id);
  const attempts = Array.from({ length: 10 }, (_, k) => ({
    attempt: attempt({
      id: attemptId(`a${i}.${k}`),
      instance: instanceId(`i-${i}`),
      resources: needOf(sizeOf(i * 7 + k * 3 + ((i * k) % 5)), 1024),
      startedMs: NOW,
    }),
    stage: stage(),
    class: 'best-effort' as const,
    deadlineMs: null,
    readS: seconds(0),
    savedS: seconds(0),
  }));
  return { instance: of, pool, free: pool.type.capacity, attempts };
}

function inputOf(tasks: number): QueueInput {
  const groups = Array.from({ length: count }, (_, i) =>
    group({ name: `g${i}`, count: tasks, need: needOf(sizeOf(i), 1024) }),
  );
  const context = decisionOf({
    groups,
    instances: Array.from({ length: instances }, (_, i) => busy(i)),
    pools: pools.map((p) => openAt(p, 0.1)),
    runtime: () => certain(seconds(20)),
  });
  const leftovers = groups.map((of, i) => ({
    group: of,
    count: of.count,
    runtimeS: seconds(20),
    inPool: () => true,
    option: {
      group: of.id,
      slot: 0,
      startMs: NOW,
      worthUsd: 1,
      costUsd: 0.1,
      offer: {
        group: of.id,
        pool: poolAt(i).id,
        bid: 'uncapped' as const,
        priceUsdPerHour: usdPerHour(0.1),
        share: 0.1,
        roomShare: 0.1,
        newShare: 0.1,
        startDelayS: seconds(95),
        pInterrupted: 0,
        pLate: 0,
        expectedLostS: seconds(0),
        expectedDurationS: seconds(20),
        expectedCostUsd: 0.1,
      },
    },
  }));
  const none = { placements: [], preempted: new Set<never>(), behind: new Map<never, number>(), unknownAs: () => null };
  return {
    ...context,
    offers: new Map(),
    leftOf: () => seconds(10),
    leftovers,
    config: schedulerConfig.parse({}),
    ...none,
  };
}

console.log(
  `node ${process.version}; ${instances} instances, ${count} leftovers, ${poolCount} pools; ${RUNS} runs each`,
);
for (const tasks of [50, 1000]) {
  const input = inputOf(tasks);
  const tookMs: number[] = [];
  let bought = 0;
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now();
    bought = shortTasksQueue(input).leftovers.reduce((sum, l) => sum + l.count, 0);
    tookMs.push(performance.now() - began);
  }
  const [least = 0] = tookMs.sort((a, b) => a - b);
  const most = tookMs.at(-1) ?? 0;
  console.log(
    `${tasks} tasks each: ${least.toFixed(0)} to ${most.toFixed(0)} ms; ${bought} places for ${count * tasks} tasks`,
  );
}
