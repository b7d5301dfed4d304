import { accessSync, constants, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { nearestHint } from '../domain/nearest-name.ts';
import { schedulerConfig, type SchedulerConfig } from '../domain/config.ts';
import { EbbError } from '../kernel/errors.ts';
import type { LocalEngineOptions } from '../drivers/local/engine/local-engine.ts';
import { rowsOfNeighboursFile } from '../policy/colocation/neighbours-file.ts';
import type { EngineOptions } from './flags/engine-flags.ts';
import { readSettings } from './settings-file.ts';

/** Message after a stop during the opening, which may import a market first. */
export const NOT_BEGUN = 'stopped: the engine had not begun';

/**
 * Options of `run` and `up` for the engine: absolute paths and checked settings. Missing ones stay open: the engine's
 * directory has those of its last opening. Throws `usage`.
 */
export function embeddedOptions(options: EngineOptions, cwd: string, dumpModel?: string): LocalEngineOptions {
  const { preset, ...config } = givenSettings(options, cwd);
  const asSetting = options.set?.['preset'];
  if (asSetting !== undefined && options.preset !== undefined && asSetting !== options.preset) {
    throw new EbbError('usage', {
      what: 'two presets were named',
      got: `--preset ${options.preset} and --set preset=${JSON.stringify(asSetting)}`,
      next: 'leave one out',
    });
  }
  return {
    dir: resolve(cwd, options.dir),
    market: options.market === undefined ? null : resolve(cwd, options.market),
    ...(options.cluster === undefined ? {} : { cluster: options.cluster }),
    fromMs: options.from ?? null,
    speed: options.speed ?? null,
    seed: options.seed ?? null,
    preset: options.preset ?? preset ?? null,
    config,
    ...(options.vcpus === undefined ? {} : { vcpus: options.vcpus }),
    ...(options.disk === undefined ? {} : { diskBytes: options.disk }),
    ...(options.neighbours === undefined ? {} : { learned: neighboursIn(resolve(cwd, options.neighbours)) }),
    dumpModel: dumpModel === undefined ? null : writable(resolve(cwd, dumpModel)),
  };
}

/** Rows of an exported file. Throws `usage`, or the system's error if it cannot be read. */
const neighboursIn = (path: string): ReadonlyMap<string, string> =>
  rowsOfNeighboursFile(readFileSync(path, 'utf8'), path);

/** Path of a file that each decision writes later. Throws the system's error if its folder cannot be written. */
function writable(path: string): string {
  accessSync(dirname(path), constants.W_OK);
  return path;
}

/** Settings of `--settings FILE`, then those of `--set`, each checked. Throws `usage`. */
export function givenSettings(
  { settings, set }: Pick<EngineOptions, 'settings' | 'set'>,
  cwd: string,
): Partial<SchedulerConfig> {
  const inFile = settings === undefined ? {} : readSettings(settings, cwd);
  const checked = checkedSettings({ ...inFile, ...set });
  const { policyModules } = checked;
  if (policyModules === undefined) return checked;
  const folder = set?.['policyModules'] === undefined && settings !== undefined ? dirname(resolve(cwd, settings)) : cwd;
  return { ...checked, policyModules: policyModules.map((path) => resolve(folder, path)) };
}

/** Checked settings, given ones only. Reports all findings at once; misspelt names come with the nearest one. */
export function checkedSettings(given: Readonly<Record<string, unknown>>): Partial<SchedulerConfig> {
  const names = Object.keys(schedulerConfig.shape);
  const parsed = schedulerConfig.safeParse(given);
  if (parsed.success) {
    return Object.fromEntries(Object.entries(parsed.data).filter(([name]) => Object.hasOwn(given, name)));
  }
  const issues = parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ at: key, message: `no such setting; ${nearestHint(key, names)}` }))
      : [{ at: issue.path.join('.'), message: issue.message }],
  );
  throw new EbbError('usage', {
    what: 'these settings are not possible',
    issues,
    next: 'see `ebb config` for the settings and their meaning',
  });
}
