/** Last step: confirms outcomes, and says whether the next snapshot follows at once, later or not at all. */
import middy from '@middy/core';
import type { z } from 'zod';
import { composeLearners } from '../../lib/cycle/learn/compose-learners.ts';
import { MAX_HURRIED } from '../../lib/cycle/act/intents.ts';
import { confirmOutcomes, type Outcomes } from '../../lib/cycle/steps.ts';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { measuredStore } from '../../lib/drivers/aws/metrics/measures.ts';
import { confirmInput, type Confirmed } from '../../lib/drivers/aws/cycle/messages.ts';
import { inTime } from '../../lib/drivers/aws/cycle/late.ts';
import { lambdaStack, measure } from '../../lib/drivers/aws/lambda/stack.ts';

/**
 * Age of an execution from which the next round starts a new one. An Express execution ends after five minutes
 * (lib/drivers/aws/cycle/late.ts).
 */
const LONG_MS = 90_000;

export const handler = middy<z.output<typeof confirmInput>, Confirmed>()
  .use(lambdaStack('confirm', confirmInput))
  .use(inTime())
  .handler(async ({ execution, round, began, entered, observedMs, seen, token, dueInMs, acted, left }) => {
    const of = deployment(composeDeployment);
    let wasShort = false;
    const parts = await Promise.all(acted.map((a) => of.carrier.get<Outcomes>(a.outcomes)));
    if (parts.length > 0) {
      const outcomes: Outcomes = new Map(parts.flatMap((part) => [...part]));
      ({ wasShort } = await confirmOutcomes(
        { store: measuredStore(of.store, of.spent), clock: of.clock, learners: composeLearners() },
        token,
        outcomes,
      ));
    }
    const isLeft = left > 0 || acted.some((a) => a.left > 0);
    if (isLeft || (wasShort && round < MAX_HURRIED)) await of.wake.want();
    measure('cycleTime', of.nowMs() - observedMs);
    const isWanted = await of.wake.end(execution, { seen, dueInMs });
    const isLong = Date.parse(entered ?? '') - Date.parse(began ?? '') > LONG_MS;
    if (isWanted && isLong) await of.wake.handOver(execution);
    return { again: isWanted && !isLong, execution, round: round + 1 };
  });
