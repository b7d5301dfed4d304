import type { Acted, Confirmed, LookAnswer, Looked, Recorded, Solved } from '../../lib/drivers/aws/cycle/messages.ts';
import type { Step } from './stepped-engine.ts';

export type RunStep = <T>(step: Step, event: unknown) => Promise<T>;

/** Estimate and Solve, or Isolate where one of them threw. */
async function decided(looked: Looked, market: string, step: RunStep): Promise<Solved> {
  try {
    const { runtime } = await step<{ runtime: string }>('estimate', looked);
    return await step<Solved>('solve', { ...looked, runtime, market });
  } catch (error) {
    if ((error as Error).name !== 'internal') throw error;
    return step<Solved>('isolate', { ...looked, market });
  }
}

/** What the state machine does with one execution. Returns its rounds. */
export async function execute(execution: string, step: RunStep): Promise<number> {
  let next: { execution: string; round?: number } = { execution };
  for (let rounds = 1; ; rounds++) {
    const looked = await step<LookAnswer>('look', next);
    if (looked.idle) return rounds;
    const { market } = await step<{ market: string }>('forecast', looked);
    const solved = await decided(looked, market, step);
    const recorded = await step<Recorded>('record', solved);
    const acted: Acted[] = [];
    for (const batch of recorded.batches) acted.push(await step<Acted>('act', { ...recorded, batch }));
    const confirmed = await step<Confirmed>('confirm', { ...recorded, acted });
    if (!confirmed.again) return rounds;
    next = confirmed;
  }
}
