import type { Draw } from './supply.ts';

/**
 * Space-time request expressions: STRL with JamaisVu's preemption primitives (pSTRL, section 4.1.1), as plain data.
 *
 * Leaves stand for rectangles in resource space-time. Instead of "nodes", a unit draws a vector of resources on one
 * partition or several (a task on free room; a whole-machine share of the vCPU quota, the job's budget). Times are
 * slots of the look-ahead window: start inclusive, duration >= 1, so a leaf covers [start, start + duration).
 *
 * A leaf is *chosen* when it has units. Semantics of an assignment of units to leaves:
 *  - nCk: value when exactly k units, none otherwise allowed but 0. lnCk: value * units / k for 0 <= units <= k.
 *  - killnCk / killLnCk: the same with -cost; what they draw is given back instead of taken (Alg. 1).
 *  - max: at most one child is chosen; its value. min: the least value of its children (0 for one not chosen). sum: the
 *    sum.
 *  - scale: factor >= 0 times the child. barrier: `threshold` once the child's value reaches it, else 0.
 */
export type Expression = Leaf | Max | Min | Sum | Scale | Barrier;
export type Leaf = NCk | LnCk | KillnCk | KillLnCk;

/** One of the interchangeable sources of a unit. The members of a leaf are its equivalence set. */
export interface Member {
  readonly name: string;
  readonly draws: readonly Draw[];
  /** Most units from this member: its capacity, or the number that fit on its machines one by one. */
  readonly atMost: number;
}

interface LeafBase {
  /** Unique within the expression; names variables and rows. */
  readonly id: string;
  readonly set: readonly Member[];
  readonly k: number;
  readonly start: number;
  readonly duration: number;
}
/** All or nothing: exactly k units or none. */
export interface NCk extends LeafBase {
  readonly kind: 'nCk';
  /** Value of k units. */
  readonly value: number;
}
/** Linear: up to k units. */
export interface LnCk extends LeafBase {
  readonly kind: 'lnCk';
  /** Value of k units; proportionally less for fewer. */
  readonly value: number;
}
/** Preempts exactly k units or none. */
export interface KillnCk extends LeafBase {
  readonly kind: 'killnCk';
  readonly cost: number;
}
/** Preempts up to k units. */
export interface KillLnCk extends LeafBase {
  readonly kind: 'killLnCk';
  readonly cost: number;
}
export interface Max {
  readonly kind: 'max';
  readonly of: readonly Expression[];
}
export interface Min {
  readonly kind: 'min';
  readonly of: readonly Expression[];
}
export interface Sum {
  readonly kind: 'sum';
  readonly of: readonly Expression[];
}
export interface Scale {
  readonly kind: 'scale';
  readonly factor: number;
  readonly of: Expression;
}
export interface Barrier {
  readonly kind: 'barrier';
  readonly threshold: number;
  readonly of: Expression;
}

type Leafless<L extends Leaf> = Omit<L, 'kind'>;
export const nCk = (leaf: Leafless<NCk>): NCk => ({ kind: 'nCk', ...leaf });
export const lnCk = (leaf: Leafless<LnCk>): LnCk => ({ kind: 'lnCk', ...leaf });
export const killnCk = (leaf: Leafless<KillnCk>): KillnCk => ({ kind: 'killnCk', ...leaf });
export const killLnCk = (leaf: Leafless<KillLnCk>): KillLnCk => ({ kind: 'killLnCk', ...leaf });
export const max = (...of: readonly Expression[]): Max => ({ kind: 'max', of });
export const min = (...of: readonly Expression[]): Min => ({ kind: 'min', of });
export const sum = (...of: readonly Expression[]): Sum => ({ kind: 'sum', of });
export const scale = (factor: number, of: Expression): Scale => ({ kind: 'scale', factor, of });
export const barrier = (threshold: number, of: Expression): Barrier => ({ kind: 'barrier', threshold, of });

/** Units per leaf and member: `units[leaf.id][member]`. Absent leaves have none. */
export type Assignment = ReadonlyMap<string, readonly number[]>;

export const isLeaf = (e: Expression): e is Leaf =>
  e.kind === 'nCk' || e.kind === 'lnCk' || e.kind === 'killnCk' || e.kind === 'killLnCk';
export const isKill = (e: Leaf): e is KillnCk | KillLnCk => e.kind === 'killnCk' || e.kind === 'killLnCk';
/** Children, none for a leaf. */
export function childrenOf(e: Expression): readonly Expression[] {
  if (isLeaf(e)) return [];
  return e.kind === 'scale' || e.kind === 'barrier' ? [e.of] : e.of;
}

/** Leaves in order. */
export function leavesOf(e: Expression): readonly Leaf[] {
  return isLeaf(e) ? [e] : childrenOf(e).flatMap(leavesOf);
}
