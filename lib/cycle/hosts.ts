import { most, ZERO_S, type Seconds } from '../kernel/units.ts';
import type { Placement } from '../domain/plan.ts';
import type { Pool } from '../domain/pool.ts';
import type { Resources } from '../domain/resources.ts';
import type { InstanceView } from '../domain/snapshot.ts';
import type { Host } from '../domain/stages.ts';
import type { LeftOf } from './left-of.ts';

/**
 * An instance that is there, as the packer sees it. Most have no room for anything, so what runs on them is looked at only when
 * their remaining time is asked for. Use `withFree` to change what is free: a spread would lose the rest.
 */
export class InstanceHost implements Host {
  readonly pool: Pool;
  readonly capacity: Resources;
  readonly free: Resources;
  readonly #view: InstanceView;
  readonly #leftOf: LeftOf;
  /** The one that this was made of by `withFree`: what is left is looked for once. */
  readonly #of: InstanceHost | null;
  #on: Placement['on'] | null = null;
  #remainingS: Seconds | null = null;

  /** `leftOf`: what a task of the instance still has to run; 0 for one that is about to stop. */
  constructor(view: InstanceView, leftOf: LeftOf, of: InstanceHost | null = null, free = view.free) {
    this.pool = view.pool;
    this.capacity = view.pool.type.capacity;
    this.free = free;
    this.#view = view;
    this.#leftOf = leftOf;
    this.#of = of;
  }

  get on(): Placement['on'] {
    return (this.#on ??= this.#of?.on ?? { instance: this.#view.instance.id });
  }

  get remainingS(): Seconds {
    if (this.#of !== null) return this.#of.remainingS;
    if (this.#remainingS !== null) return this.#remainingS;
    let remainingS = ZERO_S;
    for (const running of this.#view.attempts) remainingS = most(remainingS, this.#leftOf(running));
    return (this.#remainingS = remainingS);
  }

  withFree(free: Resources): Host {
    return new InstanceHost(this.#view, this.#leftOf, this, free);
  }
}

/** The same host with other free resources. */
export const withFree = (host: Host, free: Resources): Host =>
  host instanceof InstanceHost ? host.withFree(free) : { ...host, free };
