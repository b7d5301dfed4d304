/**
 * The decision. HiGHS runs in a thread of its own, so that a model which takes too long is given up instead of the
 * whole step; the thread's program is this very file, of which it uses the solver's worker alone.
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
 * What this process answered before about jobs that run, to go on from. It is for explanations alone, so that to find
 * it in another process is not worth a put in each cycle.
 */
let known: RunningOffers = new Map();
/** Caches of policies, for as long as this process lives. */
const memory = new DecisionMemory();

export const handler = middy<z.output<typeof solveInput>, Solved>()
  .use(lambdaStack('solve', solveInput))
  .use(inTime())
  .handler(async ({ sight: seen, runtime, market, ...state }) => {
    const { carrier, config } = deployment(composeDeployment);
    const observed = await carrier.get<ObservedState>(seen);
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
