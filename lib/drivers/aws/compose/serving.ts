/** Dependencies of the Lambda that runs the controller of services, made once per process. */
import type { Round } from '../../../cycle/services/controller.ts';
import type { Wake } from '../cycle/wake.ts';

export interface Serving {
  readonly controller: { round(): Promise<Round> };
  readonly wake: Pick<Wake, 'begin' | 'end' | 'gaveUp'>;
  /** Wall time left of the invocation, ms. */
  remainingMs(): number;
  pause(ms: number): Promise<void>;
}

let known: Serving | null = null;

/** For tests: replaces the composition from the environment; null restores it. */
export function provideServing(serving: Serving | null): void {
  known = serving;
}

export function serving(compose: () => Serving): Serving {
  known ??= compose();
  return known;
}
