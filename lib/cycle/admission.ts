import { EbbError } from '../kernel/errors.ts';
import { lte, raw, type EpochMs } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import { brokenConstraint } from '../domain/constraints.ts';
import type { RuntimeForecast } from '../domain/forecast.ts';
import type { Admission, JobSpec, StageSpec } from '../domain/job.ts';
import type { Pool } from '../domain/pool.ts';
import { fits, RESOURCE_KINDS, vector, type Resources } from '../domain/resources.ts';
import type { RuntimeHistory } from '../domain/stages.ts';
import { forecastFrom } from '../estimate/cold-start.ts';
import { featuresOf } from '../estimate/template.ts';
import { assessAdmission } from '../value/admission.ts';
import { deadlineOf } from './new-job.ts';

export interface AdmissionParts {
  readonly pools: readonly Pool[];
  readonly vcpus: number;
  readonly config: SchedulerConfig;
  readonly history: RuntimeHistory;
}

/** Distinct shapes (needs and constraints) remembered; more than that are worked out anew. */
const MAX_SHAPES = 10_000;

/**
 * What submission says at once: refuses what no pool can ever hold (naming what excludes how many pools), a deadline that
 * has passed, and one that cannot be met even on on-demand capacity started now.
 */
export function admitter(parts: AdmissionParts): (spec: JobSpec, now: EpochMs) => Admission {
  const verdicts = new Map<string, EbbError | null>();
  return (spec, now) => {
    for (const stage of spec.stages) {
      const shape = JSON.stringify([stage.resources, stage.constraints]);
      let verdict = verdicts.get(shape);
      if (verdict === undefined) {
        verdict = unplaceable(stage, parts);
        if (verdicts.size >= MAX_SHAPES) verdicts.clear();
        verdicts.set(shape, verdict);
      }
      if (verdict !== null) throw verdict;
    }
    return deadline(spec, now, parts);
  };
}

function unplaceable(stage: StageSpec, { pools, vcpus }: AdmissionParts): EbbError | null {
  const excluded = new Map<string, number>();
  const exclude = (why: string): void => void excluded.set(why, (excluded.get(why) ?? 0) + 1);
  for (const pool of pools) {
    const broken = brokenConstraint(stage.constraints, pool);
    if (broken !== null) exclude(`constraint ${broken}`);
    else if (!fits(stage.resources, pool.type.capacity)) exclude(lackedBy(pool, stage.resources));
    else if (raw(pool.type.capacity.cpu) / 1000 > vcpus) exclude(limitText(vcpus));
    else return null;
  }
  const isOverLimit = excluded.has(limitText(vcpus));
  const counts = [...excluded].sort((a, b) => b[1] - a[1]).map(([why, n]) => `${why} excludes ${n}`);
  return new EbbError('job.unplaceable', {
    what: `no pool can hold a task of stage ${stage.name}`,
    got: `${pools.length} pools: ${counts.join(', ')}`,
    allowed: 'at least one pool that satisfies all constraints and is large enough',
    next: isOverLimit ? MORE_VCPUS : 'ask for less, or drop constraints; `ebb pools` lists what there is',
  });
}

/** The next step where there are machines large enough, and only the limit leaves them out. */
export const MORE_VCPUS = 'allow more vCPUs at once, or ask for less';
const limitText = (vcpus: number): string => `the limit of ${vcpus} vCPUs`;

/** The kinds of which a machine of the pool has less than is needed, in words. */
function lackedBy({ type: { capacity } }: Pool, need: Resources): string {
  const has = vector(capacity);
  const lacked = vector(need).flatMap((n, k) => (n > (has[k] ?? 0) ? [IN_WORDS[RESOURCE_KINDS[k] ?? 'cpu']] : []));
  return `too little ${lacked.join(' and ')}`;
}

const IN_WORDS = { cpu: 'CPU', memory: 'memory', gpus: 'GPU', disk: 'disk' } as const;

function deadline(spec: JobSpec, now: EpochMs, parts: AdmissionParts): Admission {
  const { config, vcpus, history } = parts;
  const deadlineMs = deadlineOf(spec, now);
  if (deadlineMs !== null && lte(deadlineMs, now)) {
    throw new EbbError('job.deadline-past', {
      what: 'the deadline lies in the past',
      at: 'deadline',
      got: new Date(raw(deadlineMs)).toISOString(),
      allowed: `a time after ${new Date(raw(now)).toISOString()} (the market's clock)`,
      next: 'give a later time, or a duration from submission such as 2h',
    });
  }
  const forecasts = new Map<string, RuntimeForecast>(
    spec.stages.map((s) => [s.name, forecastFrom(history.predict(featuresOf(spec, s, now)), s)]),
  );
  const admission = assessAdmission(spec, { nowMs: now, deadlineMs, forecasts, vcpus, config });
  if (admission.feasible) return admission;
  throw new EbbError('job.deadline-impossible', {
    what: admission.notes.at(-1) ?? 'the deadline cannot be met',
    at: 'deadline',
    next: 'give a later deadline, a shorter expectedRuntime if the estimate is too high, or make the job best-effort',
  });
}
