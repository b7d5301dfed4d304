import type { Risk } from '../../models/preemption.ts';

export interface DirOptions {
  readonly dir: string;
  readonly risk: Risk;
}

export type ListOptions = DirOptions;

export type ShowOptions = DirOptions;

export interface UseOptions extends DirOptions {
  readonly rollback?: boolean;
  readonly why?: string;
}

/** Options of commands that draw bids from prices. */
export interface DrawnOptions extends DirOptions {
  readonly markets?: readonly string[];
  readonly catalogue?: string;
  readonly seed: number;
  /** Number of draws; absent: the default of the command. */
  readonly instants?: number;
}

export type EvaluateOptions = DrawnOptions;

export interface TrainOptions extends DrawnOptions {
  readonly model: 'trees' | 'lstm';
  readonly name?: string;
  readonly python?: string;
}
