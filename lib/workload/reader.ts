import type { JobSpec } from '../domain/job.ts';
import type { ResolvedOptions } from './options.ts';
import type { SourceFile } from './source.ts';
import type { Tally } from './tally.ts';
import type { StageTruth } from './workload.ts';

/** Job as a reader finds it: times of the trace, no class yet. */
export interface Submission {
  readonly key: string;
  readonly file: string;
  /** Line in the file; 0 for formats without lines. */
  readonly line: number;
  /** Seconds of the trace. */
  readonly atS: number;
  /** True for production work of the trace; null: unknown. */
  readonly production: boolean | null;
  readonly spec: JobSpec;
  readonly truth: ReadonlyMap<string, StageTruth>;
}

export interface ReadContext {
  readonly options: ResolvedOptions;
  readonly tally: Tally;
}

/** Reader of one format. A new one is a file, and a line in registry.ts. */
export interface Reader {
  readonly format: string;
  /** Description in lists of formats, one line. */
  readonly about: string;
  /** Assumptions where the trace has no data. */
  readonly notes: (options: ResolvedOptions) => readonly string[];
  /** Present if jobs have their own class and deadline, which then stay. */
  readonly keepsClass?: true;
  /** Present if the trace distinguishes production from other work. */
  readonly tellsProduction?: true;
  /** Present if several files make one workload. Absent: each file is one. */
  readonly takesFolders?: true;
  /** Number of jobs, if known before reading. */
  readonly jobs?: number;
  /** True for a file of this format. */
  readonly detects: (file: SourceFile) => boolean;
  /**
   * Jobs by `atS`, ties in file order. Unusable input is counted in the tally and dropped. Only a file of another
   * format is an error (EbbError `workload.invalid`).
   */
  readonly read: (files: readonly SourceFile[], context: ReadContext) => AsyncIterable<Submission>;
}
