import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { scaledClock, type Clock, type ClockAnchor } from '../../../kernel/clock.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { epochMs, isoOf, raw } from '../../../kernel/units.ts';
import { schedulerConfig, type SchedulerConfig } from '../../../domain/config.ts';
import type { Limits } from '../../../domain/snapshot.ts';
import { defaultMarket, defaultMarketStartMs, DEFAULT_SEED } from '../../../market/default-market.ts';
import { isOwnAlone, marketWithCluster, ownVcpus, settingsOfCluster } from '../../../market/cluster.ts';
import { spanOf, type MarketTrace } from '../../../market/trace.ts';
import { billingAt } from '../../../market/billing.ts';
import type { OwnPolicy } from '../../../policy/own/own-policy.ts';
import { expectFootprint } from '../../../stages/services/footprints.ts';
import { settingsUnder } from '../../../policy/preset-chain.ts';
import { loadPolicies } from '../policies/load-policies.ts';
import { openMarket } from './import.ts';
import { wallTime } from '../../wall.ts';
import {
  newWorld,
  readWorldRecord,
  sameWorld,
  writeWorldRecord,
  type ChosenWorld,
  type Earlier,
  type GivenWorld,
  type WorldRecord,
} from './world-record.ts';

export interface World {
  readonly record: WorldRecord;
  readonly trace: MarketTrace;
  readonly clock: Clock;
  /** Settings, with those of the preset. */
  readonly config: SchedulerConfig;
  /** Policies of the modules that the settings name. */
  readonly ownPolicies: readonly OwnPolicy[];
  readonly limits: Limits;
  /** Wall time of at least 0.25 s between cycles, as engine time. */
  readonly minGapS: number;
  /** Engine time between two searches for free slots between decisions. */
  readonly reuseGapS: number;
}

/** Least wall time between two cycles. */
export const MIN_GAP_WALL_S = 0.25;
/** A search costs some milliseconds of processor time and one write to the disk. */
const REUSE_GAP_WALL_S = 0.01;
/** Wall time to stop a process that saves at once, and to start one that reads its saved state. */
const STOP_WALL_S = 0.5;
const RESTORE_WALL_S = 0.2;
/** Most of a cycle's period that the solver may take. */
const SOLVER_SHARE = 0.25;

/**
 * Decides the market of the directory and the position of its clock, and records both. While work of an earlier engine
 * is unfinished, missing options are as that engine had them; later the market alone is. Throws `market.invalid`,
 * `conflict`, `usage`.
 */
export async function enterWorld(dir: string, given: GivenWorld, earlier: Earlier): Promise<World> {
  const before = readWorldRecord(dir);
  const unfinished = before !== null && (earlier.open || earlier.live);
  const opened = unfinished ? before : newWorld(given, before);
  if (given.market === null) expectKept(opened.market);
  const trace = await traceOf(dir, opened);
  const chosen = unfinished
    ? sameWorld(dir, given, { before, config: settingsOf(before, trace), live: earlier.live })
    : opened;
  const record: WorldRecord = {
    version: 1,
    ...chosen,
    ...anchorOf(chosen, earlier, { before, trace }),
    ...limitOf(given, unfinished ? before : null, trace),
    ...diskOf(given, unfinished ? before : null),
  };
  const world = await openWorld(record, trace);
  writeWorldRecord(dir, record);
  return world;
}

function expectKept(market: string | null): void {
  if (market === null || existsSync(market)) return;
  throw new EbbError('market.invalid', {
    what: 'the market of this directory is not there any more',
    got: market,
    next: 'put it back, name another one by --market, or use another --dir',
  });
}

/** A limit that was given holds until the work that it was given for is done. */
function limitOf(
  given: GivenWorld,
  before: WorldRecord | null,
  trace: MarketTrace,
): Pick<WorldRecord, 'vcpus' | 'vcpusGiven'> {
  const vcpus = given.vcpus ?? (before?.vcpusGiven === true ? before.vcpus : undefined);
  return vcpus === undefined ? { vcpus: vcpuLimit(trace) } : { vcpus, vcpusGiven: true };
}

/** Same rule as `limitOf`. */
function diskOf(given: GivenWorld, before: WorldRecord | null): Pick<WorldRecord, 'diskBytes'> {
  const diskBytes = given.diskBytes ?? before?.diskBytes;
  return diskBytes === undefined ? {} : { diskBytes };
}

/** The world as written down, for a second thread of the same engine. */
export async function knownWorld(dir: string): Promise<World> {
  const record = readWorldRecord(dir);
  if (record === null) throw new EbbError('internal', { what: `no world has been entered in ${dir}` });
  return openWorld(record, await traceOf(dir, record));
}

async function traceOf(dir: string, { market, cluster, seed }: ChosenWorld): Promise<MarketTrace> {
  const trace = market === null ? null : (await openMarket(market, join(dir, 'markets'))).trace;
  return cluster === undefined ? (trace ?? defaultMarket(seed)) : marketWithCluster(trace, cluster);
}

async function openWorld(record: WorldRecord, trace: MarketTrace): Promise<World> {
  const config = settingsUnder(record.preset, settingsOf(record, trace));
  expectFootprint(config.serviceFootprint);
  return {
    record,
    trace,
    clock: scaledClock(wallTime, record),
    config,
    ownPolicies: await loadPolicies(config),
    limits: { vcpus: record.vcpus ?? vcpuLimit(trace), raisedBy: 'start `ebb up` or `ebb run` with a higher --vcpus' },
    minGapS: MIN_GAP_WALL_S * record.speed,
    reuseGapS: REUSE_GAP_WALL_S * record.speed,
  };
}

/**
 * Tasks are processes of this machine: most of them sleep or wait, so that several share a core. Machines of the user's
 * own are all there.
 */
export const vcpuLimit = (trace: MarketTrace): number =>
  ownVcpus(trace) + (isOwnAlone(trace) ? 0 : Math.max(12, 6 * availableParallelism()));

/** Settings of earlier versions that nothing reads any more. */
const RETIRED: readonly string[] = ['clearBelowUtilisation'];

const withoutRetired = (settings: WorldRecord['settings']): WorldRecord['settings'] =>
  Object.fromEntries(Object.entries(settings).filter(([name]) => !RETIRED.includes(name)));

/**
 * Settings of decisions in a world: given ones, else those that follow from its speed and its market. Throws
 * `store.corrupt`.
 */
export function settingsOf({ speed, settings }: WorldRecord, trace: MarketTrace): SchedulerConfig {
  const minGapS = MIN_GAP_WALL_S * speed;
  const defaults = schedulerConfig.parse({});
  return configOf({
    billing: billingAt(trace.endMs),
    ...settingsOfCluster(trace),
    // Wall-clock overheads of real processes weigh `speed` times as much in engine time.
    cyclePeriodS: Math.max(defaults.cyclePeriodS, 2 * minGapS),
    turnoverS: Math.max(defaults.turnoverS, minGapS),
    migrationS: Math.max(defaults.migrationS, STOP_WALL_S * speed),
    restoreS: Math.max(defaults.restoreS, RESTORE_WALL_S * speed),
    // The market's clock runs on while the solver thinks: a plan must not be old before it is made.
    solverSeconds: Math.min(
      defaults.solverSeconds,
      (SOLVER_SHARE * Math.max(defaults.cyclePeriodS, 2 * minGapS)) / speed,
    ),
    ...withoutRetired(settings),
  });
}

/** Settings are checked before they are recorded, so a failure here means another version wrote them. */
function configOf(settings: Readonly<Record<string, unknown>>): SchedulerConfig {
  const parsed = schedulerConfig.safeParse(settings);
  if (parsed.success) return parsed.data;
  throw new EbbError('store.corrupt', {
    what: 'the directory was opened with settings that this version of ebb does not have',
    issues: parsed.error.issues.map((i) => ({ at: i.path.join('.'), message: i.message })),
    next: 'use the version that wrote it, or another --dir',
  });
}

/**
 * Live instances hold the old anchor: their supervisors go by it. Otherwise the clock goes on from the last instant.
 */
function anchorOf(
  chosen: ChosenWorld,
  earlier: Earlier,
  known: { readonly before: WorldRecord | null; readonly trace: MarketTrace },
): ClockAnchor {
  const { fromMs, market, seed, speed } = chosen;
  const { before, trace } = known;
  const startMs = startOf(trace, fromMs, market === null && seed === DEFAULT_SEED);
  if (before !== null && earlier.live) return { wallMs: before.wallMs, engineMs: before.engineMs, speed };
  const engineMs = Math.max(earlier.lastMs ?? startMs, startMs);
  if (engineMs >= raw(trace.endMs) && before?.market !== market) {
    throw new EbbError('conflict', {
      what: 'the jobs of this directory ran later than the market ends, and its clock never goes back',
      got: `a market of ${isoOf(trace.startMs)} to ${isoOf(trace.endMs)}`,
      allowed: `a market that goes on after ${isoOf(epochMs(engineMs))}`,
      next: 'use another --dir for this market',
    });
  }
  return { wallMs: wallTime.epochMs(), engineMs, speed };
}

function startOf(trace: MarketTrace, fromMs: number | null, isDefault: boolean): number {
  // A cluster has no past to replay: its time is the time of day.
  if (fromMs === null && isOwnAlone(trace)) return wallTime.epochMs();
  if (fromMs === null) return raw(isDefault ? defaultMarketStartMs : trace.startMs);
  const { startMs, endMs } = spanOf(trace);
  if (fromMs >= startMs && fromMs < endMs) return fromMs;
  throw new EbbError('usage', {
    what: '--from lies outside the market',
    got: isoOf(epochMs(fromMs)),
    allowed: `${isoOf(trace.startMs)} to ${isoOf(trace.endMs)}`,
    next: 'choose a time in between',
  });
}
