import { shellWord } from '../format.ts';
import { jsonOrText } from '../options.ts';
import type { SimulateOptions } from '../flags/simulate-flags.ts';
import type { Stragglers } from '../../drivers/sim/stragglers.ts';
import { MIGRATION_MB_PER_S } from '../../domain/config.ts';

/** Options that determine the result, in order of display. */
const DECIDES = [
  'workload',
  'replay',
  'service',
  'requests',
  'rate',
  'for',
  'requestTime',
  'market',
  'cluster',
  'preset',
  'compare',
  'from',
  'to',
  'windows',
  'seeds',
  'seed',
  'scale',
  'jobsLimit',
  'workloadOption',
  'set',
  'vcpus',
  'gap',
  'setup',
  'stragglers',
  'migrationRate',
] as const satisfies readonly (keyof SimulateOptions)[];

/** Command line with these options, for a shell. */
export function commandOf(options: SimulateOptions): string {
  const words = DECIDES.flatMap((name): string[] => {
    const flag = `--${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`;
    const value = options[name];
    const word = (text: string): string => `${flag} ${shellWord(text)}`;
    if (value === undefined || value === UNSAID[name]) return [];
    if (name === 'from' || name === 'to') return [word(new Date(value as number).toISOString())];
    if (name === 'stragglers') return [word(stragglersText(value as Stragglers))];
    if (name === 'service') return (value as readonly string[]).map(word);
    if (Array.isArray(value)) return [word(value.join(','))];
    if (typeof value === 'object') return Object.entries(value).map(([k, v]) => word(`${k}=${settingText(v)}`));
    return [word(String(value))];
  });
  return ['ebb simulate', ...words].join(' ');
}

const stragglersText = (of: Stragglers): string => (of === 'siblings' ? of : `pareto:${of.beta}`);

/** Text of a setting, quoted if it would be read as another type. */
const settingText = (value: unknown): string =>
  typeof value === 'string' && jsonOrText(value) === value ? value : JSON.stringify(value);

/** Defaults of options. */
const UNSAID: Partial<Record<keyof SimulateOptions, unknown>> = {
  windows: 1,
  seeds: 1,
  setup: 0,
  migrationRate: MIGRATION_MB_PER_S,
};
