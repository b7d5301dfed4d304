/**
 * The engine in a thread of its own, so that a long decision never delays an answer of the API. It opens its own
 * connection to the store; the fencing token sees to it that no other engine acts.
 */
import { writeFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { invariant } from '../kernel/errors.ts';
import { randomStream } from '../kernel/random.ts';
import { raw, seconds } from '../kernel/units.ts';
import { Engine } from '../cycle/engine.ts';
import { forecastNamed, presetNamed } from '../cycle/presets.ts';
import type { Stages } from '../domain/stages.ts';
import { LoggedHistory } from '../estimate/logged-history.ts';
import { capacityOf } from '../market/capacity.ts';
import { CapacityEvidence } from '../market/forecast/hazard.ts';
import { dumpModel } from '../plan/milp.ts';
import type { Solver } from '../plan/solver.ts';
import { DEFAULT_RETENTION } from '../ports/store-retention.ts';
import type { EngineThreadData, FromEngine, ToEngine } from './engine-messages.ts';
import { createLocalFleet } from './fleet/fleet.ts';
import { ForecastInUse } from './forecast-in-use.ts';
import { highsSolver } from './highs-solver.ts';
import { IdleMemory } from './idle-memory.ts';
import { replayMarket } from './market-replay.ts';
import { openSqliteStore } from './store/sqlite-store.ts';
import { wallTime } from './wall.ts';
import { knownWorld } from './world.ts';

const port = invariant(parentPort, 'the engine runs in a thread of its own');
const data = workerData as EngineThreadData;
const tell = (message: FromEngine): void => port.postMessage(message);

const world = await knownWorld(data.dir);
const store = openSqliteStore({
  path: data.database,
  retention: { ...DEFAULT_RETENTION, historyDays: world.config.historyDays },
});
const market = replayMarket(world.trace, () => world.clock.now());
const fleet = createLocalFleet({
  dir: data.dir,
  truth: capacityOf(world.trace, world.config),
  clock: world.clock,
  speed: world.record.speed,
});
const solver = highsSolver();
const evidence = new CapacityEvidence();
const { preset } = world.record;
const name = forecastNamed(world.config.forecast, preset);
const forecasting = new ForecastInUse({ dir: data.dir, name, config: world.config });
const memory = new IdleMemory();
let draining = false;
const engine = new Engine<Solver>({
  store,
  fleet,
  market,
  clock: world.clock,
  random: randomStream(world.record.seed, `plans/${wallTime.epochMs()}`),
  solver,
  stages: withDump(presetNamed(preset)),
  preset,
  config: world.config,
  limits: { vcpus: world.vcpus },
  history: new LoggedHistory(),
  capacity: evidence,
  forecast: (scene) => forecasting.of(scene, { market, evidence }),
  holder: `process ${process.pid}`,
  minGapS: seconds(world.minGapS),
  onCycle: ({ atMs, live, idle }) => {
    tell({ is: 'cycle', atMs: raw(atMs), live, idle });
    if (idle) memory.quiet();
    else memory.busy();
    if (draining && live === 0) engine.stop();
  },
  onFault: (error) =>
    tell({ is: 'fault', text: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
});

/** Writes each plan's model where it was asked for; the plan is the same. */
function withDump(stages: Stages<Solver>): Stages<Solver> {
  const { dumpModel: path } = data;
  if (path === null) return stages;
  return {
    ...stages,
    plan: async (input, with_) => {
      writeFileSync(path, await dumpModel(input, with_, path.endsWith('.mps') ? 'mps' : 'lp'));
      return stages.plan(input, with_);
    },
  };
}

port.on('message', (message: ToEngine) => {
  if (message.do === 'wake') engine.wake();
  else if (message.do === 'end') engine.stop();
  else {
    draining = true;
    engine.drain();
  }
});

try {
  await engine.start();
  tell({ is: 'ready' });
  await engine.run();
} finally {
  await forecasting.close();
  await solver.close();
  await fleet.close();
  await store.close();
}
tell({ is: 'ended' });
port.close();
