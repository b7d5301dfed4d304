import type { Points } from '../../market/dataset.ts';
import type { SignalSource } from '../signals.ts';

/** Streams of a market command; those of the process unless a test passes others. */
export interface MarketStreams {
  readonly stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
  readonly stderr: NodeJS.WritableStream & { isTTY?: boolean };
  /** Source of stop requests; absent: none. */
  readonly signals?: SignalSource;
}

export interface ImportFlags {
  readonly output?: string;
  readonly name?: string;
  readonly catalogue?: string;
  readonly maxIssues: number;
  readonly json?: boolean;
}

export interface GenerateFlags {
  readonly output: string;
  readonly seed?: number;
  readonly days?: number;
  readonly start?: number;
  readonly zones?: readonly string[];
  readonly types?: readonly string[];
  readonly regime: 'spiky' | 'smooth' | 'mixed';
  readonly temper: 'natural' | 'turbulent';
  readonly json?: boolean;
}

export interface ShowFlags {
  readonly pool?: readonly string[];
  readonly from?: number;
  readonly to?: number;
  readonly charts: number;
  readonly svg?: string;
  readonly html?: string;
  readonly catalogue?: string;
  readonly cache: string;
  /** Value of --no-color; undefined if the command stands alone. */
  readonly color?: boolean;
  readonly json?: boolean;
}

export interface DatasetFlags {
  readonly output: string;
  readonly seed: number;
  readonly instants: number;
  readonly bids: number;
  readonly points: Points;
  readonly train: number;
  readonly validation: number;
  readonly unseen: number;
  readonly catalogue?: string;
  readonly cache: string;
  readonly json?: boolean;
}
