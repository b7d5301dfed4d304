/**
 * Wait, spot or on-demand until a deadline, as one stochastic program: the least expected cost of finishing work that
 * saves its state when it is interrupted.
 *
 * State: work left w and slack s (time left less work left), both in hours; place (none, spot, on-demand); spot up or
 * down, with the age of that spell (spells.ts). Actions: wait or start while on nothing; stay or leave on spot; stay or
 * return on on-demand. Costs are in hours of on-demand:
 *
 *   on-demand    1 per hour, w falls, s stays            spot   `price` per hour, likewise, until an up spell ends
 *   waiting      nothing, s falls, w stays               start  s falls by `takesH`, costs `paidH` of the new place
 *   not done in time, s < 0                              `late`, and the rest on on-demand
 *
 * A start on spot may be interrupted before it is over. An interruption finds another pool up with P = otherIsUp, else
 * a down spell of age 0. On-demand is not left to wait, and nothing waits while spot is up: the age of a spell shows
 * only to who holds an instance.
 *
 * Method: the Markov chain approximation of Kushner and Dupuis ("Numerical Methods for Stochastic Control Problems in
 * Continuous Time", chapter 5): upwind differences, backward in w, then in s. Each value is a mean of its neighbours
 * plus a cost, with weights that are probabilities. So the scheme is monotone: the best of several actions costs no
 * more than any rule that picks among them, and the values of a rule come from the same sweep. States of one (w, s)
 * refer to each other, through spells that end and starts shorter than a step. They are swept SWEEPS times from the
 * values of the next smaller slack, which are above them.
 *
 * Size and error: see grid.ts. A value is too dear by 0.5 to 2 % against steps of a quarter. Decisions compare two such
 * values, and lose much less.
 */
import { AGE_FROM_H, AGES, downFactor, DOWN_PER_HOUR, otherIsUp, UP_PER_HOUR, type Spells } from './spells.ts';
import { below, shareAt, shifted, slackAxis, workAxis, type Fineness, type Shift } from './grid.ts';

/** A place, with spot up or down. */
export const IDLE_UP = 0;
export const IDLE_DOWN = 1;
export const ON_SPOT = 2;
export const ON_DEMAND_UP = 3;
export const ON_DEMAND_DOWN = 4;
export type Place = 0 | 1 | 2 | 3 | 4;
const STATES = 5 * AGES;
/** Offsets of the places' blocks of AGES values. */
const UP = IDLE_UP * AGES;
const DOWN = IDLE_DOWN * AGES;
const SPOT = ON_SPOT * AGES;
const OD_UP = ON_DEMAND_UP * AGES;
const OD_DOWN = ON_DEMAND_DOWN * AGES;

export type Action = 'stay' | 'spot' | 'on-demand';

/** What the program is solved for. */
export interface Terms extends Spells {
  readonly mostWorkH: number;
  readonly mostSlackH: number;
  /** Price of spot as a fraction of on-demand. */
  readonly price: number;
  /** Slack that a start takes, hours; > 0. */
  readonly takesH: number;
  /** Hours that a start is paid for without work done. */
  readonly paidH: number;
  /** Cost of missing the deadline, hours of on-demand. */
  readonly late: number;
}

export interface State {
  readonly place: Place;
  readonly workH: number;
  readonly slackH: number;
  /** Index of the age of the spell. */
  readonly age: number;
}

/** A fixed rule in place of the best action, to value it under the same model; the costs tell what is possible. */
export type Rule = (state: State, costs: ActionCosts) => Action;

/** Costs of a state's actions, hours of on-demand; Infinity: not possible. */
export interface ActionCosts {
  readonly stay: number;
  readonly spot: number;
  readonly onDemand: number;
}

/** Sweeps of the states of one (w, s), and where no good first values are known. */
const SWEEPS = 2;
const EDGE_SWEEPS = 30;
/** Differences below this, in hours of on-demand, are none. */
const TIE_H = 1e-6;

export class DeadlineProgram {
  readonly terms: Terms;
  readonly #rule: Rule | null;
  readonly #work: Float64Array;
  readonly #slack: Float64Array;
  /** 1 / step to each point. */
  readonly #workRate: Float64Array;
  readonly #slackRate: Float64Array;
  readonly #values: Float64Array;
  /** Ends of up and down spells per hour by age, and passages to the next age. */
  readonly #up: Float64Array;
  readonly #down: Float64Array;
  readonly #older: Float64Array;
  /** P(a start on spot is interrupted), by age. */
  readonly #fails: Float64Array;
  readonly #otherUp: number;
  /** Positions of s - takesH and of s - takesH / 2. */
  readonly #started: Shift;
  readonly #halfStarted: Shift;

  constructor(terms: Terms, { rule = null, fineness = 1 }: { rule?: Rule | null; fineness?: Fineness } = {}) {
    this.terms = terms;
    this.#rule = rule;
    this.#work = workAxis(terms.mostWorkH, fineness);
    this.#slack = slackAxis(terms.mostSlackH, terms.takesH, fineness);
    this.#workRate = this.#work.map((at, i) => 1 / (at - (this.#work[i - 1] ?? 0)));
    this.#slackRate = this.#slack.map((at, i) => 1 / (at - (this.#slack[i - 1] ?? 0)));
    this.#values = new Float64Array(this.#work.length * this.#slack.length * STATES);
    this.#up = Float64Array.from(UP_PER_HOUR, (h) => h * terms.upFactor);
    this.#down = Float64Array.from(DOWN_PER_HOUR, (h) => h * downFactor(terms));
    this.#older = Float64Array.from(AGE_FROM_H, (from, k) => 1 / ((AGE_FROM_H[k + 1] ?? Infinity) - from));
    this.#fails = this.#up.map((h) => 1 - Math.exp(-h * terms.takesH));
    this.#otherUp = otherIsUp(terms);
    this.#started = shifted(this.#slack, terms.takesH);
    this.#halfStarted = shifted(this.#slack, terms.takesH / 2);
    for (let w = 1; w < this.#work.length; w++) for (let s = 0; s < this.#slack.length; s++) this.#solve(w, s);
  }

  /** Number of values. */
  get size(): number {
    return this.#values.length;
  }

  /** Expected cost from a state on, hours of on-demand. Beyond the grid it is that of the grid's edge. */
  cost({ place, workH, slackH, age }: State): number {
    if (workH <= 0) return 0;
    if (slackH < 0) return this.terms.late + workH;
    const w = below(this.#work, workH);
    const s = below(this.#slack, slackH);
    const f = shareAt(this.#work, w, workH);
    const g = shareAt(this.#slack, s, slackH);
    const part = place * AGES + age;
    const at = (i: number, j: number): number => this.#values[this.#node(i, j) + part] ?? 0;
    return (1 - g) * ((1 - f) * at(w, s) + f * at(w + 1, s)) + g * ((1 - f) * at(w, s + 1) + f * at(w + 1, s + 1));
  }

  /**
   * Costs of the actions from now on. Actions at the four grid points around are compared, never an action with a best
   * value: interpolation would favour staying.
   */
  actions({ place, workH, slackH, age }: State): ActionCosts {
    const late = this.terms.late + workH;
    if (slackH < 0) return { stay: late, spot: late, onDemand: late };
    const w = below(this.#work, workH);
    const s = below(this.#slack, slackH);
    const f = shareAt(this.#work, w, workH);
    const g = shareAt(this.#slack, s, slackH);
    let [stay, spot, onDemand] = [0, 0, 0];
    for (let i = 0; i < 2; i++) {
      for (let j = 0; j < 2; j++) {
        const weight = (i === 0 ? 1 - f : f) * (j === 0 ? 1 - g : g);
        if (weight === 0 || w + i === 0) continue;
        stay += weight * this.#stay(w + i, s + j, place, age);
        spot += weight * this.#toSpot(w + i, s + j, place, age);
        onDemand += weight * this.#toOnDemand(w + i, s + j, place, age);
      }
    }
    return { stay, spot, onDemand };
  }

  #node(w: number, s: number): number {
    return (w * this.#slack.length + s) * STATES;
  }

  /** Values of all states of one (w, s), from those of less work and of less slack. */
  #solve(w: number, s: number): void {
    const here = this.#node(w, s);
    if (s === 0) this.#values.fill(this.#work[w] ?? 0, here, here + STATES);
    else this.#guess(here, this.#node(w - 1, s));
    const sweeps = s === 0 || w === 1 ? EDGE_SWEEPS : SWEEPS;
    for (let sweep = 0; sweep < sweeps; sweep++) {
      for (let k = AGES - 1; k >= 0; k--) this.#improve(w, s, ON_SPOT, k);
      for (let k = AGES - 1; k >= 0; k--) this.#improve(w, s, ON_DEMAND_DOWN, k);
      for (let k = AGES - 1; k >= 0; k--) this.#improve(w, s, ON_DEMAND_UP, k);
      for (let k = AGES - 1; k >= 0; k--) this.#improve(w, s, IDLE_UP, k);
      for (let k = AGES - 1; k >= 0; k--) this.#improve(w, s, IDLE_DOWN, k);
    }
  }

  /** First values of a (w, s): those of less work, and what the last step of work cost at the next smaller slack. */
  #guess(here: number, less: number): void {
    const v = this.#values;
    for (let k = 0; k < STATES; k++) {
      const cost = (v[here + k - STATES] as number) - (v[less + k - STATES] as number);
      v[here + k] = (v[less + k] as number) + Math.max(0, cost);
    }
  }

  #improve(w: number, s: number, place: Place, k: number): void {
    const stay = this.#stay(w, s, place, k);
    const spot = this.#toSpot(w, s, place, k);
    const onDemand = this.#toOnDemand(w, s, place, k);
    const at = this.#node(w, s) + place * AGES + k;
    this.#values[at] =
      this.#rule === null ? Math.min(stay, spot, onDemand) : this.#byRule({ w, s, place, k }, { stay, spot, onDemand });
  }

  /** Cost of staying until the next event: some work is done or slack has passed, a spell ends, or it grows older. */
  #stay(w: number, s: number, place: Place, k: number): number {
    if (place === IDLE_UP) return Infinity;
    if (place === IDLE_DOWN) return this.#wait(w, s, k);
    const v = this.#values;
    const here = this.#node(w, s);
    const block = place * AGES + k;
    const rate = this.#workRate[w] as number;
    const older = this.#older[k] as number;
    const ends = (place === ON_DEMAND_DOWN ? this.#down[k] : this.#up[k]) as number;
    const ended =
      place === ON_SPOT ? this.#lost(here) : (v[here + (place === ON_DEMAND_UP ? OD_DOWN : OD_UP)] as number);
    const goesOn = rate * (v[this.#node(w - 1, s) + block] as number);
    const ages = older > 0 ? older * (v[here + block + 1] as number) : 0;
    return ((place === ON_SPOT ? this.terms.price : 1) + goesOn + ends * ended + ages) / (rate + ends + older);
  }

  #wait(w: number, s: number, k: number): number {
    if (s === 0) return this.terms.late + (this.#work[w] as number);
    const v = this.#values;
    const here = this.#node(w, s);
    const passing = this.#slackRate[s] as number;
    const older = this.#older[k] as number;
    const down = this.#down[k] as number;
    const ages = older > 0 ? older * (v[here + DOWN + k + 1] as number) : 0;
    return (
      (passing * (v[here - STATES + DOWN + k] as number) + down * (v[here + UP] as number) + ages) /
      (passing + down + older)
    );
  }

  /** Value after an interruption. */
  #lost(here: number): number {
    return (
      (1 - this.#otherUp) * (this.#values[here + DOWN] as number) +
      this.#otherUp * (this.#values[here + UP + 1] as number)
    );
  }

  /** Cost of a start on on-demand; late where the slack does not hold it. */
  #toOnDemand(w: number, s: number, place: Place, k: number): number {
    if (place === ON_DEMAND_UP || place === ON_DEMAND_DOWN) return Infinity;
    const { late, paidH } = this.terms;
    if ((this.#started.index[s] as number) < 0) return late + (this.#work[w] as number) + paidH;
    return paidH + this.#between(w, this.#started, s, (place === IDLE_DOWN ? OD_DOWN : OD_UP) + k);
  }

  #toSpot(w: number, s: number, place: Place, k: number): number {
    if (place !== IDLE_UP && place !== ON_DEMAND_UP) return Infinity;
    const { late, price, paidH } = this.terms;
    if ((this.#started.index[s] as number) < 0) return late + (this.#work[w] as number) + price * paidH;
    const fails = this.#fails[k] as number;
    const goesOn = price * paidH + this.#between(w, this.#started, s, SPOT + k);
    return (1 - fails) * goesOn + fails * ((price * paidH) / 2 + this.#between(w, this.#halfStarted, s, DOWN));
  }

  /** Value at a shifted slack, linear between grid points. */
  #between(w: number, { index, share }: Shift, s: number, part: number): number {
    const at = this.#node(w, index[s] as number) + part;
    const from = this.#values[at] as number;
    const f = share[s] as number;
    return f > 0 ? from + f * ((this.#values[at + STATES] as number) - from) : from;
  }

  #byRule({ w, s, place, k }: { w: number; s: number; place: Place; k: number }, costs: ActionCosts): number {
    const state = { place, workH: this.#work[w] ?? 0, slackH: this.#slack[s] ?? 0, age: k };
    const action = this.#rule?.(state, costs);
    return action === 'spot' ? costs.spot : action === 'on-demand' ? costs.onDemand : costs.stay;
  }
}

/** The best action. Ties go to spot, then stay. */
export function best({ stay, spot, onDemand }: ActionCosts): Action {
  if (spot <= Math.min(stay, onDemand) + TIE_H) return 'spot';
  return onDemand <= stay + TIE_H ? 'on-demand' : 'stay';
}
