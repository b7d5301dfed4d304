import { recordIntents } from '../../lib/cycle/act/intents.ts';
import { WorkingState } from '../../lib/cycle/state/working-state.ts';
import { unsolved, type Plan } from '../../lib/domain/plan.ts';
import { EbbError } from '../../lib/kernel/errors.ts';
import { planId } from '../../lib/kernel/ids.ts';
import type { EpochMs } from '../../lib/kernel/units.ts';
import type { Store } from '../../lib/ports/store.ts';
import { Crash, type Between } from './engine-bench.ts';

/** Plans that a test makes by hand: what policies to come will decide, without them. */
export async function recordByHand(
  store: Store,
  name: string,
  of: (state: WorkingState) => Pick<Plan, 'effects' | 'earliest'>,
  atMs: EpochMs,
): Promise<void> {
  const token = await store.takeLease('by hand');
  const state = new WorkingState(await store.loadActive());
  const plan = { id: planId(name), token, atMs, preset: 'test', explanations: [], solve: unsolved(0) };
  recordIntents(state, { ...plan, ...of(state) });
  await store.commit(token, state.takeChanges());
}

/** An engine that was overtaken ends, and a new one begins. */
export const restarted = (through: Between): Between => ({
  fleet: through.fleet,
  store: (s) => {
    const store = through.store(s);
    return new Proxy(store, {
      get: (target, method) => {
        const original: unknown = Reflect.get(target, method);
        if (typeof original !== 'function') return original;
        if (method !== 'commit') return original.bind(target) as unknown;
        return async (...args: Parameters<Store['commit']>) => {
          try {
            await target.commit(...args);
          } catch (error) {
            throw error instanceof EbbError && error.code === 'fenced' ? new Crash('overtaken') : error;
          }
        };
      },
    });
  },
});
