/** How welcome programs are beside one that runs: by preferences (Mary, Hugo) or by slow-downs. */
import type { Job, StageSpec } from '../../domain/job.ts';
import type { InstanceType } from '../../domain/pool.ts';
import type { Resources } from '../../domain/resources.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import { neighbourLearner } from '../../policy/colocation/neighbour-learner.ts';
import { softmax } from '../../policy/colocation/preferences.ts';
import { partIn } from '../../policy/colocation/tenants.ts';
import { templateOf } from '../../policy/colocation/together.ts';

/** Programs that are told apart, with one that stands for all of a key. */
export interface Program {
  readonly key: string;
  readonly template: string;
  /** What one of its tasks asks for. */
  readonly need: Resources;
}

export interface RunningProgram extends Program {
  readonly milliCpu: number;
  /** Of an instance that it runs on. */
  readonly type: InstanceType;
}

/** Key of what was never measured. */
export const UNKNOWN = '';
/** A pair that loses a tenth less in all is e^1.5 times as likely. Chosen on seeds for tuning of bench/hugo.ts. */
const GREED = 15;

export type ProgramOf = (job: Pick<Job, 'template'>, stage: Pick<StageSpec, 'name' | 'resources'>) => Program;

export function programsIn({ beliefs }: PlanInput, by: 'template' | 'group'): ProgramOf {
  const belief = beliefs.of(neighbourLearner);
  return (job, stage) => {
    const template = templateOf(job, stage);
    const key = by === 'template' ? template : (belief.groupOf(template) ?? UNKNOWN);
    return { key, template, need: stage.resources };
  };
}

/** Chances of each to be the next. Sum 1. O(programs). */
export type ChancesBeside = (beside: RunningProgram, next: readonly Program[]) => readonly number[];

/** By learned preferences (section 4.1.2). */
export function byGoodness({ beliefs }: PlanInput, by: 'template' | 'group'): ChancesBeside {
  const belief = beliefs.of(neighbourLearner);
  return (beside, next) =>
    belief.chances(
      beside.key,
      next.map(({ key }) => key),
      by === 'template',
    );
}

/** Ours: by the paces that both would have together, over those alone. */
export function byPace({ beliefs }: PlanInput): ChancesBeside {
  const belief = beliefs.of(neighbourLearner);
  return (beside, next) => {
    const { type } = beside;
    const pace = (of: Program, other: Program): number =>
      1 / belief.slowdown(of.template, [{ template: other.template, part: partIn(type, other.need) }], type).factor;
    return softmax(next.map((of) => GREED * (pace(of, beside) + pace(beside, of))));
  };
}
