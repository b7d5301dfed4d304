import type { z } from 'zod';
import { faultOf, type InputFaults } from './fault.ts';

/** One call of a service: what it takes, and what it does. Undefined members of an answer are left out. */
export interface Action<Output> {
  run(raw: unknown, faults: InputFaults): Promise<Output>;
}

/** Throws the service's own fault for input that `schema` refuses. */
export function action<S extends z.ZodType, Output>(
  schema: S,
  run: (input: z.output<S>) => Output | Promise<Output>,
): Action<Output> {
  return {
    async run(raw, faults) {
      const parsed = schema.safeParse(raw);
      if (!parsed.success) throw faultOf(parsed.error, faults);
      return run(parsed.data);
    },
  };
}

export type Actions<Output> = Readonly<Record<string, Action<Output>>>;

/**
 * Tokens of one call and what each stood for: repeated with the same parameters a token gives the same answer again.
 */
export class Tokens<Answer> {
  readonly #known = new Map<string, { readonly asked: string; readonly answer: Promise<Answer> }>();

  /**
   * `mismatch` makes what is thrown when the token was used with other parameters. A call that fails binds no token:
   * only what has completed is repeated.
   */
  async once(
    token: string | undefined,
    asked: unknown,
    does: { answer: () => Promise<Answer>; mismatch: (first: Answer) => Error },
  ): Promise<Answer> {
    if (token === undefined) return does.answer();
    const text = JSON.stringify(asked);
    const known = this.#known.get(token);
    if (known !== undefined) {
      if (known.asked !== text) throw does.mismatch(await known.answer);
      return known.answer;
    }
    const answer = does.answer();
    this.#known.set(token, { asked: text, answer });
    answer.catch(() => this.#known.delete(token));
    return answer;
  }
}
