import type { Stragglers } from '../../drivers/sim/stragglers.ts';

export interface SimulateOptions {
  readonly workload?: string;
  readonly replay?: string;
  /** Paths of service files. */
  readonly service?: readonly string[];
  /** Path of a trace of requests. */
  readonly requests?: string;
  /** Requests per second. */
  readonly rate?: number;
  /** Time in which requests come, s. */
  readonly for?: number;
  /** Seconds of a vCPU. */
  readonly requestTime?: number;
  readonly market?: string;
  readonly cluster?: string;
  readonly preset?: string;
  readonly compare?: readonly string[];
  /** Epoch ms. */
  readonly from?: number;
  readonly to?: number;
  readonly windows: number;
  readonly seeds: number;
  readonly seed?: number;
  readonly scale?: number;
  readonly jobsLimit?: number;
  readonly workloadOption?: Readonly<Record<string, unknown>>;
  /** Path of a file. */
  readonly settings?: string;
  readonly set?: Readonly<Record<string, unknown>>;
  readonly vcpus?: number;
  readonly gap?: number;
  readonly setup: number;
  readonly stragglers?: Stragglers;
  /** MB/s. */
  readonly migrationRate: number;
  readonly report?: string;
  readonly log?: string;
  readonly dir: string;
}
