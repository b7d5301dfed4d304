import { LEARNERS } from '../../lib/stages/learners.ts';
import { Learners } from '../../lib/policy/learners.ts';
import type { Beliefs } from '../../lib/policy/learner.ts';

/** What every learner believes before anything has happened. */
export const NO_BELIEFS: Beliefs = new Learners(Object.values(LEARNERS), { isKept: false });
