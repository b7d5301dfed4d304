import { EbbError } from '../kernel/errors.ts';
import { once } from '../kernel/once.ts';
import { epochMs, mib, milliCpu, raw, usdPerHour, type EpochMs, type UsdPerHour } from '../kernel/units.ts';
import type { Arch, InstanceType } from '../domain/pool.ts';
import { EARLIER_PRICES, FAMILY_RULES } from './catalogue-table.ts';

/** An instance type with its on-demand price. */
export interface CatalogueEntry {
  readonly type: InstanceType;
  readonly onDemandUsdPerHour: UsdPerHour;
}

/** Capacities and on-demand prices by instance type. Prices are those in force at the asked instant. */
export interface Catalogue {
  readonly name: string;
  /** Null for a type it does not know. */
  entry(type: string, at: EpochMs): CatalogueEntry | null;
  /** Every type it knows, sorted by name. */
  types(): readonly string[];
}

/** Plain facts of one type, as in catalogue files. */
export interface TypeFacts {
  readonly name: string;
  readonly arch: Arch;
  readonly vcpus: number;
  readonly memoryMiB: number;
  readonly gpus: number;
  /** Local instance store, decimal gigabytes. */
  readonly localGb: number;
  readonly usdPerHour: number;
}

/**
 * EBS volume that every instance is taken to have besides its instance store, so that types without one can hold a
 * job's files. EBS is billed apart from the instance and is not in any price here.
 */
export const EBS_VOLUME_GIB = 100;

/** Digits of the family: `c5d` 5, `im4gn` 4; 0 for a family without one. */
export const generationOf = (family: string): number => Number(/\d+/.exec(family)?.[0] ?? 0);

const familyOf = (name: string): string => name.slice(0, Math.max(0, name.indexOf('.')));

/** The domain's instance type for plain facts. */
export function instanceType(facts: TypeFacts): InstanceType {
  const family = familyOf(facts.name);
  const localMiB = (facts.localGb * 1e9) / 1048576;
  return {
    name: facts.name,
    family,
    generation: generationOf(family),
    arch: facts.arch,
    capacity: {
      cpu: milliCpu(facts.vcpus * 1000),
      memory: mib(facts.memoryMiB),
      gpus: facts.gpus,
      disk: mib(EBS_VOLUME_GIB * 1024 + Math.floor(localMiB)),
    },
  };
}

/**
 * A catalogue with one price per type for all time, such as one read from a file. `fallback` answers for types it
 * lacks.
 */
export function catalogueOf(name: string, facts: Iterable<TypeFacts>, fallback?: Catalogue): Catalogue {
  const entries = new Map<string, CatalogueEntry>();
  for (const f of facts) {
    entries.set(f.name, { type: instanceType(f), onDemandUsdPerHour: usdPerHour(f.usdPerHour) });
  }
  return {
    name,
    entry: (type, at) => entries.get(type) ?? fallback?.entry(type, at) ?? null,
    types: () => [...new Set([...entries.keys(), ...(fallback?.types() ?? [])])].sort(),
  };
}

/**
 * The catalogue that ships with Ebbtide: us-east-1, Linux, prices of 2015, 2016, 2017 and today. Parsed at the first
 * call.
 */
export const builtInCatalogue: () => Catalogue = once(() =>
  withEarlierPrices(catalogueOf('built-in', FAMILY_RULES.trim().split('\n').flatMap(familyFacts))),
);

function withEarlierPrices(now: Catalogue): Catalogue {
  const eras = EARLIER_PRICES.map(({ untilMs, prices }) => ({ untilMs, prices: pairs(prices) }));
  return {
    ...now,
    entry: (type, at) => {
      const entry = now.entry(type, at);
      if (entry === null) return null;
      const then = eras.find((era) => raw(at) < era.untilMs && era.prices.has(type))?.prices.get(type);
      return then === undefined ? entry : { ...entry, onDemandUsdPerHour: usdPerHour(then) };
    },
  };
}

function pairs(text: string): ReadonlyMap<string, number> {
  const words = text.split(' ');
  const map = new Map<string, number>();
  for (let i = 0; i + 1 < words.length; i += 2) map.set(words[i] ?? '', Number(words[i + 1]));
  return map;
}

/** Every type of one line of FAMILY_RULES. */
export function familyFacts(line: string): readonly TypeFacts[] {
  const [family = '', archWord = '', gibPerVcpu = '', usdPerVcpu = '', ...sizes] = line.split(' ');
  const arch: Arch = archWord === 'arm' ? 'arm64' : 'x86_64';
  return sizes.map((text) => {
    const found = /^([a-z\d-]+)(?::(\d+))?(?:~([\d.]+))?(?:@([\d.]+))?(?:\*(\d+))?(?:\+(\d+))?$/.exec(text);
    if (found === null) throw new EbbError('internal', { what: `family rule of ${family}`, got: text });
    const [, size = '', vcpuText, gib, price, gpus, localGb] = found;
    const vcpus = vcpuText === undefined ? vcpusOfSize(size) : Number(vcpuText);
    return {
      name: `${family}.${size}`,
      arch,
      vcpus,
      memoryMiB: Math.round(1024 * (gib === undefined ? Number(gibPerVcpu) * vcpus : Number(gib))),
      gpus: Number(gpus ?? 0),
      localGb: Number(localGb ?? 0),
      // Published prices have at most five decimals; the family rate is rounded to six.
      usdPerHour: price === undefined ? Math.round(Number(usdPerVcpu) * vcpus * 1e5) / 1e5 : Number(price),
    };
  });
}

function vcpusOfSize(size: string): number {
  if (size === 'medium') return 1;
  if (size === 'large') return 2;
  const multiple = /^(\d*)xlarge$/.exec(size)?.[1];
  if (multiple === undefined) throw new EbbError('internal', { what: 'size without a rule for its vCPUs', got: size });
  return 4 * Number(multiple === '' ? 1 : multiple);
}

/** Instant for present prices. */
export const TODAY: EpochMs = epochMs(Date.UTC(2026, 6, 20));
