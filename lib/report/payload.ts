/** Data of the report for its page's script: small figures as JSON, columns as blobs beside it. Types only. */
import type { BatchClass } from '../domain/job.ts';
import type { PurchaseOption } from '../domain/pool.ts';
import type { PriceSeries } from './prices.ts';

/**
 * Numbers with `bytes` per value: 8 is Float64, 4 is Float32, little-endian, split into planes (columns.ts). NaN:
 * missing.
 */
export interface NumberColumn {
  readonly blob: number;
  readonly bytes: 4 | 8;
}

/** Texts: the distinct ones as a JSON array, and their index by row (Uint32 planes); null: one text per row. */
export interface TextColumn {
  readonly dictionary: number;
  readonly index: number | null;
}

export const JOB_TEXTS = ['key', 'name', 'owner', 'class', 'state'] as const;
export const JOB_TIMES = ['submittedMs', 'startedMs', 'finishedMs', 'deadlineMs'] as const;
export const JOB_NUMBERS = [
  'tasks',
  'workUsd',
  'wastedUsd',
  'speculativeUsd',
  'movedUsd',
  'idleUsd',
  'onDemandUsd',
  'interruptions',
] as const;
export type JobText = (typeof JOB_TEXTS)[number];
export type JobNumber = (typeof JOB_TIMES)[number] | (typeof JOB_NUMBERS)[number];

export interface JobsPayload {
  readonly rows: number;
  readonly texts: Readonly<Record<JobText, TextColumn>>;
  readonly numbers: Readonly<Record<JobNumber, NumberColumn>>;
}

export interface PoolPayload {
  readonly pool: string;
  readonly option: PurchaseOption;
  readonly launches: number;
  readonly interruptions: number;
  readonly refused: number;
  readonly hours: number;
  readonly billedUsd: number;
  readonly onDemandUsd: number;
}

export interface RunPayload {
  readonly preset: string;
  readonly fromMs: number;
  readonly endMs: number;
  readonly seed: number;
  readonly ended: string;
  /** Null if the report would be too large: figures only. */
  readonly jobs: JobsPayload | null;
  readonly series: Readonly<Record<'atMs' | 'vcpus' | PurchaseOption, NumberColumn>>;
  readonly pools: readonly PoolPayload[];
  /** Refused jobs: their number by reason, with the first few of each. */
  readonly refused: readonly RefusedPayload[];
}

export interface RefusedPayload {
  readonly code: string;
  readonly count: number;
  readonly first: readonly { readonly key: string; readonly what: string }[];
}

/** Points of a distribution function, pooled over a preset's runs: value, and share of jobs up to it. */
export interface Curve {
  readonly preset: string;
  readonly jobs: number;
  readonly points: readonly (readonly [number, number])[];
}

export interface CostPayload {
  readonly preset: string;
  readonly workUsd: number;
  readonly wastedUsd: number;
  readonly speculativeUsd: number;
  readonly movedUsd: number;
  readonly idleUsd: number;
  readonly onDemandUsd: number;
}

export interface Payload {
  readonly presets: readonly string[];
  readonly costs: readonly CostPayload[];
  readonly completionS: Readonly<Record<BatchClass, readonly Curve[]>>;
  readonly latenessS: readonly Curve[];
  readonly runs: readonly RunPayload[];
  readonly prices: readonly PriceSeries[];
}
