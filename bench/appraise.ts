/**
 * Time of the appraisal, the scaler and the packer at the sizes of the design.
 *
 *   node bench/appraise.ts [groups=2000] [pools=500] [tasks=100000]
 *
 * Two loads: in `mixed` groups share 40 shapes and 60 templates, as recurring jobs do; in `distinct` all groups differ.
 */
import { randomStream } from '../lib/kernel/random.ts';
import { seconds } from '../lib/kernel/units.ts';
import { distribution, quantile } from '../lib/domain/distribution.ts';
import type { PendingGroup } from '../lib/domain/snapshot.ts';
import type { Host, Leftover, TaskToPlace } from '../lib/policy/contracts.ts';
import { instanceId } from '../lib/kernel/ids.ts';
import { stratusPack } from '../lib/stages/place/stratus.ts';
import { appraise } from '../lib/stages/appraise/appraise.ts';
import { stratusTributary } from '../lib/stages/scale/stratus-tributary.ts';
import { schedulerConfig } from '../lib/domain/config.ts';
import { decisionOf, worth } from './load/decision.ts';
import { group, needOf, openAt, poolOf, stage } from './load/values.ts';

const [groups = 2000, pools = 500, tasks = 100_000] = process.argv.slice(2).map(Number);
const config = schedulerConfig.parse({});
const HORIZONS = [60, 300, 900, 1800, 3600, 7200, 14_400, 28_800, 57_600, 86_400, 172_800, 259_200];

function poolViews(random: () => number) {
  const sizes = [2, 4, 8, 16, 32, 64, 96];
  return Array.from({ length: pools }, (_, i) => {
    const vcpus = sizes[i % sizes.length] ?? 2;
    const onDemand = 0.048 * vcpus * (0.8 + 0.4 * random());
    const option = i % 4 === 3 ? 'on-demand' : 'spot';
    const p = poolOf({
      type: `f${i % 60}.s${i % sizes.length}`,
      zone: `z${i}`,
      option,
      vcpus,
      gib: vcpus * (2 + 2 * (i % 3)),
      onDemandUsd: onDemand,
    });
    return openAt(p, option === 'spot' ? onDemand * (0.2 + 0.4 * random()) : onDemand);
  });
}

function load(distinct: boolean) {
  const random = randomStream(1, `bench/appraise/${distinct}`);
  const views = poolViews(random);
  const runtimes = Array.from({ length: distinct ? groups : 60 }, () => {
    const middle = 300 * 2 ** (8 * random());
    return distribution(
      Array.from({ length: 32 }, (_, i) => [middle * 1.1 ** (i - 16) * (1 + random() / 20), 1 + random()]),
    );
  });
  const list = Array.from({ length: groups }, (_, i): PendingGroup => {
    const shape = distinct ? i : i % 40;
    const need = needOf(1 + (shape % 4) + (distinct ? i / 1e5 : 0), 1024 * (1 + (shape % 7)));
    return group({
      name: `g${i}`,
      count: Math.max(1, Math.round(tasks / groups)),
      need,
      class: i % 2 === 0 ? 'deadline' : 'best-effort',
      stage: stage({
        resources: need,
        checkpoint: i % 3 === 0 ? null : { signal: 'SIGUSR1', graceS: seconds(30), everyS: null },
      }),
    });
  });
  const index = new Map(list.map((g, i) => [g.id, i]));
  const at = (g: PendingGroup): number => index.get(g.id) ?? 0;
  return decisionOf({
    groups: list,
    pools: views,
    interruption: (p) => {
      const perHour = 0.005 + 0.2 * (p.id.length % 7);
      return {
        horizonS: Float64Array.from(HORIZONS),
        pInterrupted: Float64Array.from(HORIZONS, (h) => 1 - Math.exp((-perHour * h) / 3600)),
        reason: 'given',
      };
    },
    runtime: (g) => runtimes[at(g) % runtimes.length] ?? distribution([[1, 1]]),
    worth: (g) => {
      const slack = 3600 * (2 + (distinct ? at(g) / 10 : at(g) % 5));
      return g.class === 'deadline' ? worth(slack, slack / 2) : worth(null);
    },
  });
}

function time<T>(what: string, f: () => T): T {
  const runs: number[] = [];
  let result = f();
  for (let i = 0; i < 3; i++) {
    const began = performance.now();
    result = f();
    runs.push(performance.now() - began);
  }
  runs.sort((a, b) => a - b);
  console.log(
    `  ${what}: median ${runs[1]?.toFixed(0)} ms of 3, heap ${(process.memoryUsage().heapUsed / 2 ** 20).toFixed(0)} MiB`,
  );
  return result;
}

console.log(`node ${process.version}, seed 1, ${groups} groups, ${tasks} tasks, ${pools} pools`);
for (const distinct of [false, true]) {
  console.log(distinct ? 'distinct' : 'mixed');
  const w = load(distinct);
  const offers = time('appraise', () => appraise({ ...w, config }));
  const leftovers = w.snapshot.groups.flatMap((g): Leftover[] => {
    const offer = offers.get(g.id)?.offers[0];
    if (offer === undefined) return [];
    const option = {
      group: g.id,
      offer,
      slot: 0,
      startMs: w.snapshot.nowMs,
      worthUsd: 1,
      costUsd: offer.expectedCostUsd,
    };
    const runtimeS = quantile(w.forecasts.runtime.get(`${g.job}/main`)?.runtime ?? distribution([[1, 1]]), 0.5);
    return [{ group: g, option, count: g.count, runtimeS }];
  });
  const input = { ...w, offers, leftovers, config };
  const purchases = time('acquire (stratus-tributary)', () => stratusTributary(input));
  console.log(`    ${purchases.reduce((n, p) => n + p.count, 0)} instances in ${purchases.length} pools and bids`);
  const toPlace = leftovers.flatMap((l) => {
    const allowed = (): boolean => true;
    const { need, id, job } = l.group;
    return Array.from({ length: l.count }, (_, index): TaskToPlace => ({
      task: { job, stage: 'main', index },
      group: id,
      need,
      runtimeS: l.runtimeS,
      gang: null,
      allowed,
    }));
  });
  const hosts = Array.from({ length: 5000 }, (_, i): Host => {
    const p = poolOf({ type: 'm5.4xlarge', vcpus: 16, gib: 64 });
    const free = needOf(i % 17, 4096 * (i % 17));
    return {
      on: instanceId(`i${i}`),
      pool: p,
      capacity: p.type.capacity,
      free,
      remainingS: seconds((i * 37) % 40_000),
    };
  });
  const placements = time('place (stratus), 5,000 hosts', () => stratusPack(toPlace, hosts));
  console.log(`    ${placements.length} of ${toPlace.length} tasks placed`);
  console.log(`    ${[...offers.values()].reduce((n, o) => n + o.offers.length, 0)} offers`);
}
