/** Presets as they extend one another. Reads no policy, so that processes that decide nothing load none. */
import type { SchedulerConfig } from '../domain/config.ts';
import { nearestOrAll } from '../domain/nearest-name.ts';
import type { PresetSetting } from '../domain/preset-settings.ts';
import type { PresetSpec } from '../domain/preset-spec.ts';
import { EbbError } from '../kernel/errors.ts';
import { SHIPPED_PRESETS } from './presets.ts';

export type GivenSettings = Partial<Pick<SchedulerConfig, PresetSetting>>;

/** Presets to find names in. */
export interface KnownPresets {
  readonly own: SchedulerConfig['presets'];
  /** Names beside the presets, for messages. */
  readonly others?: readonly string[];
}

/** The preset merged with those it extends; its own values win. Throws `usage` for unknown names and circles. */
export function wholePreset(name: string, known: KnownPresets, seen: readonly string[] = []): PresetSpec {
  if (seen.includes(name)) {
    throw new EbbError('usage', {
      what: `the preset ${name} extends itself`,
      got: [...seen, name].join(' -> '),
      next: 'extend a shipped preset: see `ebb config --presets`',
    });
  }
  const spec = specNamed(name, known, seen.at(-1));
  if (spec.extends === undefined) return spec;
  const base = wholePreset(spec.extends, known, [...seen, name]);
  const settings = { ...base.settings, ...spec.settings };
  return { ...base, ...spec, ...(Object.keys(settings).length > 0 && { settings }) };
}

/** One preset as it is written. Throws `usage` for an unknown name, with the nearest one. */
export function specNamed(
  name: string,
  { own, others = [] }: KnownPresets,
  extendedBy: string | undefined,
): PresetSpec {
  const isShipped = Object.hasOwn(SHIPPED_PRESETS, name);
  if (isShipped && Object.hasOwn(own, name)) {
    throw new EbbError('usage', {
      what: '`presets` may not replace a shipped preset',
      got: name,
      next: 'give yours another name, and let it extend the shipped one',
    });
  }
  const spec = isShipped ? SHIPPED_PRESETS[name] : Object.hasOwn(own, name) ? own[name] : undefined;
  if (spec !== undefined) return spec;
  throw new EbbError('usage', {
    what: extendedBy === undefined ? 'no such preset' : `the preset ${extendedBy} extends one that does not exist`,
    got: name,
    allowed: nearestOrAll(name, [...Object.keys(SHIPPED_PRESETS), ...Object.keys(own), ...others]),
    next: 'see `ebb config --presets`',
  });
}

/**
 * The deployment's settings with those of the preset in their place. Each driver makes them once, for everything that
 * reads settings: stages, admission, explanations, forecasts. Repeated it changes nothing. Throws as `wholePreset`.
 */
export function settingsUnder(preset: string, config: SchedulerConfig): SchedulerConfig {
  const given = givenSettings(wholePreset(preset, { own: config.presets }));
  return Object.keys(given).length === 0 ? config : { ...config, ...given };
}

/** Settings that a preset gives. */
export const givenSettings = ({ settings = {} }: PresetSpec): GivenSettings =>
  Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
