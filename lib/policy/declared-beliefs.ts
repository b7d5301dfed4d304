/** Beliefs as one policy may read them: those of the learners that it declares, in every driver alike. */
import { EbbError } from '../kernel/errors.ts';
import type { Beliefs, LearnerFactory } from './learner.ts';

/** Policy with the learners that it declares, by name. */
export interface DeclaredLearners {
  readonly policy: string;
  readonly learners: ReadonlyMap<string, LearnerFactory>;
}

const WHOLE = Symbol('the beliefs that nothing is left out of');
type Limited = Beliefs & { readonly [WHOLE]?: Beliefs };

/** The same without anything to change; what was left out is left out, and other policies still find it. */
export function readOnlyBeliefs(given: Limited): Beliefs {
  const viewOf = (of: Beliefs): Beliefs =>
    Object.freeze<Beliefs>({ of: (learner) => of.of(learner), has: (learner) => of.has?.(learner) ?? true });
  const whole = given[WHOLE];
  const view: Limited = { ...viewOf(given), ...(whole === undefined ? {} : { [WHOLE]: viewOf(whole) }) };
  return Object.freeze(view);
}

/**
 * Beliefs limited to declared learners, also if they were limited for another policy before. Throws `internal` for
 * any other learner: a driver may not have recalled it, and its belief would be empty there.
 */
export function onlyDeclared(given: Limited, { policy, learners }: DeclaredLearners): Beliefs {
  const beliefs = given[WHOLE] ?? given;
  const declared = new Set(learners.values());
  const limited: Limited = {
    [WHOLE]: beliefs,
    has: (learner) => declared.has(learner),
    of: (learner) => {
      if (declared.has(learner)) return beliefs.of(learner);
      throw new EbbError('internal', {
        what: `the policy ${policy} reads beliefs of a learner that it does not declare`,
        got: learner.name,
        allowed: learners.size === 0 ? 'it declares none' : [...learners.keys()].join(', '),
        next: 'declare it in the policy’s `learners`',
      });
    },
  };
  return limited;
}
