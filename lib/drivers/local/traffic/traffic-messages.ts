import type { ErrorCode, ErrorFacts } from '../../../kernel/errors.ts';
import type { PeriodMeasures } from '../../../domain/service.ts';
import type { Route, TargetState } from '../../../ports/traffic.ts';

/** A service that cannot have its route. As an object an error would lose its class between threads. */
export interface Refused {
  readonly service: string;
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;
}

/** Questions to the proxy's thread, each with its answer. */
export interface TrafficCalls {
  readonly route: {
    readonly given: { readonly routes: readonly Route[]; readonly kept: readonly string[] };
    /** Services without a route, each with why. */
    readonly answer: readonly Refused[];
  };
  readonly states: { readonly given: string; readonly answer: readonly TargetState[] };
  readonly take: {
    readonly given: string;
    readonly answer: Omit<PeriodMeasures, 'replicas' | 'fromMs' | 'toMs'> | null;
  };
  readonly address: { readonly given: string; readonly answer: string | null };
  readonly close: { readonly given: null; readonly answer: null };
}

export type CallName = keyof TrafficCalls;

export type ToTraffic = {
  readonly [Name in CallName]: {
    readonly id: number;
    readonly call: Name;
    readonly given: TrafficCalls[Name]['given'];
  };
}[CallName];

export type FromTraffic =
  | { readonly id: number; readonly answer: TrafficCalls[CallName]['answer'] }
  /** As an object the error would lose its class between threads. */
  | { readonly id: number; readonly error: { readonly code: ErrorCode; readonly facts: ErrorFacts } };
