/** Copies of slow tasks: those that have a turn, for which the plan of the same name leaves room, or all. */
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Copy, SpeculatePolicy } from '../../policy/contracts.ts';
import type { Turning } from '../../policy/turns/by-job.ts';
import { CopyRoom } from '../../policy/speculation/copy-room.ts';
import { stragglersIn } from '../../policy/speculation/stragglers.ts';
import { turnsOf } from '../../policy/turns/turns.ts';
import type { CopyRule, Straggler } from '../../policy/speculation/copy-rules.ts';

export const copiesInTurn =
  (turning: Turning): SpeculatePolicy =>
  (context) =>
    copiesOf(turnsOf(context, turning(context)).copies, context.snapshot);

/** Copies of slow tasks wherever the starts of all jobs leave room: best-effort speculation (Hopper, section 1). */
export const copiesOnRoomLeft =
  (rule: CopyRule): SpeculatePolicy =>
  (context) =>
    copiesOf(stragglersIn(context, rule), context.snapshot);

/**
 * On room that there is, else on a machine of a fixed cluster that is not up. Others are not bought for copies.
 * O(stages x (instances + pools) + copies).
 */
function copiesOf(stragglers: readonly Straggler[], snapshot: Snapshot): readonly Copy[] {
  const room = new CopyRoom(snapshot);
  return stragglers.map(({ running, reason, attempts }): Copy => {
    const to = room.there(running) === null ? room.own(running)?.to : undefined;
    return { of: running.attempt.id, reason, ...(to && { to }), ...(attempts !== undefined && { attempts }) };
  });
}
