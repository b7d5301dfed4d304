/** The thread in which decisions are tried (trials.ts). One request at a time, one reply each. Writes nothing. */
import { messageOf } from '../../kernel/errors.ts';
import { parentPort, workerData } from 'node:worker_threads';
import { decideOn } from '../../cycle/decide/decision.ts';

import { triedOn } from '../../cycle/decide/isolate.ts';
import { presetNamed } from '../../stages/registry.ts';
import { composeLearners } from '../../cycle/learn/compose-learners.ts';
import { DecisionMemory } from '../../policy/memory.ts';
import { tabledForecast } from '../../market/forecast/forecast-data.ts';
import type { Solver } from '../../policy/solver.ts';
import { TRIAL, type TrialData, type TrialReply, type TrialRequest } from './trials.ts';

/** Trials search for a fault, not for the last cent, so a greedy plan replaces the solver's. */
const noSolver: Solver = {
  solve: async () => ({ status: 'failed', detail: 'no solver is asked in a trial' }),
  relax: async () => null,
  write: async () => '',
  close: async () => undefined,
};

const data = workerData as TrialData | null;
// A bundle is its own worker, so that this file is loaded where no trials are wanted, too.
if (parentPort !== null && data?.kind === TRIAL) {
  const port = parentPort;
  const { observed, preset, config } = data;
  const learners = composeLearners();
  learners.restore(data.learned);
  const memory = new DecisionMemory();
  const market = tabledForecast(data.market);
  const { stages } = presetNamed(preset, config.presets);
  const answer = async (tried: TrialRequest): Promise<TrialReply> => {
    try {
      const snapshot = triedOn(observed.snapshot, tried);
      const forecasts = { runtime: stages.estimate({ snapshot, beliefs: learners, config, memory }), market };
      const parts = { stages, preset, solver: noSolver, config, beliefs: learners, memory };
      const { runningOffers: _, ...decision } = await decideOn({ ...observed, snapshot }, forecasts, parts);
      return { is: 'outcome', outcome: { status: 'decided', decision: { ...decision, runningOffers: new Map() } } };
    } catch (error) {
      return { is: 'outcome', outcome: { status: 'threw', error: messageOf(error) } };
    }
  };
  port.on('message', (request: TrialRequest) => {
    void answer(request).then((reply) => port.postMessage(reply));
  });
  port.postMessage({ is: 'ready' } satisfies TrialReply);
}
