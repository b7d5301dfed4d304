import { secondsBetween, vcpusIn, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { Admission, JobSpec } from '../../domain/job.ts';
import { likeStageDurationS, stageDurationS, wavesBefore, wholePathS, type StageSize } from './critical-path.ts';

export interface AdmissionFacts {
  readonly nowMs: EpochMs;
  /** Null for best effort. */
  readonly deadlineMs: EpochMs | null;
  /** Per stage name. */
  readonly forecasts: ReadonlyMap<string, RuntimeForecast>;
  /** Most vCPUs at once. */
  readonly vcpus: number;
  readonly config: Pick<SchedulerConfig, 'safetyQuantile' | 'startDelayMeanS' | 'startDelayMaxS'>;
}

/** Quantile at which "this is how long it takes" is said, and that of the shortest run that is thought possible. */
const LIKELY = 0.5;
const LEAST = 0;

/**
 * Checks if the deadline can be met when everything starts now on on-demand and nothing waits for money: the longest
 * path over the stages, each stage in waves under the vCPU limit, start-up included. Infeasible: not even the shortest
 * running times fit, or not the user's own. Nothing else refuses: a prediction may be too high, so a job that looks
 * late, by its earlier runs or by the slowest of its tasks, is tried (JamaisVu section 4.3); notes say so, also if only
 * the safety quantile does not fit. Stages without a forecast take no time.
 */
export function assessAdmission(spec: JobSpec, facts: AdmissionFacts): Admission {
  const notes = waveNotes(spec, facts);
  const unknown = spec.stages.filter((s) => facts.forecasts.get(s.name)?.basis === 'prior').map((s) => s.name);
  if (unknown.length > 0) {
    notes.push(
      `Cold start: nothing is known of how long ${stagesNamed(unknown)} will run. Give \`expectedRuntime\` to plan better.`,
    );
  }
  if (facts.deadlineMs === null) return { feasible: true, notes };
  const windowS = secondsBetween(facts.nowMs, facts.deadlineMs);
  const leastS = pathS(spec, facts, (size, { basis }) =>
    likeStageDurationS(size, facts.vcpus, basis === 'hint' ? LIKELY : LEAST),
  );
  const likelyS = pathS(spec, facts, (size, { basis }) =>
    stageDurationS(size, facts.vcpus, basis === 'prior' ? LEAST : LIKELY),
  );
  // The first instances are planned for with the longest start-up, as everywhere; later stages mostly find theirs up.
  const slowStartS = facts.config.startDelayMaxS - facts.config.startDelayMeanS;
  const safeS =
    pathS(spec, facts, (size) => stageDurationS(size, facts.vcpus, facts.config.safetyQuantile)) + slowStartS;
  if (leastS > windowS) {
    notes.push(
      `The deadline cannot be met: it is ${words(windowS)} away, and even started now on on-demand the job needs about ${words(leastS)}, start-up included.`,
    );
    return { feasible: false, notes };
  }
  if (likelyS > windowS) {
    notes.push(
      `The deadline will likely be missed: it is ${words(windowS)} away, and going by what is known the job needs about ${words(likelyS)}. It will start on on-demand at once.`,
    );
    return { feasible: true, notes };
  }
  if (safeS > windowS) {
    const chance = Math.round(facts.config.safetyQuantile * 100);
    notes.push(
      `The deadline is tight: it is ${words(windowS)} away; the job likely needs ${words(likelyS)}, but ${words(safeS)} to be ${chance} % sure. It will start on on-demand at once.`,
    );
  }
  return { feasible: true, notes };
}

function pathS(
  spec: JobSpec,
  facts: AdmissionFacts,
  durationS: (size: StageSize, forecast: RuntimeForecast) => number,
): number {
  const durations = new Map(
    sizes(spec, facts).map(({ size, forecast }) => [
      size.name,
      facts.config.startDelayMeanS + durationS(size, forecast),
    ]),
  );
  return wholePathS(spec.stages, (name) => durations.get(name) ?? 0);
}

function sizes(spec: JobSpec, facts: AdmissionFacts): { size: StageSize; forecast: RuntimeForecast }[] {
  return spec.stages.flatMap((s) => {
    const forecast = facts.forecasts.get(s.name);
    if (forecast === undefined) return [];
    const size = {
      name: s.name,
      dependsOn: s.dependsOn,
      tasks: s.tasks,
      runtime: forecast.runtime,
      cpu: s.resources.cpu,
    };
    return [{ size, forecast }];
  });
}

function waveNotes(spec: JobSpec, facts: AdmissionFacts): string[] {
  return spec.stages.flatMap((s) => {
    const waves = wavesBefore({ tasks: s.tasks, cpu: s.resources.cpu }, facts.vcpus) + 1;
    if (waves === 1) return [];
    return [
      `Stage ${s.name}: ${s.tasks} tasks of ${vcpusIn(s.resources.cpu)} vCPU take ${waves} waves under the limit of ${facts.vcpus} vCPUs.`,
    ];
  });
}

const stagesNamed = (names: readonly string[]): string =>
  names.length === 1 ? `stage ${names[0]}` : `stages ${names.join(', ')}`;

function words(s: number): string {
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 6) / 10} min`;
  return `${Math.round(s / 360) / 10} h`;
}
