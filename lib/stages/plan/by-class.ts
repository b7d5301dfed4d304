/**
 * Plans alike groups of different jobs as one: 20,000 jobs of one task each are as many classes as there are different
 * requests. The plan is linear in classes, and its answer is shared out again, the earliest deadline and submission
 * first.
 */
import { compareText } from '../../kernel/compare.ts';
import type { GroupId, JobId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import { invariant } from '../../kernel/errors.ts';
import { raw, rawOrNull, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { Distribution } from '../../domain/distribution.ts';
import type { Constraints, Preference } from '../../domain/job.ts';
import type { Allotment, Worth } from '../../domain/plan.ts';
import { vector } from '../../domain/resources.ts';
import { limitOf, type PendingGroup } from '../../domain/snapshot.ts';
import { sharerOf } from './fair-shares.ts';
import type { PlanInput, PlanPolicy } from '../../policy/contracts.ts';
import { workOfJobs } from '../../policy/job-work.ts';

/** Groups in the order in which they start. */
type Members = readonly PendingGroup[];

/**
 * Relative difference of slack, age and worth within a class: far below the uncertainty of running times. The member
 * with the least slack stands for its class, so that the plan is never too late for another one.
 */
const TOLERANCE = 0.01;
/** Differences of time below this do not matter. */
const LEAST_S = 60;

/** The same policy on classes. O(groups) beside it. */
export const byClass =
  <S>(plan: PlanPolicy<S>): PlanPolicy<S> =>
  async (input, solver) => {
    const of = { ...input, work: once(() => workOfJobs(input)) };
    const classes = classesOf(of);
    if (classes.size === input.snapshot.groups.length) return plan(of, solver);
    const groups = [...classes.values()].map(asOne);
    const allotment = await plan({ ...of, snapshot: { ...input.snapshot, groups } }, solver);
    return sharedOut(allotment, classes);
  };

type Input = PlanInput & Required<Pick<PlanInput, 'work'>>;

/** By the id of the first member. Gangs and jobs with a limit on money stay alone. */
function classesOf(input: Input): ReadonlyMap<GroupId, Members> {
  const keys = new Keys(input);
  const alike = Map.groupBy(input.snapshot.groups, (group) => keys.of(group) ?? group.id);
  return new Map(
    [...alike.values()].map((members) => {
      if (members.length > 1) members.sort(inOrder(input));
      return [invariant(members[0], 'a class has a member').id, members];
    }),
  );
}

const asOne = (members: Members): PendingGroup => {
  const first = invariant(members[0], 'a class has a member');
  return members.length === 1 ? first : { ...first, count: members.reduce((n, g) => n + g.count, 0) };
};

function inOrder({ worths }: PlanInput): (a: PendingGroup, b: PendingGroup) => number {
  const deadline = ({ id }: PendingGroup): number => rawOrNull(worths.groups.get(id)?.latestSafeStartMs ?? null) ?? 0;
  return (a, b) => deadline(a) - deadline(b) || raw(a.submittedMs) - raw(b.submittedMs) || compareText(a.id, b.id);
}

/** Texts that are equal for groups that a plan need not tell apart. */
class Keys {
  readonly #input: Input;
  readonly #runtimes = new Numbers();
  readonly #requests = new Map<Constraints, Map<readonly Preference[], string>>();

  constructor(input: Input) {
    this.#input = input;
  }

  /** Null: alone. */
  of(group: PendingGroup): string | null {
    const { snapshot, forecasts, worths } = this.#input;
    const worth = worths.groups.get(group.id);
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    if (worth === undefined || forecast === undefined || group.stage.gang || group.goesTo !== undefined) return null;
    const job = snapshot.jobs.get(group.job);
    if (limitOf(snapshot, group.job) !== null) return null;
    const runtime = this.#runtimes.of(forecast.runtime);
    const { checkpoint } = group.stage;
    const saves = checkpoint === null ? '-' : `${raw(checkpoint.graceS)} ${rawOrNull(checkpoint.everyS)}`;
    const kept = `${raw(group.keptS)} ${group.ranS === undefined ? '' : raw(group.ranS)}`;
    const lasting = `${forecast.basis} ${job?.spec.mustMeet === true} ${rawOrNull(job?.spec.value.onTimeUsd ?? null)}`;
    const { fairShares, shortJobsFirst } = this.#input.config;
    const left = shortJobsFirst && group.class === 'best-effort' ? this.#workLeft(group.job) : '';
    const sharer = fairShares === 'none' ? '' : JSON.stringify(sharerOf(job, fairShares));
    return `${sharer} ${left} ${vector(group.need).join()} ${group.class} ${saves} ${kept} ${runtime} ${lasting} ${this.#worth(worth, group)} ${this.#request(group)}`;
  }

  /** Work that the job has left, by the quarter of a doubling. */
  #workLeft(job: JobId): string {
    return Math.round(4 * Math.log2(1 + (this.#input.work().get(job)?.leftS ?? 0))).toString();
  }

  #request({ stage: { constraints, preferences } }: PendingGroup): string {
    let of = this.#requests.get(constraints);
    if (of === undefined) this.#requests.set(constraints, (of = new Map<readonly Preference[], string>()));
    let text = of.get(preferences);
    if (text === undefined) of.set(preferences, (text = JSON.stringify([constraints, preferences])));
    return text;
  }

  /** Slack before the deadline and the last safe start, or age; and dollars. */
  #worth({ curve, taskDeadlineMs, latestSafeStartMs }: Worth, { submittedMs }: PendingGroup): string {
    const { nowMs } = this.#input.snapshot;
    const within = (at: EpochMs | null): string => (at === null ? '-' : String(step(secondsBetween(nowMs, at))));
    const usd = curve.points.map((p) => p.usd.toPrecision(3)).join();
    return `${within(taskDeadlineMs)} ${within(latestSafeStartMs)} ${step(secondsBetween(submittedMs, nowMs))} ${usd}`;
  }
}

/** Steps of equal ratio away from 0, and of LEAST_S near it. */
const step = (s: number): number =>
  Math.sign(s) * Math.floor(Math.log1p(Math.abs(s) / (LEAST_S / TOLERANCE)) / TOLERANCE);

/** Numbers of distributions, the same for equal content. Content is read once for each record. */
class Numbers {
  readonly #known = new Map<Distribution, number>();
  readonly #bySum = new Map<number, Distribution[]>();
  #count = 0;

  of(record: Distribution): number {
    let number = this.#known.get(record);
    if (number !== undefined) return number;
    const sum = weighedSum(record);
    let alike = this.#bySum.get(sum);
    if (alike === undefined) this.#bySum.set(sum, (alike = []));
    const same = alike.find((other) => isEqual(other, record));
    if (same === undefined) alike.push(record);
    number = same === undefined ? this.#count++ : (this.#known.get(same) ?? -1);
    this.#known.set(record, number);
    return number;
  }
}

/** Equal for equal distributions, and seldom for others. */
function weighedSum({ atS, weight }: Distribution): number {
  let sum = 0;
  for (let i = 0; i < atS.length; i++) sum += (i + 1) * (atS[i] ?? 0) * (1 + (weight[i] ?? 0));
  return sum;
}

function isEqual(a: Distribution, b: Distribution): boolean {
  return (
    a.atS.length === b.atS.length &&
    a.atS.every((s, i) => s === b.atS[i]) &&
    a.weight.every((w, i) => w === b.weight[i])
  );
}

/** Tasks of a class that are not given to a start yet. */
class Shares {
  readonly #members: Members;
  #at: number;
  #taken: number;

  constructor(members: Members, from: { readonly at: number; readonly taken: number } = { at: 0, taken: 0 }) {
    this.#members = members;
    this.#at = from.at;
    this.#taken = from.taken;
  }

  rest(): Shares {
    return new Shares(this.#members, { at: this.#at, taken: this.#taken });
  }

  take(tasks: number): readonly { readonly member: PendingGroup; readonly count: number }[] {
    const taken: { member: PendingGroup; count: number }[] = [];
    for (let left = tasks; left > 0;) {
      const member = invariant(this.#members[this.#at], 'a plan starts no more tasks of a class than wait');
      const count = Math.min(left, member.count - this.#taken);
      taken.push({ member, count });
      left -= count;
      this.#taken += count;
      if (this.#taken < member.count) continue;
      this.#at++;
      this.#taken = 0;
    }
    return taken;
  }
}

/** Answers for classes as answers for their groups. What is put off to a later slot is among what waits. */
function sharedOut(allotment: Allotment, classes: ReadonlyMap<GroupId, Members>): Allotment {
  const all = new Map([...classes].map(([id, members]) => [id, new Shares(members)]));
  const starts = allotment.starts.flatMap((start) => each(start, start.option.group, all).map(startOf));
  const rest = (): ReadonlyMap<GroupId, Shares> => new Map([...all].map(([id, shares]) => [id, shares.rest()]));
  const [later, waiting] = [rest(), rest()];
  const deferred = allotment.deferred.flatMap((start) => each(start, start.option.group, later).map(startOf));
  const waits = allotment.waits.flatMap((wait) =>
    each(wait, wait.group, waiting).map(({ part, group, count }) => ({ ...part, group, count })),
  );
  return { ...allotment, starts, deferred, waits };
}

interface Share<Part> {
  readonly part: Part;
  readonly group: GroupId;
  readonly count: number;
}

const each = <Part extends { readonly count: number }>(
  part: Part,
  id: GroupId,
  shares: ReadonlyMap<GroupId, Shares>,
): readonly Share<Part>[] =>
  invariant(shares.get(id), `the plan answers for ${id}, which does not wait`)
    .take(part.count)
    .map(({ member, count }) => ({ part, group: member.id, count }));

function startOf<Start extends Allotment['deferred'][number]>({ part, group, count }: Share<Start>): Start {
  const { option } = part;
  if (option.group === group) return { ...part, count };
  return { ...part, count, option: { ...option, group, offer: { ...option.offer, group } } };
}
