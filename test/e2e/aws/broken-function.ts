import { DeployedFunction, type Place } from '../../../scripts/rehearsal/functions.ts';

/** A function of a deployment on LocalStack that fails for a while: what puts messages into dead letters. */
export class BrokenFunction {
  readonly #function: DeployedFunction;

  private constructor(broken: DeployedFunction) {
    this.#function = broken;
  }

  /** Breaks the function whose description has `about`, by what its environment says instead. */
  static async begin(at: Place, about: string, instead: Readonly<Record<string, string>>): Promise<BrokenFunction> {
    const found = await DeployedFunction.about(at, about);
    await found.set({ ...found.variables, ...instead });
    return new BrokenFunction(found);
  }

  async mend(): Promise<void> {
    await this.#function.set(this.#function.variables);
  }
}
