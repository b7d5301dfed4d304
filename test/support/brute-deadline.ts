/**
 * The deadline program's question answered in the plainest way: time in small equal steps, every state by recursion
 * with a table. Shares no code with lib/policy/deadline-program but the numbers of its states.
 */
import type { State, Terms } from '../../lib/policy/deadline-program/program.ts';

interface Hazards {
  readonly up: readonly number[];
  readonly down: readonly number[];
  readonly agesFromH: readonly number[];
}

/** Cost of a state whose times are multiples of `stepH`. One pool only. */
export function bruteForce(terms: Terms, { up, down, agesFromH }: Hazards, stepH: number): (state: State) => number {
  const known = new Map<number, number>();
  const ages = agesFromH.length;
  const takes = Math.round(terms.takesH / stepH);
  const p = (perHour: number): number => 1 - Math.exp(-perHour * stepH);
  const grows = (age: number): number => {
    const next = agesFromH[age + 1];
    return next === undefined ? 0 : p(1 / (next - (agesFromH[age] ?? 0)));
  };
  /** Mean over what becomes of a spell in a step. */
  const after = (hazard: number, age: number, ended: () => number, goesOn: (age: number) => number): number => {
    const [end, older] = [p(hazard), grows(age)];
    return end * ended() + (1 - end) * (older * (older > 0 ? goesOn(age + 1) : 0) + (1 - older) * goesOn(age));
  };
  const cost = (place: number, work: number, slack: number, age: number): number => {
    if (work <= 0) return 0;
    if (slack < 0) return terms.late + work * stepH;
    const key = ((place * 1000 + work) * 1000 + slack) * ages + age;
    const found = known.get(key);
    if (found !== undefined) return found;
    const value = worked(place, work, slack, age);
    known.set(key, value);
    return value;
  };
  const toOnDemand = (place: number, work: number, slack: number, age: number): number =>
    terms.paidH + cost(place === 1 ? 4 : 3, work, slack - takes, age);
  const toSpot = (work: number, slack: number, age: number): number => {
    if (slack < takes) return Infinity;
    const fails = 1 - Math.exp(-(up[age] ?? 0) * terms.upFactor * terms.takesH);
    const lost = (terms.price * terms.paidH) / 2 + cost(1, work, slack - Math.round(takes / 2), 0);
    return (1 - fails) * (terms.price * terms.paidH + cost(2, work, slack - takes, age)) + fails * lost;
  };
  const worked = (place: number, work: number, slack: number, age: number): number => {
    const upHazard = (up[age] ?? 0) * terms.upFactor;
    const downHazard = down[age] ?? 0;
    const at = (to: number, w: number, s: number) => (a: number) => cost(to, w, s, a);
    const lasts = (to: number) => at(to, work - 1, slack);
    switch (place) {
      case 0:
        return Math.min(toSpot(work, slack, age), toOnDemand(0, work, slack, age));
      case 1:
        return Math.min(
          toOnDemand(1, work, slack, age),
          after(downHazard, age, () => cost(0, work, slack - 1, 0), at(1, work, slack - 1)),
        );
      case 2:
        return Math.min(
          toOnDemand(2, work, slack, age),
          terms.price * stepH + after(upHazard, age, () => cost(1, work - 1, slack, 0), lasts(2)),
        );
      case 3:
        return Math.min(
          toSpot(work, slack, age),
          stepH + after(upHazard, age, () => cost(4, work - 1, slack, 0), lasts(3)),
        );
      default:
        return stepH + after(downHazard, age, () => cost(3, work - 1, slack, 0), lasts(4));
    }
  };
  return ({ place, workH, slackH, age }) => cost(place, Math.round(workH / stepH), Math.round(slackH / stepH), age);
}
