import { EbbError } from '../../kernel/errors.ts';
import { isoOf, lte, vcpusIn, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { Admission, JobSpec, StageSpec } from '../../domain/job.ts';
import { vcpusOf, type Pool } from '../../domain/pool.ts';
import { countFits, fits, RESOURCE_KINDS, vector, type Resources } from '../../domain/resources.ts';
import type { Limits } from '../../domain/snapshot.ts';
import type { LearnedRuntimes } from '../../domain/forecasts.ts';
import { recurringForecast } from '../../stages/estimate/recurring.ts';
import { featuresOf } from '../../domain/job-features.ts';
import { assessAdmission } from '../../stages/value/admission.ts';
import { raisesLimit } from '../money/limit-text.ts';
import { deadlineOf } from './new-job.ts';

export interface AdmissionParts {
  readonly pools: readonly Pool[];
  readonly limits: Limits;
  readonly config: SchedulerConfig;
  readonly history: LearnedRuntimes;
}

/**
 * Equivalence classes (needs, constraints, preferences) in the cache; more of them, and longer ones, are computed anew.
 */
const MAX_CLASSES = 10_000;
const MAX_KEY_LENGTH = 4096;

/** Verdict of the pools on a stage: an error, or notes for the submitter. */
type Verdict = { readonly refused: EbbError } | { readonly notes: readonly string[] };

/**
 * Checks at submission. Refuses a task that no pool can hold, a gang that does not fit under the vCPU limit at once, a
 * deadline that has passed, and one that on-demand capacity started now cannot meet. Every pattern that a cycle will
 * compare with pools is compared here first, preferences included. O(pools x patterns) per equivalence class.
 */
export function admitter(parts: AdmissionParts): (spec: JobSpec, now: EpochMs) => Admission {
  const verdicts = new Map<string, Verdict>();
  const verdictOn = (stage: StageSpec): Verdict => {
    const key = JSON.stringify([
      stage.resources,
      stage.constraints,
      stage.preferences.map(({ prefer, slowdown }) => [prefer, slowdown]),
      stage.gang ? stage.tasks : 1,
    ]);
    let verdict = verdicts.get(key);
    if (verdict === undefined) {
      const refused = unplaceable(stage, parts);
      verdict = refused === null ? { notes: preferenceNotes(stage, parts.pools) } : { refused };
      if (key.length > MAX_KEY_LENGTH) return verdict;
      if (verdicts.size >= MAX_CLASSES) verdicts.clear();
      verdicts.set(key, verdict);
    }
    return verdict;
  };
  return (spec, now) => {
    const notes: string[] = [];
    for (const stage of spec.stages) {
      const verdict = verdictOn(stage);
      if ('refused' in verdict) throw verdict.refused;
      notes.push(...verdict.notes.map((note) => `stage ${stage.name}: ${note}`));
    }
    const admission = deadline(spec, now, parts);
    return notes.length === 0 ? admission : { ...admission, notes: [...notes, ...admission.notes] };
  };
}

/** Preferences that no pool within the hard constraints can meet. */
function preferenceNotes({ constraints, preferences }: StageSpec, pools: readonly Pool[]): string[] {
  if (preferences.length === 0) return [];
  const allowed = pools.filter((pool) => brokenConstraint(constraints, pool) === null);
  return preferences.flatMap(({ prefer, slowdown = 1 }, i) => {
    if (allowed.some((pool) => brokenConstraint(prefer, pool) === null)) return [];
    const effect = slowdown === 1 ? 'has no effect' : `makes every task take ${slowdown} times as long`;
    return [`preferences[${i}] ${effect}: no pool within the constraints is so`];
  });
}

function unplaceable(stage: StageSpec, { pools, limits }: AdmissionParts): EbbError | null {
  const { vcpus } = limits;
  const excluded = new Map<string, number>();
  const exclude = (why: string): void => void excluded.set(why, (excluded.get(why) ?? 0) + 1);
  const usable: Pool[] = [];
  for (const pool of pools) {
    const broken = brokenConstraint(stage.constraints, pool);
    if (broken !== null) exclude(`constraint ${broken}`);
    else if (!fits(stage.resources, pool.type.capacity)) exclude(lackedBy(pool, stage.resources));
    else if (vcpusOf(pool) > vcpus) exclude(limitText(vcpus));
    else usable.push(pool);
  }
  if (usable.length > 0) return stage.gang ? gangTooLarge(stage, usable, limits) : null;
  const isOverLimit = excluded.has(limitText(vcpus));
  const counts = [...excluded].sort((a, b) => b[1] - a[1]).map(([why, n]) => `${why} excludes ${n}`);
  return new EbbError('job.unplaceable', {
    what: `no pool can hold a task of stage ${stage.name}`,
    got: `${pools.length} pools: ${counts.join(', ')}`,
    allowed: 'at least one pool that satisfies all constraints and is large enough',
    next: isOverLimit
      ? `ask for less, or ${raisesLimit(limits)}`
      : 'ask for less, or drop constraints; `ebb pools` lists what there is',
  });
}

/** A gang starts whole or not at all, so the limit must hold all of its tasks at once. */
function gangTooLarge(stage: StageSpec, usable: readonly Pool[], limits: Limits): EbbError | null {
  const most = mostAtOnce(stage.resources, usable, { vcpus: limits.vcpus, enough: stage.tasks });
  if (most >= stage.tasks) return largerThanPool(stage, usable);
  return new EbbError('job.unplaceable', {
    what: `the ${stage.tasks} tasks of stage ${stage.name} must start together, and never can`,
    at: `stages.${stage.name}.tasks`,
    got: `${stage.tasks} tasks of ${vcpusIn(stage.resources.cpu)} vCPU in a gang`,
    allowed: `at most ${most} of them on instances within ${limitText(limits.vcpus)}`,
    next: `make the gang smaller, drop \`gang\`, or ${raisesLimit(limits)}`,
  });
}

/** A gang starts in one pool, and a pool of a cluster, which is a kind of machine in a rack, has so many machines. */
function largerThanPool(stage: StageSpec, usable: readonly Pool[]): EbbError | null {
  let most = 0;
  let largest = usable[0];
  for (const pool of usable) {
    const held = (pool.reservedInstances ?? Infinity) * countFits(stage.resources, pool.type.capacity);
    if (held > most) [most, largest] = [held, pool];
  }
  if (most >= stage.tasks) return null;
  return new EbbError('job.unplaceable', {
    what: `the ${stage.tasks} tasks of stage ${stage.name} must start together on machines of one kind and rack, and no rack has as many`,
    at: `stages.${stage.name}.tasks`,
    got: `${stage.tasks} tasks of ${vcpusIn(stage.resources.cpu)} vCPU in a gang`,
    allowed: `at most ${most} of them, on the ${largest?.reservedInstances} machines of ${largest?.id}`,
    next: 'make the gang smaller, drop `gang`, or describe the machines without racks',
  });
}

/**
 * The most tasks that whole instances of these pools hold within the limit, counted up to `enough`. Exact: an unbounded
 * knapsack over vCPUs. O(limit x distinct instance sizes).
 */
export function mostAtOnce(
  need: Resources,
  pools: readonly Pool[],
  { vcpus, enough }: { readonly vcpus: number; readonly enough: number },
): number {
  const heldBySize = new Map<number, number>();
  for (const pool of pools) {
    const size = Math.ceil(vcpusOf(pool));
    heldBySize.set(size, Math.max(heldBySize.get(size) ?? 0, countFits(need, pool.type.capacity)));
  }
  const sizes = [...heldBySize].filter(([size, held]) => size > 0 && held > 0);
  const room = Math.floor(vcpus);
  const most = new Float64Array(room + 1);
  for (let v = 1; v <= room; v++) {
    let best = most[v - 1] ?? 0;
    for (const [size, held] of sizes) if (size <= v) best = Math.max(best, (most[v - size] ?? 0) + held);
    most[v] = best;
    if (best >= enough) return best;
  }
  return most[room] ?? 0;
}

const limitText = (vcpus: number): string => `the limit of ${vcpus} vCPUs`;

/** Resources of which a machine of the pool has less than needed, in words. */
function lackedBy({ type: { capacity } }: Pool, need: Resources): string {
  const has = vector(capacity);
  const lacked = vector(need).flatMap((n, k) => (n > (has[k] ?? 0) ? [IN_WORDS[RESOURCE_KINDS[k] ?? 'cpu']] : []));
  return `too little ${lacked.join(' and ')}`;
}

const IN_WORDS = { cpu: 'CPU', memory: 'memory', gpus: 'GPU', disk: 'disk' } as const;

function deadline(spec: JobSpec, now: EpochMs, parts: AdmissionParts): Admission {
  const { config, history } = parts;
  const { vcpus } = parts.limits;
  const deadlineMs = deadlineOf(spec, now);
  if (deadlineMs !== null && lte(deadlineMs, now)) {
    throw new EbbError('job.deadline-past', {
      what: 'the deadline lies in the past',
      at: 'deadline',
      got: isoOf(deadlineMs),
      allowed: `a time after ${isoOf(now)} (the market's clock)`,
      next: 'give a later time, or a duration from submission such as 2h',
    });
  }
  const forecasts = new Map<string, RuntimeForecast>(
    spec.stages.map((s) => [s.name, recurringForecast(history, featuresOf(spec, s, now), s)]),
  );
  const admission = assessAdmission(spec, { nowMs: now, deadlineMs, forecasts, vcpus, config });
  if (admission.feasible || config.impossibleDeadlines === 'admit') return admission;
  throw new EbbError('job.deadline-impossible', {
    what: admission.notes.at(-1) ?? 'the deadline cannot be met',
    at: 'deadline',
    next: 'give a later deadline, a shorter expectedRuntime if the estimate is too high, or make the job best-effort',
  });
}
