/**
 * Decision without the jobs that make it fail, after `estimate` or `solve` threw or ran out of time.
 * Each trial runs in a thread that can be ended. The thread loads this file and uses the worker alone.
 */
import middy from '@middy/core';
import type { z } from 'zod';
import type { ObservedState } from '../../lib/cycle/decide/decision.ts';
import type { IsolationLimits } from '../../lib/cycle/decide/isolate.ts';
import { isolateFaulty } from '../../lib/cycle/steps.ts';
import { composeLearners } from '../../lib/cycle/learn/compose-learners.ts';
import { presetNamed } from '../../lib/stages/registry.ts';
import { EbbError } from '../../lib/kernel/errors.ts';
import { openTrials } from '../../lib/drivers/solver/trials.ts';
import '../../lib/drivers/solver/trial-worker.ts';
import type { ForecastTable } from '../../lib/market/forecast/forecast-data.ts';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { inTime } from '../../lib/drivers/aws/cycle/late.ts';
import { isolateInput, type Solved } from '../../lib/drivers/aws/cycle/messages.ts';
import { lambdaStack, logger } from '../../lib/drivers/aws/lambda/stack.ts';

/**
 * Limits in ms. The budget, the last trial and the start of a thread stay within the function's time-out
 * (lib/infra/functions.ts).
 */
const LIMITS: IsolationLimits = { groupMs: 4000, jobMs: 8000, allMs: 20_000, budgetMs: 70_000 };

export const handler = middy<z.output<typeof isolateInput>, Solved>()
  .use(lambdaStack('isolate', isolateInput))
  .use(inTime())
  .handler(async ({ observation: reference, market, ...state }) => {
    const { carrier, store, config } = deployment(composeDeployment);
    const observed = await carrier.get<ObservedState>(reference);
    const table = await carrier.get<ForecastTable>(market);
    const { learners } = presetNamed(config.preset, config.presets);
    const learned = await composeLearners().stored(store, learners.all);
    const trials = openTrials(
      { observed, market: table, learned, preset: config.preset, config },
      new URL(import.meta.url),
    );
    try {
      const isolated = await isolateFaulty(observed, trials, LIMITS);
      if (isolated === null) {
        throw new EbbError('internal', {
          what: 'no decision can be made, and no job is to blame for it',
          next: 'see the logs of the functions estimate and solve',
        });
      }
      const { runningOffers: _, ...decision } = isolated;
      logger.error('no decision can be made on these jobs', { held: decision.held, undecided: decision.undecided });
      return { ...state, decision: await carrier.put(decision, `${state.execution}/${state.round}/decision`) };
    } finally {
      await trials.close();
    }
  });
