import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { scaledClock, type Clock, type ClockAnchor } from '../kernel/clock.ts';
import { EbbError } from '../kernel/errors.ts';
import { raw } from '../kernel/units.ts';
import { schedulerConfig, type SchedulerConfig } from '../domain/config.ts';
import { defaultMarket, defaultMarketStartMs, DEFAULT_SEED } from '../market/default-market.ts';
import type { MarketTrace } from '../market/trace.ts';
import { openMarket } from './market-import.ts';
import { wallTime } from './wall.ts';

/** What a directory replays and since when; kept in `world.json` so that a restart goes on in the same world. */
const worldSchema = z.object({
  version: z.literal(1),
  market: z.string().nullable(),
  seed: z.number(),
  wallMs: z.number(),
  engineMs: z.number(),
  speed: z.number().positive(),
});
export type WorldRecord = z.infer<typeof worldSchema>;

export interface WorldOptions {
  readonly dir: string;
  readonly market: string | null;
  readonly fromMs: number | null;
  readonly speed: number;
  readonly seed: number;
  readonly config: Partial<SchedulerConfig>;
}

export interface World {
  readonly record: WorldRecord;
  readonly trace: MarketTrace;
  readonly clock: Clock;
  readonly config: SchedulerConfig;
  readonly vcpus: number;
  /** Wall time of at least 0.25 s between cycles, as engine time. */
  readonly minGapS: number;
}

/** What there is of an earlier life of the directory. */
export interface Earlier {
  /** Instances that may still live: their supervisors follow the old clock, so it must go on. */
  readonly live: boolean;
  /** Jobs that are not over. */
  readonly open: boolean;
  /** The last instant that the engine worked at; null in a new directory. */
  readonly lastMs: number | null;
}

const MIN_GAP_WALL_S = 0.25;
/** Wall time to stop a process that saves at once, and to start one that reads what was saved. */
const STOP_WALL_S = 0.5;
const RESTORE_WALL_S = 0.2;
/** EC2 bills per second since 2017-10-02 (AWS News Blog, "New: Per-Second Billing for EC2 Instances"). */
const PER_SECOND_SINCE_MS = Date.UTC(2017, 9, 2);
const fileOf = (dir: string): string => join(dir, 'world.json');

/** Decides which market the directory replays and where its clock stands, and writes it down. Throws `market.invalid`, `conflict`. */
export async function enterWorld(options: WorldOptions, earlier: Earlier): Promise<World> {
  const before = readRecord(options.dir);
  const market = options.market ?? (earlier.open || earlier.live ? (before?.market ?? null) : null);
  const seed = before !== null && (earlier.open || earlier.live) ? before.seed : options.seed;
  if (before !== null && (earlier.open || earlier.live) && before.market !== market) {
    throw new EbbError('conflict', {
      what: `${options.dir} holds unfinished work on another market`,
      got: market ?? 'the generated market',
      allowed: before.market ?? 'the generated market',
      next: 'leave --market out to go on, or use another --dir',
    });
  }
  if (before !== null && earlier.live && before.speed !== options.speed) {
    throw new EbbError('conflict', {
      what: `instances of ${options.dir} still run, at another speed`,
      got: `--speed ${options.speed}`,
      allowed: `--speed ${before.speed}`,
      next: `go on with --speed ${before.speed}`,
    });
  }
  const trace = market === null ? defaultMarket(seed) : (await openMarket(market, join(options.dir, 'markets'))).trace;
  const anchor = anchorOf(options, earlier, {
    before,
    startMs: startOf(trace, options.fromMs, market === null && seed === DEFAULT_SEED),
  });
  const record: WorldRecord = { version: 1, market, seed, ...anchor };
  const temporary = `${fileOf(options.dir)}.tmp`;
  writeFileSync(temporary, JSON.stringify(record));
  renameSync(temporary, fileOf(options.dir));
  return openWorld(record, trace, options.config);
}

/** The world as written down, for a second thread of the same engine. */
export async function knownWorld(dir: string, config: Partial<SchedulerConfig>): Promise<World> {
  const record = readRecord(dir);
  if (record === null) throw new EbbError('internal', { what: `no world has been entered in ${dir}` });
  const trace =
    record.market === null ? defaultMarket(record.seed) : (await openMarket(record.market, join(dir, 'markets'))).trace;
  return openWorld(record, trace, config);
}

function openWorld(record: WorldRecord, trace: MarketTrace, config: Partial<SchedulerConfig>): World {
  const { speed } = record;
  const minGapS = MIN_GAP_WALL_S * speed;
  const defaults = schedulerConfig.parse({});
  return {
    record,
    trace,
    clock: scaledClock(wallTime, record),
    config: schedulerConfig.parse({
      billing: raw(trace.endMs) < PER_SECOND_SINCE_MS ? 'per-hour' : 'per-second',
      // Wall-clock overheads of real processes weigh `speed` times as much in engine time.
      cyclePeriodS: Math.max(defaults.cyclePeriodS, 2 * minGapS),
      migrationS: Math.max(defaults.migrationS, STOP_WALL_S * speed),
      restoreS: Math.max(defaults.restoreS, RESTORE_WALL_S * speed),
      ...config,
    }),
    vcpus: Math.max(12, 6 * availableParallelism()),
    minGapS,
  };
}

function anchorOf(
  options: WorldOptions,
  earlier: Earlier,
  known: { readonly before: WorldRecord | null; readonly startMs: number },
): ClockAnchor {
  if (known.before !== null && earlier.live) return known.before;
  const engineMs = earlier.lastMs === null ? known.startMs : Math.max(earlier.lastMs, options.fromMs ?? 0);
  return { wallMs: wallTime.epochMs(), engineMs, speed: options.speed };
}

function startOf(trace: MarketTrace, fromMs: number | null, isDefault: boolean): number {
  if (fromMs === null) return raw(isDefault ? defaultMarketStartMs : trace.startMs);
  if (fromMs >= raw(trace.startMs) && fromMs < raw(trace.endMs)) return fromMs;
  const iso = (ms: number): string => new Date(ms).toISOString();
  throw new EbbError('usage', {
    what: '--from lies outside the market',
    got: iso(fromMs),
    allowed: `${iso(raw(trace.startMs))} to ${iso(raw(trace.endMs))}`,
    next: 'choose a time in between',
  });
}

function readRecord(dir: string): WorldRecord | null {
  const path = fileOf(dir);
  if (!existsSync(path)) return null;
  const parsed = worldSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  if (parsed.success) return parsed.data;
  throw new EbbError('store.corrupt', {
    what: 'the directory has a world.json that cannot be read',
    got: path,
    next: 'use another --dir, or remove the directory',
  });
}
