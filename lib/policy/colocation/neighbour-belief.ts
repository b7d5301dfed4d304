/** Beliefs about programs on one machine: their groups, preferences between groups, and slow-downs by group. */
import type { InstanceType } from '../../domain/pool.ts';
import type { AttemptEnded } from '../learner.ts';
import type { Group, Profile } from './grouping.ts';
import type { Normal, Slowdown } from './slowdowns.ts';
import type { Tenant } from './together.ts';

export interface TemplateView {
  readonly template: string;
  readonly group: string | null;
  readonly profile: Profile;
  readonly count: number;
}

export interface NeighbourBelief {
  readonly groups: readonly Group[];
  readonly templates: () => readonly TemplateView[];
  /** Group of a template; if it was never measured, that of the last one with its program. Null: none is like it. */
  readonly groupOf: (template: string) => string | null;
  /** Chances of each to be the next beside a running one. Keys are groups, or templates (`single`). Sum 1. */
  readonly chances: (running: string, all: readonly string[], single?: boolean) => readonly number[];
  readonly preference: (running: string, next: string) => number;
  /** Measurements of what ran beside a group. */
  readonly count: (running: string) => number;
  /** How much longer it runs beside them than alone. 1 where nothing is known. O(beside). */
  readonly slowdown: (template: string, beside: readonly Tenant[], type: InstanceType) => Slowdown;
  /**
   * The same over its attempts so far, whose running times hold the slow-downs that they had: for forecasts that follow
   * from these. `known` is the part of the machine whose tenants are known; the rest is taken to be as usual.
   */
  readonly againstUsual: (template: string, beside: readonly Tenant[], of: Place) => Slowdown;
  /** False: it is not known to be slowed down by anyone. O(groups). */
  readonly tells: (template: string) => boolean;
  /** The same of all templates. O(groups squared). */
  readonly tellsAny: () => boolean;
  /**
   * How much longer an attempt that is about to be learned from ran than alone, and the neighbour that is to blame the
   * most; null where it did not, or nobody is known to be. O(neighbours).
   */
  readonly ranLonger: (end: AttemptEnded) => { readonly factor: number; readonly beside: string } | null;
  /** Running time of an attempt that has ended over that beside its usual neighbours. 1: nothing is known. */
  readonly slowedBy: (end: AttemptEnded) => number;
  /** Theta of a pair of groups (slowdowns.ts); null: never measured. */
  readonly pair: (group: string, beside: string) => Normal | null;
}

/** A machine with known tenants. */
export interface Place {
  readonly type: InstanceType;
  /** Part of the machine that they ask for, with the task itself, in [0, 1]. */
  readonly known: number;
}
