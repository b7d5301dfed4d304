/** Running times of all that waits or runs, from what was learned. */
import middy from '@middy/core';
import type { z } from 'zod';
import type { Sight } from '../../lib/cycle/decision.ts';
import { presetNamed } from '../../lib/cycle/presets.ts';
import { estimate } from '../../lib/cycle/steps.ts';
import { LoggedHistory } from '../../lib/estimate/logged-history.ts';
import { composeDeployment } from '../../lib/aws/compose.ts';
import { deployment } from '../../lib/aws/deployment.ts';
import { estimateInput } from '../../lib/aws/messages.ts';
import { inTime } from '../../lib/aws/late.ts';
import { lambdaStack } from '../../lib/aws/stack.ts';

export const handler = middy<z.output<typeof estimateInput>, { runtime: string }>()
  .use(lambdaStack('estimate', estimateInput))
  .use(inTime())
  .handler(async ({ execution, round, sight: reference }) => {
    const { carrier, store, config } = deployment(composeDeployment);
    const sight = await carrier.get<Sight>(reference);
    const history = new LoggedHistory();
    history.restore(await store.memory(history.prefix));
    const runtime = estimate(sight, presetNamed(config.preset), history);
    return { runtime: await carrier.put(runtime, `${execution}/${round}/runtime`) };
  });
