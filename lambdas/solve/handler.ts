/**
 * The decision. HiGHS runs in a thread of its own, so that a model which takes too long is given up instead of the whole
 * step; the thread's program is this very file, of which it uses the solver's worker alone.
 */
import middy from '@middy/core';
import type { z } from 'zod';
import type { Forecasts } from '../../lib/domain/stages.ts';
import type { Sight } from '../../lib/cycle/decision.ts';
import { presetNamed } from '../../lib/cycle/presets.ts';
import type { RunningOffers } from '../../lib/cycle/running-offers.ts';
import { solve } from '../../lib/cycle/steps.ts';
import { highsSolver } from '../../lib/local/highs-solver.ts';
import '../../lib/local/highs-worker.ts';
import type { ForecastTable } from '../../lib/market/forecast/table.ts';
import { composeDeployment } from '../../lib/aws/compose.ts';
import { deployment } from '../../lib/aws/deployment.ts';
import { solveInput, type Solved } from '../../lib/aws/messages.ts';
import { inTime } from '../../lib/aws/late.ts';
import { lambdaStack, measure } from '../../lib/aws/stack.ts';

const solver = highsSolver({ worker: new URL(import.meta.url) });
/**
 * What this process answered before about jobs that run, to go on from. It is for explanations alone, so that to find it in another
 * process is not worth a put in each cycle.
 */
let known: RunningOffers = new Map();

export const handler = middy<z.output<typeof solveInput>, Solved>()
  .use(lambdaStack('solve', solveInput))
  .use(inTime())
  .handler(async ({ sight: seen, runtime, market, ...state }) => {
    const { carrier, config } = deployment(composeDeployment);
    const sight = await carrier.get<Sight>(seen);
    const forecasts = {
      runtime: await carrier.get<Forecasts['runtime']>(runtime),
      market: await carrier.get<ForecastTable>(market),
    };
    const { preset } = config;
    const parts = { stages: presetNamed(preset), preset, solver, config, knownOffers: known };
    const { runningOffers, ...decision } = await solve(sight, forecasts, parts);
    known = runningOffers;
    const { gap } = decision.plan.solve;
    if (gap !== null) measure('solverGap', gap);
    return { ...state, decision: await carrier.put(decision, `${state.execution}/${state.round}/decision`) };
  });
