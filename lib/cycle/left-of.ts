import type { EpochMs, Seconds } from '../kernel/units.ts';
import { forecastFor } from '../domain/forecast.ts';
import type { StageSpec } from '../domain/job.ts';
import type { RunningTask, Snapshot } from '../domain/snapshot.ts';
import type { Forecasts } from '../domain/stages.ts';
import { begunBy, quantileToDo } from '../domain/work-to-do.ts';

interface Known {
  readonly snapshot: Pick<Snapshot, 'nowMs'>;
  readonly forecasts: Pick<Forecasts, 'runtime'>;
}

/** What a running task still has to run, as one number for packing: the median. */
export function leftOf(running: RunningTask, { snapshot, forecasts }: Known): Seconds {
  const of = begunBy(running, snapshot.nowMs);
  const forecast = forecastFor(forecasts.runtime, running);
  return forecast === undefined ? of.ranS : quantileToDo(forecast.runtime, of, 0.5);
}

export type LeftOf = (running: RunningTask) => Seconds;

/** `leftOf` for what runs, one after the other: most of a stage began together with others of it, and have as much left. */
export function leftOfEach(of: Known): LeftOf {
  /** Of each stage, for each time at which any of it began the one that was asked about last. */
  const known = new Map<StageSpec, Map<EpochMs | null, Asked>>();
  let last: Asked | null = null;
  return (running) => {
    if (last !== null && isAsFar(running, last.running)) return last.leftS;
    let begun = known.get(running.stage);
    if (begun === undefined) known.set(running.stage, (begun = new Map<EpochMs | null, Asked>()));
    const { startedMs } = running.attempt;
    const before = begun.get(startedMs);
    if (before !== undefined && isAsFar(running, before.running)) last = before;
    else begun.set(startedMs, (last = { running, leftS: leftOf(running, of) }));
    return last.leftS;
  };
}

interface Asked {
  readonly running: RunningTask;
  readonly leftS: Seconds;
}

const isAsFar = (a: RunningTask, b: RunningTask): boolean =>
  a.stage === b.stage &&
  a.attempt.job === b.attempt.job &&
  a.attempt.startedMs === b.attempt.startedMs &&
  a.attempt.resumedFromS === b.attempt.resumedFromS &&
  a.readS === b.readS &&
  a.ranS === b.ranS;
