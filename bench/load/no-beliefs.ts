import type { Beliefs } from '../../lib/policy/learner.ts';

/** Nothing was learned, and whoever asks for a belief is told so. */
export const NO_BELIEFS: Beliefs = {
  of: (learner) => {
    throw new Error(`nothing was learned here, by ${learner.name} neither`);
  },
};
