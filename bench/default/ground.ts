/** Grounds on which the default preset is judged: kinds of work on kinds of markets, and their cases as plain data. */
import type { SchedulerConfig } from '../../lib/domain/config.ts';
import type { EpochMs, Seconds } from '../../lib/kernel/units.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';

/** What may be looked at while presets are made, and what is reported: their data are in different files. */
export type Part = 'tune' | 'report';

export interface Asked {
  readonly part: Part;
  readonly quick: boolean;
  /** Folder of the data sets. */
  readonly data: string;
  readonly seed: number;
}

/** One case: the same work on the same market for all presets. Sent between processes. */
export interface GroundCase<Of = unknown> {
  readonly ground: string;
  /** Unit of resampling for intervals. Cases of one unit share prices. */
  readonly unit: string;
  /** Cases are summed within a group where a ground has several figures. */
  readonly group: string;
  /** Tells the cases of a ground apart. */
  readonly key: number;
  readonly of: Of;
}

/** A case ready to be simulated. */
export interface Scene {
  readonly trace: MarketTrace;
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
  readonly jobs: readonly WorkloadJob[];
  readonly config: Partial<SchedulerConfig>;
  readonly setupS: Seconds;
  readonly minGapS: Seconds;
  readonly vcpus: number;
  readonly seed: number;
  /** True if running times are told to all presets, as in "Can't Be Late". */
  readonly known: boolean;
  /** Jobs whose running times were learned before. */
  readonly earlier: readonly WorkloadJob[];
}

export interface Ground<Of = unknown> {
  readonly name: string;
  /** One sentence: work and market. */
  readonly about: string;
  /** Folders of data that it needs. */
  readonly needs: (part: Part) => readonly string[];
  readonly cases: (asked: Asked) => Promise<readonly Omit<GroundCase<Of>, 'ground' | 'key'>[]>;
  readonly scene: (of: Of, asked: Asked) => Promise<Scene>;
}

/** Spreads `count` of `items` evenly. */
export const spread = <T>(items: readonly T[], count: number): readonly T[] =>
  items.length <= count
    ? items
    : Array.from({ length: count }, (_, i) => items[Math.floor((i * items.length) / count)] as T);
