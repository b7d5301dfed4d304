/** Running times of waiting and running work, from histories. */
import middy from '@middy/core';
import type { z } from 'zod';
import type { ObservedState } from '../../lib/cycle/decide/decision.ts';
import { DecisionMemory } from '../../lib/policy/memory.ts';
import { presetNamed } from '../../lib/stages/registry.ts';
import { estimate, type Estimated } from '../../lib/cycle/steps.ts';
import { composeLearners } from '../../lib/cycle/learn/compose-learners.ts';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { estimateInput } from '../../lib/drivers/aws/cycle/messages.ts';
import { inTime } from '../../lib/drivers/aws/cycle/late.ts';
import { lambdaStack } from '../../lib/drivers/aws/lambda/stack.ts';

/** Caches of policies. They live as long as this process. */
const memory = new DecisionMemory();

export const handler = middy<z.output<typeof estimateInput>, { runtime: string }>()
  .use(lambdaStack('estimate', estimateInput))
  .use(inTime())
  .handler(async ({ execution, round, observation: reference }) => {
    const { carrier, store, config } = deployment(composeDeployment);
    const observed = await carrier.get<ObservedState>(reference);
    const { stages, learners } = presetNamed(config.preset, config.presets);
    const beliefs = composeLearners();
    await beliefs.recall(store, learners.estimate);
    const estimated: Estimated = {
      runtime: estimate(observed, stages, { beliefs, config, memory }),
      // Mostly none: then nothing is read.
      learned: await beliefs.stored(store, learners.decide),
    };
    return { runtime: await carrier.put(estimated, `${execution}/${round}/runtime`) };
  });
