/**
 * Number of slots bought for tasks of a class without a known run.
 * The prior expects an unknown task to take minutes, by its mean. Without this rule each of 150 tasks of ten seconds
 * got a slot of its own, and an instance charged for its start and a minute at least. The first runs tell the running
 * time of the others. So slots are bought for FIRST_RUNS of them, and the others wait until
 * - one of these has ended: its history is then the forecast, and short tasks reuse slots (queue.ts), or
 * - one of them has run for as long as an instance takes to start: such tasks are not short, and each gets its slot.
 * Few tasks, twice FIRST_RUNS at most, get a slot each.
 * Without a deadline they wait for two starts of an instance at most, unless the first instance is late. With one they
 * wait only if that takes at most half of the remaining slack: slack shrinks as fast as the wait does, so a wait that
 * was allowed stays allowed. Tasks with an earlier attempt have a lower bound of their running time, and do not wait.
 * Gangs begin as a whole.
 */
import { compareText } from '../../kernel/compare.ts';
import type { GroupId, InstanceId } from '../../kernel/ids.ts';
import { ZERO_S, isZero, most, raw, secondsBetween } from '../../kernel/units.ts';
import type { RunningTask } from '../../domain/snapshot.ts';
import type { Leftover, QueueInput } from '../../policy/contracts.ts';
import { doneOnceS } from '../../domain/work-to-do.ts';

/**
 * Runs after which the 95 % quantile of a history is twice its longest run (lib/stages/estimate/unseen.ts): one in nine
 * is unseen.
 */
export const FIRST_RUNS = 8;

export interface FirstRuns {
  /** Demand for purchases. */
  readonly leftovers: QueueInput['leftovers'];
  /** Tasks that wait for the first runs of their class. */
  readonly waiting: ReadonlyMap<GroupId, number>;
}

/**
 * `short`: leftovers known to be short. O(leftovers); with more than FIRST_RUNS unknown tasks of a class also O(running
 * and placed tasks).
 */
export function awaitFirstRuns(input: QueueInput, short: ReadonlySet<Leftover>): FirstRuns {
  const { leftovers, unknownAs } = input;
  const classes = Map.groupBy(leftovers, (l) => (mayWait(l.group) && !short.has(l) ? unknownAs(l.group) : null));
  const many = new Map<string, Many>();
  for (const [of, alike] of classes) {
    if (of === null) continue;
    const behind = new Set(alike.map((l) => l.group.id)).values().reduce((n, id) => n + (input.behind.get(id) ?? 0), 0);
    const wanted = alike.reduce((n, l) => n + l.count, 0) + behind;
    if (wanted > FIRST_RUNS) many.set(of, { alike, wanted, startS: startOf(alike) });
  }
  if (many.size === 0) return { leftovers, waiting: NOBODY };
  const begun = begunOf(many, input);
  const bought = new Map<Leftover, number>();
  const waiting = new Map<GroupId, number>();
  for (const [of, { alike, wanted, startS }] of many) {
    const first = begun.get(of) ?? { runs: 0, isTold: false, untilS: 2 * startS };
    if (first.isTold || first.runs + wanted <= 2 * FIRST_RUNS) continue;
    let places = FIRST_RUNS - first.runs;
    for (const leftover of alike.sort((a, b) => slackS(a, input) - slackS(b, input) || compareNames(a, b))) {
      const { group, count } = leftover;
      const isPatient = first.untilS <= slackS(leftover, input) / 2;
      const now = isPatient ? Math.min(count, Math.max(0, places)) : count;
      places -= now;
      if (now === count) continue;
      bought.set(leftover, now);
      waiting.set(group.id, (waiting.get(group.id) ?? 0) + count - now);
    }
  }
  if (waiting.size === 0) return { leftovers, waiting };
  return {
    leftovers: leftovers.flatMap((leftover) => {
      const count = bought.get(leftover) ?? leftover.count;
      return count === 0 ? [] : [{ ...leftover, count }];
    }),
    waiting,
  };
}

const NOBODY: FirstRuns['waiting'] = new Map();

/** A class of more tasks than FIRST_RUNS. */
interface Many {
  readonly alike: QueueInput['leftovers'][number][];
  readonly wanted: number;
  /** Seconds until a slot bought now is up. */
  readonly startS: number;
}

const mayWait = (group: Leftover['group']): boolean => !group.stage.gang && isZero(doneOnceS(group));

/** Seconds until a slot bought now is up: the longest of the offers. */
const startOf = (alike: readonly Leftover[]): number =>
  raw(alike.reduce((longest, { option }) => most(longest, option.offer.startDelayS), ZERO_S));

interface Begun {
  /** Tasks of the class that run, or have room. */
  readonly runs: number;
  /** True if one of them has run for so long that they are not short. */
  readonly isTold: boolean;
  /** Seconds until one of them has ended or has run for so long. */
  readonly untilS: number;
}

/** Begun runs of each class, in one pass over running and placed tasks. */
function begunOf(classes: ReadonlyMap<string, Many>, input: QueueInput): ReadonlyMap<string, Begun> {
  const { snapshot, placements, unknownAs, config } = input;
  const begun = new Map<string, { runs: number; isTold: boolean; untilS: number }>();
  const count = (of: string, untilS: number, isTold: boolean): void => {
    const known = begun.get(of);
    if (known === undefined) begun.set(of, { runs: 1, isTold, untilS });
    else {
      known.runs++;
      known.isTold ||= isTold;
      known.untilS = Math.min(known.untilS, untilS);
    }
  };
  const ranS = ({ attempt }: RunningTask): number =>
    secondsBetween(attempt.startedMs ?? attempt.placedMs, snapshot.nowMs);
  for (const running of snapshot.running) {
    const of = unknownAs({ job: running.attempt.job, stage: running.stage });
    const many = of === null ? undefined : classes.get(of);
    if (of === null || many === undefined) continue;
    const leftS = many.startS - ranS(running);
    count(of, leftS, leftS <= 0);
  }
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const upInS = (id: InstanceId): number => {
    const instance = snapshot.instances.get(id)?.instance;
    if (instance?.state === 'ready') return 0;
    const readyMs = instance?.readyMs ?? null;
    return readyMs === null ? config.startDelayMeanS : Math.max(0, secondsBetween(snapshot.nowMs, readyMs));
  };
  for (const { group: id, on } of placements) {
    const group = groups.get(id);
    const of = group === undefined ? null : unknownAs(group);
    const many = of === null ? undefined : classes.get(of);
    if (of === null || many === undefined) continue;
    count(of, many.startS + upInS(on), false);
  }
  return begun;
}

/** Seconds to the last safe start; Infinity without a deadline. */
function slackS({ group }: Leftover, { worths, snapshot }: QueueInput): number {
  const latestMs = worths.groups.get(group.id)?.latestSafeStartMs ?? null;
  return latestMs === null ? Infinity : secondsBetween(snapshot.nowMs, latestMs);
}

/** Order of leftovers by group, pool and bid, so that the order of the input does not matter. */
export const compareNames = (a: Leftover, b: Leftover): number => compareText(nameOf(a), nameOf(b));
const nameOf = ({ group, option: { offer } }: Leftover): string =>
  `${group.id} ${offer.pool} ${offer.bid === 'uncapped' ? '' : raw(offer.bid)}`;
