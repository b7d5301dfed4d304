import { unreachable } from '../../kernel/errors.ts';
import type { Change } from '../../ports/store.ts';

const KINDS: Readonly<Record<Change['put'], true>> = {
  job: true,
  task: true,
  attempt: true,
  instance: true,
  plan: true,
  effect: true,
  ledger: true,
  event: true,
  cursor: true,
  memory: true,
};

/** Refuses change types that this version does not know, before anything of a commit is written. */
export function expectKnown(changes: readonly Change[]): void {
  for (const change of changes) if (!(change.put in KINDS)) unreachable(change as never, 'store commit');
}
