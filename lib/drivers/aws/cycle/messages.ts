/**
 * What the state machine hands from step to step: small, plain JSON. What is large is a reference (blobs.ts).
 *
 *   CycleStart -> look -> Looked -> estimate -> Estimated  \
 *                                -> forecast -> Forecasted  > solve -> Solved -> record -> Recorded
 *   Recorded -> act, once per batch -> Acted -> confirm -> Confirmed -> (look again with Confirmed | done)
 *
 *   estimate or solve, threw or never came back -> isolate -> Solved, without the jobs to blame -> record
 *
 *   any of them, failed for good -> acquire, which frees the execution's place -> the execution fails
 *
 * Each step is given the answers before it, merged: `solve` those of look, estimate and forecast; `act` those of record
 * with `batch`; `confirm` those of record with `acted`. Keys that a step does not know are left out, not refused.
 */
import { z } from 'zod';

const reference = z.string().min(1);
/** Names the run of the state machine; part of the names of what its steps leave. */
const execution = z.string().regex(/^[\w.:-]{1,200}$/);
const round = z.number().int().nonnegative();

/**
 * By the state machine's clock, which is one, as those of two Lambdas are not. Absent where an earlier version of it
 * runs.
 */
const instant = z.iso.datetime({ offset: true }).optional();

export const cycleStart = z.object({
  execution,
  /** How often this execution has looked before. */
  round: round.default(0),
  /** When the execution began. */
  began: instant,
});
export type CycleStart = z.output<typeof cycleStart>;

const looked = z.object({
  execution,
  round,
  began: instant,
  /** Wall time at which this round began. */
  lookedMs: z.number(),
  /** Triggers that this round serves (wake.ts). */
  seen: z.number(),
  /** The fencing token. */
  token: z.number(),
  /** Wall time after which to look again though nothing happens. */
  dueInMs: z.number().nonnegative(),
  sight: reference,
});
export type Looked = z.output<typeof looked>;
/** Idle: nothing is left to do, or another execution has taken the place of this one. */
export type LookAnswer = { readonly idle: true } | ({ readonly idle: false } & Looked);

export const estimateInput = looked.pick({ execution: true, round: true, began: true, sight: true });

export const forecastInput = looked.pick({ execution: true, round: true, began: true, sight: true });

/** The API asks the same function about some pools, by their ids. */
export const forecastAsked = z.object({ pools: z.array(z.string().min(1)) });
export type ForecastAsked = z.output<typeof forecastAsked>;

export const solveInput = looked.extend({ runtime: reference, market: reference });
/**
 * Where no estimate or no decision could be made: all that a decision is made of but the estimate, which trials make
 * anew.
 */
export const isolateInput = looked.extend({ market: reference });
const solved = looked.omit({ sight: true }).extend({ decision: reference });
export type Solved = z.output<typeof solved>;

export const recordInput = solved;
/**
 * `size`: effects that one `act` does, some seconds of calls to EC2 and ECS. `most`: effects of one cycle, half a
 * minute or so of them. Effects beyond the cap are left to the next cycle, oldest first.
 */
export const PARTS = { size: 25, most: 1000 };
/**
 * What the outcomes of all parts may take of the 256 KiB that the state machine carries; larger ones are references.
 */
export const OUTCOMES_BYTES = 65_536;
/** Positions [from, to) in the list of keys. */
const batch = z.object({ from: z.number().int().nonnegative(), to: z.number().int().positive() });
const recorded = looked.omit({ sight: true }).extend({
  keys: reference,
  batches: z.array(batch),
  /**
   * Open effects beyond what this cycle does: another one follows at once. Absent: an earlier version of `record` says
   * nothing of it.
   */
  left: z.number().int().nonnegative().default(0),
});
export type Recorded = z.output<typeof recorded>;

export const actInput = recorded
  .pick({ execution: true, round: true, began: true, keys: true, batches: true })
  .extend({ batch });
const acted = z.object({
  outcomes: reference,
  /** Effects that it had no time for. */
  left: z.number().int().nonnegative().default(0),
});
export type Acted = z.output<typeof acted>;

export const confirmInput = recorded.omit({ keys: true, batches: true }).extend({
  acted: z.array(acted),
  /** When the execution came to this step. */
  entered: instant,
});
/** What the state machine says when a step failed for good. */
export const gaveUpInput = z.object({
  execution,
  fault: z.object({ Error: z.string(), Cause: z.string().optional() }),
});
/** With `again` true it is what `look` is given next. */
export interface Confirmed {
  readonly again: boolean;
  readonly execution: string;
  readonly round: number;
}
