import type { Acted, Confirmed, LookAnswer, Recorded, Solved } from '../../lib/aws/messages.ts';
import type { Step } from './stepped-engine.ts';

export type RunStep = <T>(step: Step, event: unknown) => Promise<T>;

/** What the state machine does with one execution. Returns its rounds. */
export async function execute(execution: string, step: RunStep): Promise<number> {
  let next: { execution: string; round?: number } = { execution };
  for (let rounds = 1; ; rounds++) {
    const looked = await step<LookAnswer>('look', next);
    if (looked.idle) return rounds;
    const { runtime } = await step<{ runtime: string }>('estimate', looked);
    const { market } = await step<{ market: string }>('forecast', looked);
    const solved = await step<Solved>('solve', { ...looked, runtime, market });
    const recorded = await step<Recorded>('record', solved);
    const acted: Acted[] = [];
    for (const batch of recorded.batches) acted.push(await step<Acted>('act', { ...recorded, batch }));
    const confirmed = await step<Confirmed>('confirm', { ...recorded, acted });
    if (!confirmed.again) return rounds;
    next = confirmed;
  }
}
