import { schedulerConfig } from '../../lib/domain/config.ts';
import type { LearnedRuntimes, RuntimeHistory } from '../../lib/domain/forecasts.ts';
import type { Snapshot } from '../../lib/domain/snapshot.ts';
import type { EstimateContext } from '../../lib/policy/contracts.ts';
import type { LearnerFactory } from '../../lib/policy/learner.ts';
import { DecisionMemory } from '../../lib/policy/memory.ts';

/** What the estimate stage sees where this history is all that was learned, whichever policy asks. */
export const knowing = (
  snapshot: Snapshot,
  history: RuntimeHistory | LearnedRuntimes,
  memory = new DecisionMemory(),
): EstimateContext => ({
  snapshot,
  config: schedulerConfig.parse({}),
  memory,
  beliefs: { of: <Belief>(_: LearnerFactory<Belief>) => bothOf(history) as Belief },
});

const bothOf = (history: RuntimeHistory | LearnedRuntimes): LearnedRuntimes =>
  'recurring' in history ? history : { predict: (of) => history.predict(of), recurring: history };
