/**
 * Instances that all of their work is leaving. Packers that know it give these instances no new work.
 * Lifecycle: kept in the memory of decisions. The move stage says in each decision which instances work is leaving
 * now (`leavesNow`), or decides it for several cycles (`decide`, after `forgetGone`). A new process forgets the latter:
 * then instances are judged anew, and may get work until they are.
 */
import type { InstanceId } from '../kernel/ids.ts';
import { gt, type EpochMs } from '../kernel/units.ts';
import type { NamedTarget } from '../domain/plan.ts';
import { isIdle, type Snapshot } from '../domain/snapshot.ts';
import type { Host } from './contracts.ts';
import { slot } from './memory.ts';

export interface Leaving {
  /** Null: each task has a target of its own, which was ready when it was chosen. */
  readonly to: NamedTarget | null;
  /** The decision is made anew then. */
  readonly untilMs: EpochMs;
}

class LeavingInstances {
  readonly #leaving = new Map<InstanceId, Leaving>();
  #now: ReadonlySet<InstanceId> = new Set();

  has(id: InstanceId): boolean {
    return this.#leaving.has(id) || this.#now.has(id);
  }

  /** Replaces what the last decision said. */
  leavesNow(ids: ReadonlySet<InstanceId>): void {
    this.#now = ids;
  }

  /** The decision about an instance, while it holds. */
  decided(id: InstanceId, nowMs: EpochMs): Leaving | null {
    const leaving = this.#leaving.get(id);
    return leaving !== undefined && gt(leaving.untilMs, nowMs) ? leaving : null;
  }

  decide(id: InstanceId, leaving: Leaving): void {
    this.#leaving.set(id, leaving);
  }

  /** Stays after all, and may get work. */
  stays(id: InstanceId): void {
    this.#leaving.delete(id);
  }

  /** `reusesEmpty`: an instance that work has left may get work again, for its hour is paid. O(leaving instances). */
  forgetGone({ instances }: Pick<Snapshot, 'instances'>, reusesEmpty: boolean): void {
    for (const id of this.#leaving.keys()) {
      const view = instances.get(id);
      if (view === undefined || (reusesEmpty && isIdle(view))) this.#leaving.delete(id);
    }
  }
}

export const LEAVING = slot(() => new LeavingInstances());

/** Hosts that may get work. */
export const staying = (hosts: readonly Host[], leaving: Pick<LeavingInstances, 'has'>): readonly Host[] =>
  hosts.filter((h) => !leaving.has(h.on));
