import type {
  Acted,
  Confirmed,
  SnapshotAnswer,
  Snapshotted,
  Recorded,
  Solved,
} from '../../lib/drivers/aws/cycle/messages.ts';
import type { Step } from './stepped-engine.ts';

export type RunStep = <T>(step: Step, event: unknown) => Promise<T>;

/** Estimate and Solve, or Isolate where one of them threw. */
async function decided(snapshotted: Snapshotted, market: string, step: RunStep): Promise<Solved> {
  try {
    const { runtime } = await step<{ runtime: string }>('estimate', snapshotted);
    return await step<Solved>('solve', { ...snapshotted, runtime, market });
  } catch (error) {
    if ((error as Error).name !== 'internal') throw error;
    return step<Solved>('isolate', { ...snapshotted, market });
  }
}

/** What the state machine does with one execution. Returns its rounds. */
export async function execute(execution: string, step: RunStep): Promise<number> {
  let next: { execution: string; round?: number } = { execution };
  for (let rounds = 1; ; rounds++) {
    const snapshotted = await step<SnapshotAnswer>('snapshot', next);
    if (snapshotted.idle) return rounds;
    const { market } = await step<{ market: string }>('forecast', snapshotted);
    const solved = await decided(snapshotted, market, step);
    const recorded = await step<Recorded>('record', solved);
    const acted: Acted[] = [];
    for (const batch of recorded.batches) acted.push(await step<Acted>('act', { ...recorded, batch }));
    const confirmed = await step<Confirmed>('confirm', { ...recorded, acted });
    if (!confirmed.again) return rounds;
    next = confirmed;
  }
}
