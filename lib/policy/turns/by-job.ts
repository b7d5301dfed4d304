/** Ways of taking turns, job by job: Hopper, shortest job first, fair sharing. */
import { raw } from '../../kernel/units.ts';
import type { JobId } from '../../kernel/ids.ts';
import { compareText } from '../../kernel/compare.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Job, StageProgress } from '../../domain/job.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import { workOfJobs } from '../job-work.ts';
import type { SceneContext } from '../contracts.ts';
import { copyWinsLearner } from '../speculation/copy-wins.ts';
import { late, mantri, type CopyRule } from '../speculation/copy-rules.ts';
import { sharesOf, type Demand } from '../speculation/shares.ts';
import type { Line, TurnTaking } from './turns.ts';

/** A way of taking turns, with the settings that it reads. */
export type Turning = (context: Pick<SceneContext, 'config' | 'beliefs'>) => TurnTaking;

const COPY_RULES: Readonly<Record<SchedulerConfig['copyRule'], CopyRule | null>> = { mantri, late, none: null };

/** Each job has a line of its own: argmax H - S, the one furthest below its share, comes first (Hopper, section 3). */
export const hopper: Turning = ({ config: { fairEpsilon: epsilon, copyRule } }) => ({
  copies: COPY_RULES[copyRule],
  lines: ({ context: { snapshot }, tail, all, used }) => {
    const jobs = jobsAtWork(snapshot, used);
    const demands = demandsOf(jobs, snapshot);
    const shares = sharesOf(demands, { beta: tail.beta, slots: all, epsilon });
    return jobs.map((job, i): Line => {
      const share = shares[i] ?? 0;
      return { entries: [{ job: job.id }], key: (mine) => mine - share, share };
    });
  },
});

/** Part of copies that must end first for copies to pay: Mantri's delta. */
const LEAST_CHANCE = 0.25;
/** Part of the slots on which copies are still tried where they do not pay, to see whether they do again. */
const TRIALS = 0.01;

/**
 * All jobs in one line, the one with the least expected work left first. Slots that are left then run copies of tasks
 * that are not slow, which cost nothing where machines are paid for whether used or not. Where copies seldom end first,
 * few are made.
 */
export const srpt: Turning = ({ config: { copyRule }, beliefs }) => {
  const rule = COPY_RULES[copyRule];
  const pays = rule === null || beliefs.of(copyWinsLearner).chance() >= LEAST_CHANCE;
  return {
    copies: pays ? rule : { ...rule, mostOfSlots: TRIALS },
    lines: ({ context, used }) => {
      const work = workOfJobs(context);
      const leftS = (job: Job): number => work.get(job.id)?.leftS ?? 0;
      const jobs = jobsAtWork(context.snapshot, used).sort((a, b) => leftS(a) - leftS(b) || bySubmission(a, b));
      const entries = jobs.map((job) => ({ job: job.id }));
      const starts: Line = { entries, key: () => 0 };
      return pays ? [starts, { entries, key: () => 1, share: Infinity }] : [starts];
    },
  };
};

/** The job that uses the fewest slots comes first. */
export const fair: Turning = () => ({
  copies: null,
  lines: ({ context: { snapshot }, used }) =>
    jobsAtWork(snapshot, used).map((job): Line => ({ entries: [{ job: job.id }], key: (mine) => mine })),
});

/** Jobs with a task that waits or runs, by submission. */
export function jobsAtWork({ groups, jobs }: Snapshot, used: ReadonlyMap<JobId, number>): Job[] {
  const ids = new Set([...groups.map((g) => g.job), ...used.keys()]);
  return [...ids].flatMap((id) => jobs.get(id) ?? []).sort(bySubmission);
}

const bySubmission = (a: Job, b: Job): number => raw(a.submittedMs) - raw(b.submittedMs) || compareText(a.id, b.id);

/**
 * Slots that tasks of each job wait or run in, and those of the stages that come next: the phases of section 3.2, whose
 * work is counted in slots. O(stages of the jobs).
 */
function demandsOf(jobs: readonly Job[], { groups }: Snapshot): readonly Demand[] {
  const waiting = new Set(groups.map((g) => `${g.job}/${g.stage.name}`));
  return jobs.map(({ id, spec, stages }): Demand => {
    const progress = new Map(stages.map((s) => [s.name, s]));
    const isActive = (s: StageProgress): boolean => s.running > 0 || waiting.has(`${id}/${s.name}`);
    let [slots, downstream] = [0, 0];
    for (const { name, dependsOn, resources } of spec.stages) {
      const mine = progress.get(name);
      if (mine === undefined) continue;
      const milliCpu = leftOf(mine) * milliCpuIn(resources);
      if (isActive(mine)) slots += milliCpu;
      else if (dependsOn.some((on) => (progress.get(on)?.running ?? 0) > 0 || waiting.has(`${id}/${on}`)))
        downstream += milliCpu;
    }
    return { slots, downstream };
  });
}

const leftOf = ({ tasks, succeeded, failed, cancelled }: StageProgress): number =>
  tasks - succeeded - failed - cancelled;
