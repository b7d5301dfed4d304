/**
 * Time of the decision which running work leaves its instance: clearing as Stratus does (section 3.2.4), and
 * consolidation in dollars.
 *
 *   npm run bench:moves -- [instances=10000] [tasks=50000] [pools=500]
 *
 * Tasks of 60 stages with running times of their own, each on an instance drawn at random; a third of the instances are
 * used to less than half. Prints inputs, versions and processor seconds: the first decision, and the median of the next
 * three on the same state.
 */
import { attemptId, instanceId, jobId } from '../lib/kernel/ids.ts';
import { randomStream } from '../lib/kernel/random.ts';
import { epochMs, raw, seconds, ZERO_S } from '../lib/kernel/units.ts';
import { schedulerConfig } from '../lib/domain/config.ts';
import { distribution } from '../lib/domain/distribution.ts';
import { fits, minusResources } from '../lib/domain/resources.ts';
import type { StageSpec } from '../lib/domain/job.ts';
import type { PoolView } from '../lib/domain/pool.ts';
import type { InstanceView, RunningTask } from '../lib/domain/snapshot.ts';
import type { DecisionContext } from '../lib/policy/contracts.ts';
import { DecisionMemory } from '../lib/policy/memory.ts';
import { clearing } from '../lib/stages/move/clearing.ts';
import { consolidatingMoves } from '../lib/stages/move/consolidation.ts';
import { byRuntimeBin } from '../lib/stages/move/repack.ts';
import { machine, percentile } from './figures.ts';
import { decisionOf, worth } from './load/decision.ts';
import { attempt, group, instance, needOf, NOW, openAt, poolOf, stage } from './load/values.ts';

const [instances = 10_000, tasks = 50_000, pools = 500] = process.argv.slice(2).map(Number);
const SEED = 1;
const STAGES = 60;
const SIZES = [4, 8, 16, 32];

type Draw = () => number;

const poolViews = (draw: Draw): readonly PoolView[] =>
  Array.from({ length: pools }, (_, i) => {
    const vcpus = SIZES[i % SIZES.length] ?? 4;
    const onDemandUsd = 0.048 * vcpus * (0.8 + 0.4 * draw());
    const option = i % 4 === 3 ? 'on-demand' : 'spot';
    const pool = poolOf({ type: `f${i % 60}.${vcpus}`, zone: `z${i}`, option, vcpus, gib: 4 * vcpus, onDemandUsd });
    return openAt(pool, option === 'spot' ? onDemandUsd * (0.2 + 0.4 * draw()) : onDemandUsd);
  });

/** Instances with tasks; two thirds of them get most. */
function heldInstances(views: readonly PoolView[], specs: readonly StageSpec[], draw: Draw): readonly InstanceView[] {
  const held = Array.from({ length: instances }, (_, i): InstanceView & { attempts: RunningTask[] } => {
    const { pool } = views[Math.floor(draw() * views.length)] ?? openAt(poolOf({ type: 'x', vcpus: 4, gib: 16 }), 1);
    const launched = { launchedMs: epochMs(raw(NOW) - 7_200_000) };
    return {
      instance: instance(`i-${i}`, pool.id, launched),
      pool,
      free: pool.type.capacity,
      attempts: [],
    };
  });
  let n = 0;
  for (let at = 0; n < tasks && at < 20 * tasks; at++) {
    const i = Math.floor(draw() * instances * (draw() < 0.9 ? 2 / 3 : 1));
    const view = held[i];
    const of = n % STAGES;
    const spec = specs[of];
    if (view === undefined || spec === undefined || !fits(spec.resources, view.free)) continue;
    const startedMs = epochMs(raw(NOW) - Math.floor(draw() * 3_600_000));
    const id = attemptId(`j${of}.main.${n}.1`);
    const running = attempt({
      id,
      job: jobId(`j${of}`),
      index: n,
      instance: instanceId(view.instance.id),
      resources: spec.resources,
      startedMs,
    });
    view.attempts.push({
      attempt: running,
      class: 'best-effort',
      stage: spec,
      deadlineMs: null,
      readS: ZERO_S,
      savedS: ZERO_S,
    });
    held[i] = { ...view, free: minusResources(view.free, spec.resources) };
    n++;
  }
  return held;
}

function context(): DecisionContext {
  const draw = randomStream(SEED, 'bench/moves');
  const views = poolViews(draw);
  const saves = { signal: 'SIGTERM', graceS: seconds(30), everyS: null } as const;
  const specs = Array.from({ length: STAGES }, () => stage({ resources: needOf(1, 2048), checkpoint: saves }));
  const runtimes = new Map(
    specs.map((spec, i) => {
      const middle = 600 * 2 ** (6 * draw());
      const points = Array.from({ length: 32 }, (_, n) => [middle * 1.1 ** (n - 16), 1 + draw()] as const);
      return [`j${i}/${spec.name}`, { runtime: distribution(points), basis: 'history' as const, reason: 'drawn' }];
    }),
  );
  const held = heldInstances(views, specs, draw);
  const base = decisionOf({
    groups: [group({ name: 'waits', count: 1, need: needOf(1, 1024) })],
    pools: views,
    runtime: () => distribution([[600, 1]]),
    instances: held,
    interruption: () => ({
      horizonS: Float64Array.of(3600, 86_400),
      pInterrupted: Float64Array.of(0.02, 0.4),
      reason: 'given',
    }),
  });
  const snapshot = { ...base.snapshot, running: held.flatMap((v) => v.attempts) };
  const worths = { groups: base.worths.groups, ofRunning: () => worth(null) };
  const forecasts = { ...base.forecasts, runtime: runtimes };
  return { ...base, snapshot, worths, forecasts, config: schedulerConfig.parse({}), offers: new Map() };
}

function time(what: string, decide: (of: DecisionContext) => readonly unknown[]): void {
  const scene = context();
  const memory = new DecisionMemory();
  const cpuS: number[] = [];
  let moves = 0;
  // Clearing takes instances that were used little for three cycles.
  for (let cycle = 0; cycle < 8; cycle++) {
    const nowMs = epochMs(raw(NOW) + cycle * 60_000);
    const before = process.cpuUsage();
    moves = decide({ ...scene, memory, snapshot: { ...scene.snapshot, nowMs } }).length;
    const { user, system } = process.cpuUsage(before);
    if (cycle >= 4) cpuS.push((user + system) / 1e6);
  }
  const [first = NaN, ...next] = cpuS;
  console.log(`  ${what}: first ${first.toFixed(3)} s, then ${percentile(next, 0.5).toFixed(3)} s; ${moves} moves`);
}

console.log(`${JSON.stringify({ instances, tasks, pools, seed: SEED })}\n  ${machine()}`);
time('clearing', clearing(byRuntimeBin));
time('consolidation', (of) => consolidatingMoves(of, new Set()));
