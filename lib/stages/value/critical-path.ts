import { ZERO_S, add, raw, scale, seconds, type MilliCpu, type Seconds } from '../../kernel/units.ts';
import { mean, quantile, type Distribution, quantileS } from '../../domain/distribution.ts';

/** A stage as the critical path sees it. */
export interface StageSize {
  readonly name: string;
  readonly dependsOn: readonly string[];
  /** Tasks not yet succeeded. */
  readonly tasks: number;
  readonly runtime: Distribution;
  readonly cpu: MilliCpu;
}

/** Tasks of the stage that the vCPU limit lets run at once, at least one. The limit is not shared out between jobs. */
const atOnce = (stage: Pick<StageSize, 'tasks' | 'cpu'>, vcpus: number): number =>
  Math.max(1, Math.min(stage.tasks, Math.floor((vcpus * 1000) / Math.max(raw(stage.cpu), 1) + 1e-9)));

/** Full waves of the stage before its last one. */
export const wavesBefore = (stage: Pick<StageSize, 'tasks' | 'cpu'>, vcpus: number): number =>
  Math.max(0, Math.ceil(stage.tasks / atOnce(stage, vcpus)) - 1);

/** Beyond this the tail of a histogram of a few dozen bins says nothing. */
const FURTHEST_QUANTILE = 0.99;

/**
 * Duration of a stage with probability `p`: waves before the last at their mean (they average out), the last one until
 * its slowest task ends, which of k like tasks is the p^(1/k) quantile of one.
 */
export function stageDurationS(stage: StageSize, vcpus: number, p: number): number {
  if (stage.tasks === 0) return 0;
  const slowest = Math.max(p, Math.min(FURTHEST_QUANTILE, p ** (1 / atOnce(stage, vcpus))));
  const waves = wavesBefore(stage, vcpus);
  return raw(add(waves === 0 ? ZERO_S : scale(mean(stage.runtime), waves), quantile(stage.runtime, slowest)));
}

/**
 * Duration of a stage in which every task takes as long as one does with probability `p`: the doubt is about the
 * estimate, which all tasks share, not about differences between tasks.
 */
export const likeStageDurationS = (stage: StageSize, vcpus: number, p: number): number =>
  stage.tasks === 0 ? 0 : (wavesBefore(stage, vcpus) + 1) * quantileS(stage.runtime, p);

/** Stages of one job with their dependencies. */
export interface StageGraph {
  /** Time that all stages behind this one take along the longest path, without this stage itself. 0 for a last one. */
  readonly behindS: (stage: string) => Seconds;
  /** All stages that depend on this one, directly or not. */
  readonly descendants: (stage: string) => ReadonlySet<string>;
}

/**
 * Longest paths over the stages (acyclic). `durationS` gives a stage's own time, start-up included. Unlisted stages
 * (done already) take no time and pass nothing on, because no unfinished stage depends on them.
 */
export function stageGraph(
  stages: readonly Pick<StageSize, 'name' | 'dependsOn'>[],
  durationS: (stage: string) => number,
): StageGraph {
  const dependents = new Map<string, string[]>(stages.map((s) => [s.name, []]));
  for (const s of stages) for (const d of s.dependsOn) dependents.get(d)?.push(s.name);
  const behind = new Map<string, number>();
  const after = new Map<string, ReadonlySet<string>>();
  const behindS = (stage: string): number => {
    const known = behind.get(stage);
    if (known !== undefined) return known;
    const longest = (dependents.get(stage) ?? []).reduce((m, d) => Math.max(m, durationS(d) + behindS(d)), 0);
    behind.set(stage, longest);
    return longest;
  };
  const descendants = (stage: string): ReadonlySet<string> => {
    const known = after.get(stage);
    if (known !== undefined) return known;
    const all = new Set<string>();
    for (const d of dependents.get(stage) ?? []) {
      all.add(d);
      for (const further of descendants(d)) all.add(further);
    }
    after.set(stage, all);
    return all;
  };
  return { behindS: (stage) => seconds(behindS(stage)), descendants };
}

/** Longest path through all stages from their beginning, seconds. */
export function wholePathS(
  stages: readonly Pick<StageSize, 'name' | 'dependsOn'>[],
  durationS: (stage: string) => number,
): number {
  const graph = stageGraph(stages, durationS);
  return stages.reduce((longest, s) => Math.max(longest, durationS(s.name) + raw(graph.behindS(s.name))), 0);
}
