/**
 * What policies keep from one decision to the next: caches, so that forgetting changes nothing but time. One for each
 * engine, handed in with the context; no module keeps anything by itself.
 */

/** Names something that is kept, and makes it when it is first asked for. A constant of the module that owns it. */
export interface Slot<T> {
  /** Given the memory, for what is made of other things that are kept. */
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
