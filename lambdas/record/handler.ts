/**
 * Intents of the decision, written under its fencing token. The answer names the batches in which they may be acted on.
 */
import middy from '@middy/core';
import type { z } from 'zod';
import type { Decision } from '../../lib/cycle/decide/decision.ts';
import { record } from '../../lib/cycle/steps.ts';
import { batchesOf } from '../../lib/drivers/aws/cycle/batches.ts';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { measuredStore } from '../../lib/drivers/aws/metrics/measures.ts';
import { PARTS, recordInput, type Recorded } from '../../lib/drivers/aws/cycle/messages.ts';
import { inTime } from '../../lib/drivers/aws/cycle/late.ts';
import { lambdaStack } from '../../lib/drivers/aws/lambda/stack.ts';

export const handler = middy<z.output<typeof recordInput>, Recorded>()
  .use(lambdaStack('record', recordInput))
  .use(inTime())
  .handler(async ({ decision: reference, ...state }) => {
    const { carrier, store, spent } = deployment(composeDeployment);
    const keys = await record(
      measuredStore(store, spent),
      await carrier.get<Omit<Decision, 'runningOffers'>>(reference),
    );
    const parts =
      keys.length === 0 ? { keys, batches: [], left: 0 } : batchesOf(await store.loadActive('known'), keys, PARTS);
    return {
      ...state,
      keys: await carrier.put(parts.keys, `${state.execution}/${state.round}/keys`),
      batches: [...parts.batches],
      left: parts.left,
    };
  });
