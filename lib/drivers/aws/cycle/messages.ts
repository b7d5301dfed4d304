/**
 * Messages between the steps of the state machine: small, plain JSON. Large values are references (blobs.ts).
 *
 *   CycleStart -> snapshot -> Snapshotted -> estimate -> Estimated  \
 *                                         -> forecast -> Forecasted  > solve -> Solved -> record -> Recorded
 *   Recorded -> act, once per batch -> Acted -> confirm -> Confirmed -> (snapshot again with Confirmed | done)
 *
 *   estimate or solve, failed or without an answer -> isolate -> Solved, without the jobs to blame -> record
 *
 *   any of them, failed for good -> acquire, which frees the execution's place -> the execution fails
 *
 * Each step receives the merged answers before it: `solve` those of snapshot, estimate and forecast; `act` those of
 * record with `batch`; `confirm` those of record with `acted`. Unknown keys are dropped, not refused.
 */
import { z } from 'zod';

const reference = z.string().min(1);
/** Name of the execution, and part of the names of its values. */
const execution = z.string().regex(/^[\w.:-]{1,200}$/);
const round = z.number().int().nonnegative();

/**
 * Time by the state machine's single clock; clocks of two Lambdas may differ. Absent under an earlier version of the
 * state machine.
 */
const instant = z.iso.datetime({ offset: true }).optional();

export const cycleStart = z.object({
  execution,
  /** Number of earlier rounds of this execution. */
  round: round.default(0),
  /** Start of the execution. */
  began: instant,
});
export type CycleStart = z.output<typeof cycleStart>;

const snapshotted = z.object({
  execution,
  round,
  began: instant,
  /** Start of this round, wall time. */
  observedMs: z.number(),
  /** Number of triggers that this round serves (wake.ts). */
  seen: z.number(),
  /** Fencing token. */
  token: z.number(),
  /** Wall time until the next snapshot if nothing happens. */
  dueInMs: z.number().nonnegative(),
  observation: reference,
});
export type Snapshotted = z.output<typeof snapshotted>;
/** Idle: nothing is left to do, or another execution has taken over. */
export type SnapshotAnswer = { readonly idle: true } | ({ readonly idle: false } & Snapshotted);

export const estimateInput = snapshotted.pick({ execution: true, round: true, began: true, observation: true });

export const forecastInput = snapshotted.pick({ execution: true, round: true, began: true, observation: true });

/** Question of the API about some pools, by id. */
export const forecastAsked = z.object({ pools: z.array(z.string().min(1)) });
export type ForecastAsked = z.output<typeof forecastAsked>;

export const solveInput = snapshotted.extend({ runtime: reference, market: reference });
/** Input if there is no estimate or no decision. Trials make their own estimates. */
export const isolateInput = snapshotted.extend({ market: reference });
const solved = snapshotted.omit({ observation: true }).extend({ decision: reference });
export type Solved = z.output<typeof solved>;

export const recordInput = solved;
/**
 * `size`: effects per `act`, some seconds of calls to EC2 and ECS. `most`: effects per cycle, about half a minute. The
 * next cycle takes the rest, oldest first.
 */
export const PARTS = { size: 25, most: 1000 };
/** Share of the state machine's 256 KiB for the outcomes of all batches. Larger outcomes are references. */
export const OUTCOMES_BYTES = 65_536;
/** Positions [from, to) in the list of keys. */
const batch = z.object({ from: z.number().int().nonnegative(), to: z.number().int().positive() });
const recorded = snapshotted.omit({ observation: true }).extend({
  keys: reference,
  batches: z.array(batch),
  /** Number of open effects beyond this cycle; another cycle follows at once. Earlier versions of `record` omit it. */
  left: z.number().int().nonnegative().default(0),
});
export type Recorded = z.output<typeof recorded>;

export const actInput = recorded
  .pick({ execution: true, round: true, began: true, keys: true, batches: true })
  .extend({ batch });
const acted = z.object({
  outcomes: reference,
  /** Number of effects that there was no time for. */
  left: z.number().int().nonnegative().default(0),
});
export type Acted = z.output<typeof acted>;

export const confirmInput = recorded.omit({ keys: true, batches: true }).extend({
  acted: z.array(acted),
  /** Time at which the execution entered this step. */
  entered: instant,
});
/** Report of the state machine about a step that failed for good. */
export const gaveUpInput = z.object({
  execution,
  fault: z.object({ Error: z.string(), Cause: z.string().optional() }),
});
/** Answer of `confirm`. If `again`, it is the next input of `snapshot`. */
export interface Confirmed {
  readonly again: boolean;
  readonly execution: string;
  readonly round: number;
}
