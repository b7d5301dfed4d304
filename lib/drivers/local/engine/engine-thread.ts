/**
 * The engine in a thread of its own, so that a long decision never delays an answer of the API. It opens its own
 * connection to the store; the fencing token keeps other engines from acting.
 */
import { writeFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { EbbError, invariant } from '../../../kernel/errors.ts';
import { randomStream } from '../../../kernel/random.ts';
import { raw, seconds } from '../../../kernel/units.ts';
import { Engine } from '../../../cycle/engine.ts';
import { bidsAsked, poolsPriced } from '../../../policy/asks.ts';
import { forecastNamed, presetNamed, withStandIns } from '../../../stages/registry.ts';
import type { Stages } from '../../../policy/contracts.ts';
import { refusalText } from '../../../domain/plan.ts';
import { capacityLearner } from '../../../stages/capacity-learner.ts';
import { priceDriftLearner } from '../../../stages/price-drift-learner.ts';
import { composeLearners } from '../../../cycle/learn/compose-learners.ts';
import { capacityOf } from '../../../market/capacity-truth.ts';
import { forecastTable, type OutlookForecast } from '../../../market/forecast/forecast-data.ts';
import { dumpModel } from '../../../stages/plan/milp.ts';
import type { Solver } from '../../../policy/solver.ts';
import type { EngineThreadData, FromEngine, ToEngine } from './engine-messages.ts';
import { createLocalFleet } from '../fleet/local-fleet.ts';
import { ForecastInUse } from './forecast-in-use.ts';
import { highsSolver } from '../../solver/highs-solver.ts';
import { IdleMemory } from './idle-memory.ts';
import { watchMain } from './main-watch.ts';
import { replayMarket } from '../market/replay.ts';
import { removeOldFiles } from '../disk/old-files.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { openTrials } from '../../solver/trials.ts';
import { wallTime } from '../../wall.ts';
import { knownWorld } from '../market/world.ts';
import { DEFAULT_RETENTION } from '../../stores/retention.ts';

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
const learners = composeLearners();
const evidence = learners.of(capacityLearner);
const drift = learners.of(priceDriftLearner);
const { preset } = world.record;
const { ownPolicies } = world;
// Trials search for the job at fault, and an engine that replaces a hung one searches for more: policies of the user's
// own have stand-ins there.
const shippedOnly = withStandIns(preset, world.config.presets, { ownPolicies });
const setAside = data.replaces !== null && shippedOnly !== world.config.presets;
const presets = setAside ? shippedOnly : world.config.presets;
const { stages, asks, learners: reads, own } = presetNamed(preset, presets, { ownPolicies });
const name = forecastNamed(world.config.forecast, preset, presets, ownPolicies);
const forecasting = new ForecastInUse({ dir: data.dir, name, config: world.config, asks });
const memory = new IdleMemory();
let forecast: OutlookForecast | null = null;
let draining = data.isDraining;
let disk = data.disk;
const engine = new Engine<Solver>({
  store,
  fleet,
  market,
  clock: world.clock,
  random: randomStream(world.record.seed, `plans/${wallTime.epochMs()}`),
  solver,
  stages: withDump(stages),
  ...(own && { own }),
  preset,
  config: world.config,
  limits: world.limits,
  learners,
  forecast: async (scene) => (forecast = await forecasting.of(scene, { market, evidence, drift })),
  trials: async (observed) => {
    const { snapshot } = observed;
    const asked = bidsAsked(snapshot, asks, world.config);
    const made = invariant(forecast, 'a forecast comes before trials');
    const table = forecastTable(made, snapshot.nowMs, asked, poolsPriced(snapshot, stages));
    return openTrials({
      observed,
      market: table,
      learned: await learners.stored(store, reads.all),
      preset,
      config: { ...world.config, presets: shippedOnly },
    });
  },
  disk: () => disk,
  isSuspicious: data.replaces !== null,
  onStep: (step) => tell({ is: 'step', step }),
  holder: `process ${process.pid}`,
  minGapS: seconds(world.minGapS),
  reuseGapS: seconds(world.reuseGapS),
  onCycle: ({ atMs, plan, live, idle }) => {
    for (const refusal of plan?.refusedPolicies ?? [])
      if (refusal.isNew) tell({ is: 'remark', text: refusalText(refusal) });
    tell({ is: 'cycle', atMs: raw(atMs), live, idle });
    if (idle) memory.quiet();
    else memory.busy();
    if (draining && live === 0) engine.stop();
  },
  onFault: (error) => tell({ is: 'fault', text: textOf(error) }),
});

/** One line for errors with a remedy; a stack for defects. */
function textOf(error: unknown): string {
  if (error instanceof EbbError && error.code !== 'internal') return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Writes each plan's model where it was asked for; the plan is the same. */
function withDump(of: Stages<Solver>): Stages<Solver> {
  const { dumpModel: path } = data;
  if (path === null) return of;
  return {
    ...of,
    plan: async (input, with_) => {
      writeFileSync(path, await dumpModel(input, with_, path.endsWith('.mps') ? 'mps' : 'lp'));
      return of.plan(input, with_);
    },
  };
}

port.on('message', (message: ToEngine) => {
  if (message.do === 'wake') engine.wake();
  else if (message.do === 'end') engine.stop();
  else if (message.do === 'disk') {
    ({ disk } = message);
    engine.wake();
    if (disk.level !== 'enough') dropOldFiles();
  } else {
    draining = true;
    engine.drain();
  }
});

/** Interval of the search for aged-out files, wall ms. A full disk starts it at once. */
const OLD_FILES_MS = 3_600_000;

/** A disk that reports an error is no reason to stop: the next pass finds the same files. */
function dropOldFiles(): void {
  const { historyDays } = world.config;
  removeOldFiles({ dir: data.dir, store, historyDays, nowMs: wallTime.epochMs() }).catch((error: unknown) => {
    // At the end the store is closed under it.
    if (!ended) tell({ is: 'remark', text: `old logs and checkpoints cannot be removed: ${textOf(error)}` });
  });
}
let ended = false;
const unwatch =
  data.beats === null ? () => undefined : watchMain(data.beats, (afterS) => tell({ is: 'interrupted', afterS }));
const oldFiles = setInterval(dropOldFiles, OLD_FILES_MS);

try {
  await engine.start();
  if (data.replaces !== null) {
    const without = setAside ? ', without the policies of your own' : '';
    await engine.note('engine-replaced', `${data.replaces}; the engine was started again${without}`);
  }
  if (draining) engine.drain();
  tell({ is: 'ready' });
  dropOldFiles();
  await engine.run();
} catch (error) {
  if (!(error instanceof EbbError)) throw error;
  // Sent, not thrown: an error that ends the thread may overtake earlier messages, and has lost its class.
  const { cause: _, ...facts } = error.facts;
  tell({ is: 'gave-up', code: error.code, facts });
} finally {
  ended = true;
  clearInterval(oldFiles);
  unwatch();
  await forecasting.close();
  await solver.close();
  await fleet.close();
  await store.close();
}
tell({ is: 'ended' });
port.close();
