/**
 * The controller of services. The clock, events of instances and tasks, and requests of people start it, one execution
 * at a time (wake.ts). It makes round after round while replicas start, drain or lose their instances, and ends
 * otherwise, until the clock starts it for the next monitoring period.
 */
import middy from '@middy/core';
import { z } from 'zod';
import { composeServing } from '../../lib/drivers/aws/compose/compose-serving.ts';
import { serving, type Serving } from '../../lib/drivers/aws/compose/serving.ts';
import { lambdaStack } from '../../lib/drivers/aws/lambda/stack.ts';

const input = z.object({ execution: z.string().min(1) });

/** Pause between two rounds while something changes: how soon health or a drained replica is seen. */
const PAUSE_MS = 3000;
/** Time until the next round with nothing to wait for: a monitoring period. */
const PERIOD_MS = 60_000;
/** Time of the invocation that a round may need. */
const ROUND_MS = 60_000;

export const handler = middy<z.output<typeof input>, void>()
  .use(lambdaStack('serve', input))
  .handler(async ({ execution }) => {
    const of = serving(composeServing);
    try {
      while (await round(of, execution)) await of.pause(PAUSE_MS);
    } catch (error) {
      // Others need not wait until this execution is taken for dead.
      await of.wake.gaveUp(execution);
      throw error;
    }
  });

/** True if another round is to follow here. */
async function round(of: Serving, execution: string): Promise<boolean> {
  const { controller, wake } = of;
  const seen = await wake.begin(execution);
  if (seen === null) return false;
  const { services, isChanging } = await controller.round();
  const hasTime = of.remainingMs() > PAUSE_MS + ROUND_MS;
  if (isChanging && hasTime) return true;
  const dueInMs = services === 0 ? null : isChanging ? 0 : PERIOD_MS;
  const isWanted = await wake.end(execution, { seen, dueInMs });
  if (isWanted && !hasTime) await wake.gaveUp(execution);
  return isWanted && hasTime;
}
