/** Slow-downs by neighbours, for policies that count them where they can. */
import type { SceneContext } from '../contracts.ts';
import type { NeighbourBelief } from './neighbour-belief.ts';
import { neighbourLearner } from './neighbour-learner.ts';

/**
 * Null where they are not to count (`neighbours: false`), or where the policy does not declare the learner: one of a
 * user's own may wrap a shipped one that does.
 */
export const countedNeighbours = ({
  config,
  beliefs,
}: Pick<SceneContext, 'config' | 'beliefs'>): NeighbourBelief | null =>
  config.neighbours && (beliefs.has?.(neighbourLearner) ?? true) ? beliefs.of(neighbourLearner) : null;
