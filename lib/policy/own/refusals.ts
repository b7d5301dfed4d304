/** Answers of users' own policies that were refused, and the policy that answered in their place. */
import type { PolicyRefusal } from '../../domain/plan.ts';
import type { Stages } from '../contracts.ts';

/** Most distinct refusals that one decision reports. */
const MOST = 50;
/** Most distinct refusals that people are told of: reasons may differ in ids alone. */
const MOST_TOLD = 200;

/**
 * Collects refusals until a decision takes them. One per preset instance; in memory only. A repeated refusal within a
 * decision counts once.
 */
export class Refusals {
  #since = new Map<string, PolicyRefusal>();
  /** Told before. */
  readonly #told = new Set<string>();

  add(refusal: Omit<PolicyRefusal, 'isNew'>): void {
    const { stage, policy, why } = refusal;
    const key = `${stage} ${policy} ${why}`;
    if (this.#since.size >= MOST || this.#since.has(key)) return;
    const isNew = this.#told.size < MOST_TOLD && !this.#told.has(key);
    if (isNew) this.#told.add(key);
    this.#since.set(key, { ...refusal, isNew });
  }

  /** Refusals since the last call. */
  take(): readonly PolicyRefusal[] {
    if (this.#since.size === 0) return NONE;
    const taken = [...this.#since.values()];
    this.#since = new Map();
    return taken;
  }
}

const NONE: readonly PolicyRefusal[] = [];

/** Policies of the user's own within a preset: each is guarded and has a stand-in, a shipped policy of its stage. */
export interface OwnInUse<S> {
  readonly policies: readonly Pick<PolicyRefusal, 'stage' | 'policy' | 'standIn'>[];
  readonly refusals: Refusals;
  /** The preset with the stand-in in place of each. */
  readonly standIns: Stages<S>;
}
