import type { EffectRecord } from '../../../ports/store.ts';
import type { OpenEffects } from './cache.ts';
import { body } from './codec.ts';
import { indexed, type EffectsDoc } from './documents.ts';
import { EFFECTS, effectsKey } from './keys.ts';
import type { Write } from './dynamo-table.ts';

/** Effects per item. The item is rewritten at each confirmation, so there are not too many. */
const EFFECTS_PER_ITEM = 64;

/** `EFFECTS` while a commit changes it: effects without an outcome, grouped by the commit that recorded them. */
export class EffectList {
  readonly #items: Map<string, EffectsDoc>;
  readonly #itemOf: Map<string, string>;
  readonly #changed = new Set<string>();
  readonly #commits: number;
  #part = 0;

  /** `commits` names the items that this commit makes. */
  constructor({ items, itemOf }: OpenEffects, commits: number) {
    this.#items = new Map(items);
    this.#itemOf = new Map(itemOf);
    this.#commits = commits;
  }

  /** `arrival` numbers a new effect. */
  put(effect: EffectRecord, arrival: () => number): void {
    const known = this.#itemOf.get(effect.key);
    if (known !== undefined) this.#replace(known, effect);
    else if (effect.outcome === null) this.#add(effect, arrival());
  }

  #replace(sk: string, effect: EffectRecord): void {
    const entries = this.#items.get(sk) ?? [];
    const isOpen = effect.outcome === null;
    this.#items.set(
      sk,
      isOpen
        ? entries.map(([n, e]) => (e.key === effect.key ? [n, effect] : [n, e]))
        : entries.filter(([, e]) => e.key !== effect.key),
    );
    if (!isOpen) this.#itemOf.delete(effect.key);
    this.#changed.add(sk);
  }

  #add(effect: EffectRecord, arrival: number): void {
    let { sk } = effectsKey(this.#commits, this.#part);
    if ((this.#items.get(sk)?.length ?? 0) >= EFFECTS_PER_ITEM) ({ sk } = effectsKey(this.#commits, ++this.#part));
    this.#items.set(sk, [...(this.#items.get(sk) ?? []), [arrival, effect]]);
    this.#itemOf.set(effect.key, sk);
    this.#changed.add(sk);
  }

  /** Items as they are now, without empty ones. */
  get open(): OpenEffects {
    const items = new Map([...this.#items].filter(([, doc]) => doc.length > 0));
    return { items, itemOf: indexed(items) };
  }

  writes(): readonly Write[] {
    return [...this.#changed].map((sk): Write => {
      const entries = this.#items.get(sk) ?? [];
      const key = { pk: EFFECTS, sk };
      return entries.length === 0 ? { key, isDeleted: true } : { key, set: { b: body(entries) } };
    });
  }
}
