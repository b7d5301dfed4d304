/**
 * Memory of policies between decisions: caches, so that forgetting costs nothing but time. One per engine, handed in
 * with the context; no module keeps state of its own.
 */

/** Names something that is kept, and makes it when it is first asked for. A constant of the module that owns it. */
export interface Slot<T> {
  /** Gets the memory, for values made of other cached values. */
  readonly make: (memory: DecisionMemory) => T;
}

export const slot = <T>(make: Slot<T>['make']): Slot<T> => ({ make });

export class DecisionMemory {
  readonly #kept = new Map<Slot<unknown>, unknown>();

  /** The same object each time, for as long as this memory lives. */
  of<T>(of: Slot<T>): T {
    if (!this.#kept.has(of)) this.#kept.set(of, of.make(this));
    return this.#kept.get(of) as T;
  }
}
