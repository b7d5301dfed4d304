import type { JobSpec } from '../domain/job.ts';
import type { ResolvedOptions } from './options.ts';
import type { SourceFile } from './source.ts';
import type { Tally } from './tally.ts';
import type { StageTruth } from './workload.ts';

/** A job as a reader finds it: times are the trace's own, the class is not yet given. */
export interface Submission {
  readonly key: string;
  readonly file: string;
  /** Where it is in the file; 0 where a format has no lines. */
  readonly line: number;
  /** Seconds of the trace. */
  readonly atS: number;
  /** Whether the trace calls it production; null when it does not tell. */
  readonly production: boolean | null;
  readonly spec: JobSpec;
  readonly truth: ReadonlyMap<string, StageTruth>;
}

export interface ReadContext {
  readonly options: ResolvedOptions;
  readonly tally: Tally;
}

/** One format. Adding one is adding a file with one of these, and a line in registry.ts. */
export interface Reader {
  readonly format: string;
  /** One line for lists of formats. */
  readonly about: string;
  /** What is assumed where the trace says nothing. */
  readonly notes: (options: ResolvedOptions) => readonly string[];
  /** Whether jobs come with their own class and deadline, which then stay. */
  readonly keepsClass?: true;
  /** Whether the trace tells production from other work. */
  readonly tellsProduction?: true;
  /** Whether several files make one workload. Absent: one file is one. */
  readonly takesFolders?: true;
  /** How many jobs there are, where that is known before they are read. */
  readonly jobs?: number;
  /** Whether a file is of this format. */
  readonly detects: (file: SourceFile) => boolean;
  /**
   * The jobs by `atS`, ties in the order of the file. What cannot be used is counted in the tally and left out; only a
   * file that is not of the format at all is an error (EbbError `workload.invalid`).
   */
  readonly read: (files: readonly SourceFile[], context: ReadContext) => AsyncIterable<Submission>;
}
