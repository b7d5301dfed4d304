import { expect, it } from '@jest/globals';
import { STAGES, type StageName } from '../../../lib/domain/preset-spec.ts';
import type { SceneContext, Stages } from '../../../lib/policy/contracts.ts';
import { withContext } from '../../../lib/policy/policy.ts';
import type { Solver } from '../../../lib/policy/solver.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const SCENE = ['snapshot', 'config', 'memory', 'beliefs'];
const VALUE = [...SCENE, 'forecasts'];
const DECISION = [...VALUE, 'worths', 'offers'];
const PARTS: Readonly<Record<StageName, readonly string[]>> = {
  estimate: SCENE,
  value: VALUE,
  appraise: [...VALUE, 'worths'],
  move: DECISION,
  plan: DECISION,
  order: DECISION,
  place: DECISION,
  queue: DECISION,
  speculate: DECISION,
  scale: DECISION,
};

it('every stage sees the whole context, or the part that there is before it', async () => {
  const { stages, asks } = presetNamed('greedy');
  const calls = new Map<StageName, number>();
  const watched = Object.fromEntries(
    STAGES.map((stage) => [
      stage,
      withContext(stage, stages[stage], <C extends SceneContext>(context: C): C => {
        calls.set(stage, (calls.get(stage) ?? 0) + 1);
        const given = Object.entries(context).flatMap(([key, value]) => (value === undefined ? [] : [key]));
        expect([stage, given]).toEqual([stage, expect.arrayContaining([...PARTS[stage]])]);
        return context;
      }),
    ]),
  ) as unknown as Stages<Solver>;
  // More work than places, so that some waits.
  const jobs = [
    simulatedJob('a', 0, [400, 1500], { deadlineS: 4 * 3600 }),
    simulatedJob('b', 0, new Array(40).fill(5)),
  ];
  await simulated(jobs, { deciders: () => ({ name: 'greedy', stages: watched, asks }) });
  expect([...calls.keys()].sort()).toEqual([...STAGES].sort());
});
