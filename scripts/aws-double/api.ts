import type { z } from 'zod';
import { faultOf, type InputFaults } from './fault.ts';

/** One call of a service: schema of its input, and its effect. Undefined members of an answer are left out. */
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

/** Client tokens of one call. A repeated token with the same parameters gives the same answer. */
export class Tokens<Answer> {
  readonly #known = new Map<string, { readonly asked: string; readonly answer: Promise<Answer> }>();

  /**
   * Answer of a token. `mismatch`: fault for a token with other parameters. Failed calls bind no token; only completed
   * ones are repeated.
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
