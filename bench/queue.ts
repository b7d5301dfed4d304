/**
 * Time to find which short tasks wait their turn (lib/stages/queue/queue.ts), where all that runs is short.
 *   node bench/queue.ts [instances=10000] [leftovers=2000] [pools=1000]
 * Each instance runs ten tasks of seven sizes; leftovers are of 50 tasks, which all find a turn, or of 1,000, most of which do not.
 */
import { certain } from '../lib/domain/distribution.ts';
import type { InstanceView } from '../lib/domain/snapshot.ts';
import type { QueueInput } from '../lib/domain/stages.ts';
import { attemptId, instanceId } from '../lib/kernel/ids.ts';
import { seconds, usdPerHour } from '../lib/kernel/units.ts';
import { shortTasksQueue } from '../lib/stages/queue/queue.ts';
import { attempt } from '../test/support/builders.ts';
import {
  config,
  group,
  instance,
  NOW,
  pool,
  resources,
  stage,
  view,
  world,
} from '../test/unit/stages/appraise/world.ts';

const [instances = 10_000, count = 2000, poolCount = 1000] = process.argv.slice(2).map(Number);
const SIZES = [1, 2, 3, 4, 0.5, 0.25, 0.75];
const RUNS = 5;

const sizeOf = (i: number): number => SIZES[i % SIZES.length] ?? 1;
const pools = Array.from({ length: poolCount }, (_, i) => pool({ type: `m${i}.4xlarge`, vcpus: 16, gib: 64 }));

function busy(i: number): InstanceView {
  const of = instance(`i-${i}`, pools[i % poolCount] ?? pool());
  const attempts = Array.from({ length: 10 }, (_, k) => ({
    attempt: attempt({
      id: attemptId(`a${i}.${k}`),
      instance: instanceId(`i-${i}`),
      resources: resources(sizeOf(i * 7 + k * 3 + ((i * k) % 5)), 1),
      startedMs: NOW,
    }),
    stage: stage(),
    class: 'best-effort' as const,
    deadlineMs: null,
    readS: seconds(0),
    savedS: seconds(0),
  }));
  return { ...of, attempts };
}

function inputOf(tasks: number): QueueInput {
  const groups = Array.from({ length: count }, (_, i) =>
    group({ id: `g${i}`, count: tasks, need: resources(sizeOf(i), 1) }),
  );
  const { snapshot, forecasts, worths } = world({
    groups,
    instances: Array.from({ length: instances }, (_, i) => busy(i)),
    pools: pools.map((p) => view(p, 0.1)),
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
        pool: pools[i % poolCount]?.id ?? pool().id,
        bid: 'uncapped' as const,
        priceUsdPerHour: usdPerHour(0.1),
        share: 0.1,
        newShare: 0.1,
        chargedShare: 0.1,
        startDelayS: seconds(95),
        pInterrupted: 0,
        pLate: 0,
        expectedLostS: seconds(0),
        expectedDurationS: seconds(20),
        expectedCostUsd: 0.1,
      },
    },
  }));
  const none = { placements: [], giveWay: new Set<never>(), behind: new Map<never, number>(), unknownAs: () => null };
  return {
    snapshot,
    forecasts,
    worths: worths.groups,
    leftOf: () => seconds(10),
    leftovers,
    config: config(),
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
