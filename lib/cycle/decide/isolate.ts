/**
 * Finds the jobs that keep a decision from being made, so that all others are decided on. A decision that throws or
 * does not end does not name the job behind it, so groups of jobs are tried and split.
 * Suspects are tried newest first, in groups of 1, 2, 4, ... : a job that stops the cycle mostly is a new one. A group
 * that fails is halved, down to one job, which is held. Groups are tried without the other suspects, so the size of the
 * whole workload never counts against a job. With f faulty jobs among n this takes O(f log n) failing trials, each
 * bounded.
 */
import { EbbError, messageOf } from '../../kernel/errors.ts';
import type { JobId } from '../../kernel/ids.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Decision } from './decision.ts';
import type { Held } from '../observe/holding.ts';
import { probed, setAside, type Aside } from '../state/set-aside.ts';

export type TrialOutcome =
  | { readonly status: 'decided'; readonly decision: Decision }
  | { readonly status: 'threw'; readonly error: string }
  | { readonly status: 'stuck'; readonly afterMs: number };

/** Input of a trial: the snapshot without some jobs, or (`probe`) with a plain one in their place. */
export interface Tried {
  readonly aside: ReadonlyMap<JobId, Aside>;
  readonly probe: boolean;
}
export const triedOn = (snapshot: Snapshot, { aside, probe }: Tried): Snapshot => {
  const without = setAside(snapshot, aside);
  return probe ? probed(without) : without;
};

/** Decides on it, within `limitMs` if the driver can bound it. Never rejects for a fault of a job. */
export type Trial = (tried: Tried, limitMs: number) => Promise<TrialOutcome>;

/** A place for trials, until it is closed. */
export interface Trials {
  readonly trial: Trial;
  /** Wall time, ms: bounds all trials together. A clock that stands still, if no wall time may be read. */
  readonly nowMs: () => number;
  readonly close: () => Promise<void>;
}

/** Trials in this very thread: a decision that throws is found, one that never ends is not. */
export const trialsInProcess = (decide: (tried: Tried) => Promise<Decision>): Trials => ({
  trial: async (tried) => {
    try {
      return { status: 'decided', decision: await decide(tried) };
    } catch (error) {
      return { status: 'threw', error: messageOf(error) };
    }
  },
  nowMs: () => 0,
  close: async () => undefined,
});

export interface IsolationLimits {
  /** Time limit of a trial of several jobs. Short, because halving a slow group harms nobody. */
  readonly groupMs: number;
  /** Time limit of a trial of one job; a slower job is held. */
  readonly jobMs: number;
  /** Time limit of a trial of all innocent jobs together. */
  readonly allMs: number;
  /** Wall time after which nothing more is tried but the decision itself. */
  readonly budgetMs: number;
}

/** A decision for one job takes milliseconds; a machine under load takes a hundred times as long. */
export const ISOLATION_LIMITS: IsolationLimits = { groupMs: 5000, jobMs: 10_000, allMs: 30_000, budgetMs: 60_000 };

export interface IsolationInput {
  readonly snapshot: Snapshot;
  readonly trial: Trial;
  readonly limits: IsolationLimits;
  /** Wall time, ms. */
  readonly nowMs: () => number;
}

export interface Isolated {
  /** Decision on all jobs that are neither held nor undecided. */
  readonly decision: Decision;
  readonly held: readonly Held[];
  /** Jobs that were left out of the decision because the budget, or the time for one decision, did not suffice. */
  readonly undecided: readonly JobId[];
}

const UNDECIDED: Aside = { why: 'undecided', detail: 'the scheduler looks for the job that stops its decisions' };

/** Result of an isolation, as a decision. */
export const decisionOf = ({ decision, held, undecided }: Isolated): Decision => ({
  ...decision,
  ...(held.length > 0 ? { held } : {}),
  ...(undecided.length > 0 ? { undecided: undecided.length } : {}),
});

/** Null if a decision also fails on a plain job, or without any: none of the jobs is to blame. */
export async function isolate(input: IsolationInput): Promise<Isolated | null> {
  const search = new Search(input);
  if (!(await search.worksWithoutAll())) return null;
  await search.findFaulty();
  return search.decide();
}

class Search {
  readonly #input: IsolationInput;
  readonly #untilMs: number;
  /** Newest first: ids of jobs ascend with the time of their submission. */
  readonly #suspects: readonly JobId[];
  readonly #held: Held[] = [];
  readonly #innocent: JobId[] = [];

  constructor(input: IsolationInput) {
    this.#input = input;
    this.#untilMs = input.nowMs() + input.limits.budgetMs;
    this.#suspects = [...input.snapshot.jobs.keys()].sort().reverse();
  }

  async worksWithoutAll(): Promise<boolean> {
    return (await this.#with([], this.#input.limits.allMs, true)).status === 'decided';
  }

  async findFaulty(): Promise<void> {
    const open = doubling(this.#suspects);
    for (let group = open.shift(); group !== undefined && this.#hasTime(); group = open.shift()) {
      const [only] = group;
      const isOne = group.length === 1;
      const outcome = await this.#with(group, isOne ? this.#input.limits.jobMs : this.#input.limits.groupMs);
      if (outcome.status === 'decided') this.#innocent.push(...group);
      else if (isOne && only !== undefined) this.#held.push({ job: only, reason: reasonOf(outcome) });
      else {
        const middle = Math.ceil(group.length / 2);
        open.unshift(group.slice(0, middle), group.slice(middle));
      }
    }
  }

  /** Decides on the innocent jobs together, which finds faults of combinations. */
  async decide(): Promise<Isolated> {
    let jobs = this.#innocent.toSorted();
    for (;;) {
      const outcome = await this.#with(jobs, this.#input.limits.allMs);
      if (outcome.status === 'decided') {
        const decided = new Set([...jobs, ...this.#held.map((h) => h.job)]);
        const undecided = this.#suspects.filter((id) => !decided.has(id));
        return { decision: outcome.decision, held: this.#held, undecided };
      }
      if (jobs.length === 0) throw new EbbError('internal', { what: `no decision can be made: ${reasonOf(outcome)}` });
      const culprit = outcome.status === 'threw' && this.#hasTime() ? await this.#firstToFail(jobs) : null;
      if (culprit === null) {
        // Too much for one decision: the older half first, the others in a later cycle.
        jobs = jobs.slice(0, Math.floor(jobs.length / 2));
      } else {
        const reason = `${reasonOf(outcome)} (only together with other jobs)`;
        this.#held.push({ job: culprit, reason });
        jobs = jobs.filter((id) => id !== culprit);
      }
    }
  }

  /** The job with which a decision begins to throw as jobs are added, oldest first. Null if time runs out. */
  async #firstToFail(jobs: readonly JobId[]): Promise<JobId | null> {
    let works = 0;
    let fails = jobs.length;
    while (fails - works > 1) {
      if (!this.#hasTime()) return null;
      const middle = (works + fails) >> 1;
      const outcome = await this.#with(jobs.slice(0, middle), this.#input.limits.allMs);
      if (outcome.status === 'decided') works = middle;
      else fails = middle;
    }
    return jobs[fails - 1] ?? null;
  }

  /** Trial with these jobs as the only suspects. */
  #with(jobs: readonly JobId[], limitMs: number, probe = false): Promise<TrialOutcome> {
    const aside = new Map<JobId, Aside>(this.#suspects.map((id) => [id, UNDECIDED]));
    for (const { job, reason } of this.#held) aside.set(job, { why: 'held', detail: `held: ${reason}` });
    for (const id of jobs) aside.delete(id);
    return this.#input.trial({ aside, probe }, limitMs);
  }

  #hasTime(): boolean {
    return this.#input.nowMs() < this.#untilMs;
  }
}

/** Groups of 1, 2, 4, ... */
function doubling(jobs: readonly JobId[]): JobId[][] {
  const groups: JobId[][] = [];
  for (let from = 0, size = 1; from < jobs.length; from += size, size *= 2) {
    // `size` doubles after `from` has moved by it.
    groups.push(jobs.slice(from, from + size));
  }
  return groups;
}

function reasonOf(outcome: Exclude<TrialOutcome, { status: 'decided' }>): string {
  return outcome.status === 'threw'
    ? `a decision on it fails: ${outcome.error}`
    : `a decision on it does not end within ${Math.round(outcome.afterMs / 1000)} s`;
}
