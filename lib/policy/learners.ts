/**
 * All learners of one process. Made once from their factories; the cycle tells events to it, and drivers store and
 * restore through it, so that neither needs a learner's name.
 * A learner that throws is reported by its name; the others go on. Invariant: a row is written by the learner whose
 * prefix it has.
 */
import { EbbError } from '../kernel/errors.ts';
import type { Beliefs, Learner, LearnerFactory, LearnerTerms, LearningEvent, LearningEventKind } from './learner.ts';

/** Rows of a store, for reading. */
export interface StoredRows {
  memory(prefix: string): Promise<ReadonlyMap<string, string>>;
}

export interface LearnersOptions extends Partial<LearnerTerms> {
  /** Key prefixes of rows that others store beside those of learners. */
  readonly taken?: readonly string[];
}

/** Called with the learner and its error. */
export type OnLearnerFault = (learner: string, error: unknown) => void;

const NONE: readonly Learner<unknown>[] = [];

export class Learners implements Beliefs {
  readonly #made: ReadonlyMap<LearnerFactory, Learner<unknown>>;
  readonly #byEvent = new Map<LearningEventKind, Learner<unknown>[]>();
  readonly #isKept: boolean;

  /** Throws `internal` for learners that share a name, or whose rows could be mixed up. */
  constructor(factories: readonly LearnerFactory[], { isKept = true, taken = [] }: LearnersOptions = {}) {
    this.#isKept = isKept;
    this.#made = new Map(factories.map((make) => [make, make({ isKept })]));
    const learners = [...this.#made.values()];
    expectApart(learners, taken);
    for (const learner of learners) {
      for (const kind of learner.learnsFrom) this.#byEvent.set(kind, [...(this.#byEvent.get(kind) ?? NONE), learner]);
    }
  }

  of<Belief>(learner: LearnerFactory<Belief>): Belief {
    return this.#named(learner).belief() as Belief;
  }

  /** Learners of one event type. */
  learningFrom(kind: LearningEventKind): readonly LearnerFactory[] {
    return [...this.#made].filter(([, { learnsFrom }]) => learnsFrom.includes(kind)).map(([make]) => make);
  }

  observe(event: LearningEvent, onFault: OnLearnerFault): void {
    for (const learner of this.#byEvent.get(event.kind) ?? NONE) {
      try {
        learner.observe(event);
      } catch (error) {
        onFault(learner.name, error);
      }
    }
  }

  /**
   * Rows that changed since the last call. Rows of a learner that throws, and rows under another learner's prefix, are
   * left out.
   */
  takeDirty(put: (key: string, value: string) => void, onFault: OnLearnerFault): void {
    if (!this.#isKept) return;
    for (const learner of this.#made.values()) {
      try {
        for (const [key, value] of learner.takeDirty()) {
          if (key.startsWith(learner.prefix)) put(key, value);
          else onFault(learner.name, strayRow(learner, key));
        }
      } catch (error) {
        onFault(learner.name, error);
      }
    }
  }

  /** Replaces the state of these learners by the stored rows; default: all learners. Throws the errors of `restore`. */
  async recall(store: StoredRows, which?: readonly LearnerFactory[]): Promise<void> {
    for (const learner of this.#chosen(which)) learner.restore(await store.memory(learner.prefix));
  }

  /** Stored rows of these learners; default: of all. */
  async stored(store: StoredRows, which?: readonly LearnerFactory[]): Promise<ReadonlyMap<string, string>> {
    const rows = new Map<string, string>();
    for (const { prefix } of this.#chosen(which)) {
      for (const [key, value] of await store.memory(prefix)) rows.set(key, value);
    }
    return rows;
  }

  /** `recall` from given rows. */
  restore(rows: ReadonlyMap<string, string>): void {
    for (const learner of this.#made.values()) {
      learner.restore(new Map(rows.entries().filter(([key]) => key.startsWith(learner.prefix))));
    }
  }

  #chosen(which?: readonly LearnerFactory[]): Iterable<Learner<unknown>> {
    return which === undefined ? this.#made.values() : which.map((make) => this.#named(make));
  }

  #named(make: LearnerFactory): Learner<unknown> {
    const learner = this.#made.get(make);
    if (learner !== undefined) return learner;
    throw new EbbError('internal', {
      what: 'a belief is asked of a learner that is not registered',
      got: make.name,
      allowed: [...this.#made.values()].map(({ name }) => name).join(', '),
    });
  }
}

function expectApart(learners: readonly Learner<unknown>[], taken: readonly string[]): void {
  const names = new Set<string>();
  const prefixes = [...taken];
  for (const { name, prefix } of learners) {
    const mixed = prefixes.find((p) => p.startsWith(prefix) || prefix.startsWith(p));
    const wrong = names.has(name)
      ? 'a name that another learner has'
      : !/^[^/]+\/$/.test(prefix)
        ? 'a key prefix that is not one word and a slash'
        : mixed !== undefined
          ? `a key prefix that is taken (${mixed})`
          : null;
    if (wrong !== null) throw new EbbError('internal', { what: `learner ${name} has ${wrong}`, got: prefix });
    names.add(name);
    prefixes.push(prefix);
  }
}

const strayRow = ({ prefix }: Learner<unknown>, key: string): EbbError =>
  new EbbError('internal', { what: 'a row is not under the prefix of its learner', got: key, allowed: `${prefix}...` });
