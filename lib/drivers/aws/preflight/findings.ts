import type { Issue } from '../../../kernel/errors.ts';

export interface Findings {
  /** Each would fail the deployment, or leave it unable to buy anything. */
  readonly failures: Issue[];
  /** What a person should know, and what could not be asked: that is not passed. */
  readonly notes: Issue[];
}
