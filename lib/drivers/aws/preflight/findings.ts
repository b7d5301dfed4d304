import type { Issue } from '../../../kernel/errors.ts';

export interface Findings {
  /** Faults that would fail the deployment, or leave it unable to buy. */
  readonly failures: Issue[];
  /** Remarks for people, and questions without an answer: those do not count as passed. */
  readonly notes: Issue[];
}
