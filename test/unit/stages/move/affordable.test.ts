import { expect, it } from '@jest/globals';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import type { DecisionContext, Move } from '../../../../lib/policy/contracts.ts';
import { affordableMoves } from '../../../../lib/stages/move/affordable.ts';
import { decided, host, jobOf, onDemand, runs, SAVES, spot } from '../../../support/decision-scene.ts';

/** A gang of two tasks on spot and one on on-demand, and a task beside it; a policy moves one task of each. */
async function movesOf(over: Parameters<typeof jobOf>[2]): Promise<readonly string[]> {
  const gang = jobOf('j-gang', { running: 3 }, { gang: true, expectedRuntimeS: seconds(7200), ...over });
  const lone = jobOf('j-lone', { running: 1 }, { expectedRuntimeS: seconds(7200) });
  const { deliberation } = await decided({
    jobs: [gang, lone],
    attempts: [
      runs('a0', gang, { instance: instanceId('i-a') }),
      runs('a1', gang, { index: 1, instance: instanceId('i-b') }),
      runs('a2', gang, { index: 2, instance: instanceId('i-c') }),
      runs('b0', lone, { instance: instanceId('i-b') }),
    ],
    instances: [host('i-a', spot), host('i-b', spot), host('i-c', onDemand)],
  });
  const { snapshot } = deliberation;
  const moves = snapshot.running.flatMap((running): Move[] => {
    const view = snapshot.instances.get(running.attempt.instance);
    const isMoved = ['a1', 'b0'].includes(running.attempt.id);
    return isMoved && view !== undefined ? [{ attempt: running.attempt.id, reason: 'late', running, view }] : [];
  });
  return affordableMoves(moves, deliberation as unknown as DecisionContext).map((m) => m.attempt);
}

it('all tasks of a gang on spot leave it together', async () => {
  expect(await movesOf({ checkpoint: SAVES })).toEqual(['a0', 'a1', 'b0']);
});

it('none of a gang leaves that would lose too much work', async () => {
  expect(await movesOf({ checkpoint: null, expectedRuntimeS: seconds(600) })).toEqual(['b0']);
});
