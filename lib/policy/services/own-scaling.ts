/** A scaling policy of the user's own, as its module gives it. Experimental, as policies of a stage are. */
import { z } from 'zod';
import { policyName } from '../../domain/preset-spec.ts';
import { EbbError } from '../../kernel/errors.ts';
import type { ScalingPolicy } from './contracts.ts';

export interface OwnScalingSpec {
  readonly stage: 'scaling';
  /** Lower-case letters, digits and dashes. No shipped scaling policy has it. */
  readonly name: string;
  /** One line for lists. */
  readonly about: string;
  /** Called once. The policy is asked in each monitoring period. */
  readonly decide: () => ScalingPolicy;
}

export interface OwnScaling extends Pick<OwnScalingSpec, 'name' | 'about'> {
  readonly policy: ScalingPolicy;
}

const form = z.strictObject({
  stage: z.literal('scaling'),
  name: policyName,
  about: z.string().min(1).max(200),
  decide: z.custom<OwnScalingSpec['decide']>((value) => typeof value === 'function', 'must be a function'),
});

/** True for a definition that is meant as a scaling policy. */
export const isScaling = (given: unknown): boolean =>
  typeof given === 'object' && given !== null && (given as { readonly stage?: unknown }).stage === 'scaling';

/** Throws `usage` with all findings, or if `decide` throws or returns no function. `from`: the module, for messages. */
export function ownScaling(given: unknown, from: string): OwnScaling {
  const parsed = form.safeParse(given);
  const issues = parsed.success
    ? []
    : parsed.error.issues.map(({ path, message }) => ({ at: path.join('.') || 'policy', message }));
  if (parsed.success) {
    const { name, about, decide } = parsed.data;
    const policy: unknown = decide();
    if (typeof policy === 'function') return { name, about, policy: policy as ScalingPolicy };
    issues.push({ at: 'decide', message: `must return a function; got ${policy === null ? 'null' : typeof policy}` });
  }
  throw new EbbError('usage', {
    what: `${from} gives a scaling policy that is none`,
    issues,
    next: 'see docs/write-a-policy.md',
  });
}
