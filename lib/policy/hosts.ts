import { invariant } from '../kernel/errors.ts';
import type { InstanceId } from '../kernel/ids.ts';
import type { Seconds } from '../kernel/units.ts';
import type { Placement } from '../domain/plan.ts';
import type { Pool } from '../domain/pool.ts';
import { fits, leastOfEach, minusResources, type Resources } from '../domain/resources.ts';
import type { InstanceView } from '../domain/snapshot.ts';
import type { Host, TaskToPlace } from './contracts.ts';

/**
 * A live instance, for the packer. Most have no room, so the remaining time of their tasks is computed only on demand.
 * Use `withFree` to change `free`: an object spread would lose the getters.
 */
export class InstanceHost implements Host {
  readonly pool: Pool;
  readonly capacity: Resources;
  readonly free: Resources;
  readonly given: readonly Placement[];
  readonly #view: InstanceView;
  readonly #remainingOf: (view: InstanceView) => Seconds;
  /** Origin of a `withFree` copy, so that remaining time is computed once. */
  readonly #of: InstanceHost | null;
  #remainingS: Seconds | null = null;

  /**
   * `remainingOf`: the longest time that a task of the instance still has to run, those that are about to stop left
   * out.
   */
  constructor(
    view: InstanceView,
    remainingOf: (view: InstanceView) => Seconds,
    of: InstanceHost | null = null,
    { free, given }: Required<Pick<Host, 'free' | 'given'>> = { free: view.free, given: NONE },
  ) {
    this.pool = view.pool;
    this.capacity = view.pool.type.capacity;
    this.free = free;
    this.given = given;
    this.#view = view;
    this.#remainingOf = remainingOf;
    this.#of = of;
  }

  get on(): InstanceId {
    return this.#view.instance.id;
  }

  get remainingS(): Seconds {
    if (this.#of !== null) return this.#of.remainingS;
    return (this.#remainingS ??= this.#remainingOf(this.#view));
  }

  withFree(free: Resources, given: readonly Placement[]): Host {
    return new InstanceHost(this.#view, this.#remainingOf, this, { free, given });
  }
}

const NONE: readonly Placement[] = [];

/** The same host with other free resources, and with what was given to it. */
export const withFree = (host: Host, free: Resources, given = host.given ?? NONE): Host =>
  host instanceof InstanceHost ? host.withFree(free, given) : { ...host, free, given };

/** Hosts with the free room that the placements leave. O(hosts + placements). */
export function afterPlacing(
  hosts: readonly Host[],
  tasks: readonly Pick<TaskToPlace, 'group' | 'need'>[],
  placements: readonly Placement[],
): readonly Host[] {
  if (placements.length === 0) return hosts;
  const need = new Map(tasks.map((t) => [t.group, t.need]));
  const takenBy = Map.groupBy(placements, (p) => p.on);
  let remaining = takenBy.size;
  return hosts.map((h) => {
    const mine = remaining > 0 ? takenBy.get(h.on) : undefined;
    if (mine === undefined) return h;
    remaining--;
    const free = mine.reduce(
      (f, p) => minusResources(f, invariant(need.get(p.group), 'a placed task has a need')),
      h.free,
    );
    return withFree(h, free, [...(h.given ?? NONE), ...mine]);
  });
}

/** A host with so much free room at most. An empty one has no more capacity than that, so that it looks empty. */
export function upTo(host: Host, most: Resources): Host {
  const free = leastOfEach(host.free, most);
  if (!fits(host.capacity, host.free)) return withFree(host, free);
  const { on, pool, remainingS, given = NONE } = host;
  return { on, pool, capacity: free, free, remainingS, given };
}
