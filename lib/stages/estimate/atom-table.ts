import { invariant } from '../../kernel/errors.ts';

/**
 * Texts as small numbers, with reference counts. A text lives as long as some feature-value uses it, so that memory is
 * bounded by the number of feature-values, not by the number of names ever seen.
 */
export class AtomTable {
  readonly #ids = new Map<string, number>();
  readonly #texts: string[] = [];
  readonly #uses: number[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#ids.size;
  }

  /** -1 when the text is in no feature-value. */
  find(text: string): number {
    const id = this.#ids.get(text);
    if (id !== undefined) return id;
    return text.isWellFormed() ? -1 : (this.#ids.get(text.toWellFormed()) ?? -1);
  }

  /** Gives the text a number. The caller holds it (`hold`) for as long as it uses the number. */
  intern(given: string): number {
    // Stored keys are URL-encoded, which half a surrogate pair cannot be.
    const text = given.toWellFormed();
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    const id = this.#free.pop() ?? this.#texts.length;
    this.#texts[id] = text;
    this.#uses[id] = 0;
    this.#ids.set(text, id);
    return id;
  }

  hold(id: number): void {
    this.#uses[id] = (this.#uses[id] ?? 0) + 1;
  }

  release(id: number): void {
    const left = (this.#uses[id] ?? 0) - 1;
    this.#uses[id] = left;
    if (left > 0) return;
    this.#ids.delete(this.text(id));
    this.#texts[id] = '';
    this.#free.push(id);
  }

  text(id: number): string {
    return invariant(this.#texts[id], `text ${id} is kept`);
  }
}
