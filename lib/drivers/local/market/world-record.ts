import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { SchedulerConfig } from '../../../domain/config.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { DEFAULT_SEED } from '../../../market/default-market.ts';
import { replaceFile } from '../fleet/files.ts';

/** Everything that an engine of the directory was opened with: a restart goes on in the same world. */
const worldSchema = z.object({
  version: z.literal(1),
  /** Absolute path; null: the generated market of `seed`. */
  market: z.string().nullable(),
  /** Machines of the user's own (lib/market/cluster.ts), beside the market or, without one, alone. Absent: none. */
  cluster: z.string().optional(),
  /** Requested start of the directory in the market; null: the market's start. */
  fromMs: z.number().nullable().default(null),
  seed: z.number(),
  preset: z.string().default('ebbtide'),
  /** Only the settings that were given; the others follow from the speed and the market. */
  settings: z.record(z.string(), z.unknown()).default({}),
  wallMs: z.number(),
  engineMs: z.number(),
  speed: z.number().positive(),
  /** Most vCPUs running at once, as the machine of the time had it; absent in records of earlier versions. */
  vcpus: z.number().positive().optional(),
  /** True if that limit was given (`--vcpus`), rather than derived from the machine. */
  vcpusGiven: z.boolean().optional(),
  /** Most bytes that the directory may use (`--disk`); absent: derived from the free space at each start. */
  diskBytes: z.number().positive().optional(),
});
export type WorldRecord = z.infer<typeof worldSchema>;

/** Options of an engine's opening; null or absent: not given. */
export interface GivenWorld {
  /** Absolute path of a market. */
  readonly market: string | null;
  /** Machines of the user's own. Absent: not given. */
  readonly cluster?: string;
  /** Epoch ms of market time at which a new directory begins. */
  readonly fromMs: number | null;
  readonly speed: number | null;
  readonly seed: number | null;
  readonly preset: string | null;
  readonly config: Partial<SchedulerConfig>;
  /** Most vCPUs running at once; absent: as before while work is unfinished, else derived from the machine. */
  readonly vcpus?: number;
  /** Most bytes that the directory may use; absent: as before while work is unfinished, else by the free space. */
  readonly diskBytes?: number;
}
/** The same with every option decided; without the clock's anchor. */
export type ChosenWorld = Omit<WorldRecord, 'version' | 'wallMs' | 'engineMs' | 'vcpus' | 'vcpusGiven' | 'diskBytes'>;

/** Remains of an earlier life of the directory. */
export interface Earlier {
  /** Instances that may still live: their supervisors follow the old clock, so it must go on. */
  readonly live: boolean;
  /** Jobs that are not over. */
  readonly open: boolean;
  /** The last instant that the engine worked at; null in a new directory. */
  readonly lastMs: number | null;
}

const DEFAULT_SPEED = 1;
const DEFAULT_PRESET = 'ebbtide';
const fileOf = (dir: string): string => join(dir, 'world.json');

/** Null in a directory that no engine has entered. Throws `store.corrupt`. */
export function readWorldRecord(dir: string): WorldRecord | null {
  const path = fileOf(dir);
  if (!existsSync(path)) return null;
  const parsed = worldSchema.safeParse(parsedOrNull(readFileSync(path, 'utf8')));
  if (parsed.success) return parsed.data;
  throw new EbbError('store.corrupt', {
    what: 'the directory has a world.json that cannot be read',
    got: path,
    next: 'make the folder again from a backup (`ebb restore FILE`, docs/local-mode.md), or use another --dir',
  });
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

export function writeWorldRecord(dir: string, record: WorldRecord): void {
  replaceFile(fileOf(dir), JSON.stringify(record), true);
}

/**
 * World of a directory without unfinished work: given options, and defaults. It stays on the market of `before` unless
 * another is given: its clock goes on, and a replay of its jobs needs the prices that they had.
 */
export const newWorld = (given: GivenWorld, before: WorldRecord | null): ChosenWorld => ({
  ...marketFor(given, before),
  preset: given.preset ?? DEFAULT_PRESET,
  settings: given.config,
  speed: given.speed ?? DEFAULT_SPEED,
});

function marketFor(
  given: GivenWorld,
  before: WorldRecord | null,
): Pick<ChosenWorld, 'market' | 'cluster' | 'fromMs' | 'seed'> {
  const kept = given.market === null && given.cluster === undefined ? before : null;
  const cluster = given.cluster ?? kept?.cluster;
  return {
    ...(cluster === undefined ? {} : { cluster }),
    market: given.market ?? kept?.market ?? null,
    fromMs: given.fromMs ?? (given.seed === null ? (kept?.fromMs ?? null) : null),
    seed: given.seed ?? kept?.seed ?? DEFAULT_SEED,
  };
}

/**
 * World in which unfinished work goes on: as recorded. Options given again must agree with it (`conflict`), because
 * bills, deadlines and forecasts of that work would change their meaning. The speed may change while no instance lives,
 * since it only sets the clock's pace from here on, and `historyDays` at any time, since it concerns finished work.
 */
export function sameWorld(
  dir: string,
  given: GivenWorld,
  known: { readonly before: WorldRecord; readonly config: SchedulerConfig; readonly live: boolean },
): ChosenWorld {
  const { before, config, live } = known;
  const differing: { readonly option: string; readonly got: string; readonly kept: string }[] = [];
  const compare = (option: string, got: number | string | null, kept: number | string | null): void => {
    if (got === null || got === kept) return;
    differing.push({ option, got: `${option} ${got}`, kept: kept === null ? `no ${option}` : `${option} ${kept}` });
  };
  compare('--market', given.market, before.market);
  compare('--cluster', given.cluster ?? null, before.cluster ?? null);
  compare('--from', timeText(given.fromMs), timeText(before.fromMs));
  compare('--seed', given.seed, before.seed);
  compare('--preset', given.preset, before.preset);
  if (live) compare('--speed', given.speed, before.speed);
  const { historyDays, ...others } = given.config;
  for (const [name, value] of Object.entries(others)) {
    const kept = config[name as keyof SchedulerConfig];
    if (isDeepStrictEqual(value, kept)) continue;
    const option = `--set ${name}`;
    differing.push({ option, got: `${option}=${JSON.stringify(value)}`, kept: `${option}=${JSON.stringify(kept)}` });
  }
  if (differing.length > 0) {
    throw new EbbError('conflict', {
      what: `${dir} holds unfinished work that was started with other options`,
      got: differing.map((d) => d.got).join(', '),
      allowed: differing.map((d) => d.kept).join(', '),
      next: `leave ${differing.map((d) => d.option).join(', ')} out to go on with that work, or use another --dir`,
    });
  }
  const { market, cluster, fromMs, seed, preset, speed } = before;
  const settings = historyDays === undefined ? before.settings : { ...before.settings, historyDays };
  const world = { market, fromMs, seed, preset, settings, speed: given.speed ?? speed };
  return cluster === undefined ? world : { ...world, cluster };
}

const timeText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
