/**
 * The decision. HiGHS runs in its own thread, so that a slow model is given up alone and not with the step. The thread
 * loads this file and uses the solver's worker alone.
 */
import middy from '@middy/core';
import type { z } from 'zod';
import type { ObservedState } from '../../lib/cycle/decide/decision.ts';
import { DecisionMemory } from '../../lib/policy/memory.ts';
import { presetNamed } from '../../lib/stages/registry.ts';
import type { RunningOffers } from '../../lib/cycle/decide/deliberation.ts';
import { composeLearners } from '../../lib/cycle/learn/compose-learners.ts';
import { solve, type Estimated } from '../../lib/cycle/steps.ts';
import { highsSolver } from '../../lib/drivers/solver/highs-solver.ts';
import '../../lib/drivers/solver/highs-worker.ts';
import type { ForecastTable } from '../../lib/market/forecast/forecast-data.ts';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { solveInput, type Solved } from '../../lib/drivers/aws/cycle/messages.ts';
import { inTime } from '../../lib/drivers/aws/cycle/late.ts';
import { lambdaStack, measure } from '../../lib/drivers/aws/lambda/stack.ts';

const solver = highsSolver({ worker: new URL(import.meta.url) });
/**
 * Offers of running jobs from this process's last decision. Only explanations use them, so a put per cycle would not be
 * worth it.
 */
let known: RunningOffers = new Map();
/** Caches of policies. They live as long as this process. */
const memory = new DecisionMemory();

export const handler = middy<z.output<typeof solveInput>, Solved>()
  .use(lambdaStack('solve', solveInput))
  .use(inTime())
  .handler(async ({ observation: reference, runtime, market, ...state }) => {
    const { carrier, config } = deployment(composeDeployment);
    const observed = await carrier.get<ObservedState>(reference);
    const { learned, ...estimated } = await carrier.get<Estimated>(runtime);
    const forecasts = { ...estimated, market: await carrier.get<ForecastTable>(market) };
    const { preset } = config;
    const { stages } = presetNamed(preset, config.presets);
    const beliefs = composeLearners();
    beliefs.restore(learned);
    const parts = { stages, preset, solver, config, beliefs, memory, knownOffers: known };
    const { runningOffers, ...decision } = await solve(observed, forecasts, parts);
    known = runningOffers;
    const { gap } = decision.plan.solve;
    if (gap !== null) measure('solverGap', gap);
    return { ...state, decision: await carrier.put(decision, `${state.execution}/${state.round}/decision`) };
  });
