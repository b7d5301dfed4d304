/**
 * First step of a cycle: takes the lease, applies observations and takes one snapshot. Ends the run if nothing is left
 * to do.
 */
import middy from '@middy/core';
import { raw } from '../../lib/kernel/units.ts';
import { observe, nextCycleS } from '../../lib/cycle/steps.ts';
import { composeLearners } from '../../lib/cycle/learn/compose-learners.ts';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment, type Deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { measuredStore, measureHeldJobs, measureSnapshot } from '../../lib/drivers/aws/metrics/measures.ts';
import { cycleStart, type CycleStart, type SnapshotAnswer } from '../../lib/drivers/aws/cycle/messages.ts';
import { inTime } from '../../lib/drivers/aws/cycle/late.ts';
import { lambdaStack, logger } from '../../lib/drivers/aws/lambda/stack.ts';
import { windowEndsOf } from '../../lib/drivers/aws/market/window-ends.ts';

export const handler = middy<CycleStart, SnapshotAnswer>()
  .use(lambdaStack('snapshot', cycleStart))
  .use(inTime())
  .handler(async ({ execution, round, began }) => {
    const of = deployment(composeDeployment);
    const observedMs = of.nowMs();
    const prices = await of.market();
    for (;;) {
      const seen = await of.wake.begin(execution);
      if (seen === null) return { idle: true };
      const parts = {
        ...of,
        market: prices.market,
        store: measuredStore(of.store, of.spent),
        learners: composeLearners(),
        holder: execution,
        onHeld: measureHeldJobs,
      };
      const observed = await observe(parts, of.draining);
      await wakeServices(of);
      if (observed === null) {
        if (await of.wake.end(execution, { seen, dueInMs: null })) continue;
        await of.windowEnds?.keep([]);
        return { idle: true };
      }
      await measureSnapshot(observed.snapshot, prices, of.spent);
      await of.windowEnds?.keep(windowEndsOf(observed.snapshot, of.config, { nowMs: observedMs, speed: of.speed }));
      return {
        idle: false,
        execution,
        round,
        ...(began === undefined ? {} : { began }),
        observedMs,
        seen,
        token: observed.token,
        dueInMs: (raw(nextCycleS(observed, of.config)) * 1000) / of.speed,
        observation: await of.carrier.put(observed, `${execution}/${round}/observation`),
      };
    }
  });

/** Tells the controller of services that something changed. If that fails the cycle goes on: a clock runs it anyway. */
async function wakeServices({ serviceWake }: Deployment): Promise<void> {
  try {
    await serviceWake?.wake();
  } catch (error) {
    logger.warn('the controller of services could not be started', { error });
  }
}
