import type { ValuePolicy } from '../../policy/contracts.ts';
import { valuePolicy } from './assess.ts';
import { constantCurve } from './curves.ts';
import { jobWorth } from './jvusched.ts';

/**
 * Baseline: strict priority of deadline jobs over best effort ("prio" in JamaisVu section 5), blind to time: the same
 * worth whenever it finishes.
 */
export const strictPriority: ValuePolicy = valuePolicy((facts) => {
  const { usd, words } = jobWorth(facts);
  return { curve: constantCurve(facts.part * usd, facts.job.submittedMs), reason: `priority: ${words} at any time` };
});
