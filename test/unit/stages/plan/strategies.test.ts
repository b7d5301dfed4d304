import { describe, expect, it } from '@jest/globals';
import type { Allotment } from '../../../../lib/domain/plan.ts';
import type { PlanPolicy } from '../../../../lib/policy/contracts.ts';
import { spotGreedyPlan } from '../../../../lib/stages/plan/spot-greedy.ts';
import { uniformProgressPlan } from '../../../../lib/stages/plan/uniform-progress.ts';
import { HOUR_S, ON_DEMAND, SPOT, handmade, type Handmade, type Waiting } from '../../../support/handmade-plan.ts';

const planned = (plan: PlanPolicy<unknown>, waiting: Partial<Waiting>, over: Handmade = {}): Promise<Allotment> =>
  plan(handmade({ ...over, waiting: [{ name: 'a', worthUsd: 5, ...waiting }] }), null);

/** The pool that it starts in, or why it waits. */
async function answer(plan: PlanPolicy<unknown>, waiting: Partial<Waiting>): Promise<string | undefined> {
  const { starts, waits } = await planned(plan, waiting);
  expect(starts.length + waits.length).toBe(1);
  return starts[0]?.option.offer.pool ?? waits[0]?.detail;
}

const SHUT = { opens: { inS: 900, p: 0.5 } };
/** Slack: two cycles before the last safe start are far off. */
const slack = { deadlineS: 9 * HOUR_S, safeStartS: HOUR_S };
const only = (...purchaseOptions: ('spot' | 'on-demand')[]): Partial<Waiting> => ({
  stage: { constraints: { purchaseOptions } },
});

describe.each([
  ['spot-greedy', spotGreedyPlan],
  ['uniform-progress', uniformProgressPlan],
] as const)('%s', (_, plan) => {
  it('takes spot whenever there is some, with and without a deadline', async () => {
    expect(await answer(plan, slack)).toBe(SPOT.id);
    expect(await answer(plan, {})).toBe(SPOT.id);
  });

  it('waits without spot and without a deadline, and says so', async () => {
    const { waits } = await planned(plan, SHUT);
    expect(waits).toMatchObject([{ why: 'capacity', count: 1 }]);
    expect(waits[0]?.detail).toMatch(/^no spot pool that suits it gives capacity now/);
  });

  it('takes on-demand from two cycles before the last safe start on', async () => {
    expect(await answer(plan, { ...slack, safeStartS: 120 })).toBe(ON_DEMAND.id);
    expect(await answer(plan, { ...slack, safeStartS: 121 })).toBe(SPOT.id);
  });

  it('takes spot for work that may only use spot, also at its last safe start, and waits where there is none', async () => {
    const late = { ...slack, safeStartS: 60, ...only('spot') };
    expect(await answer(plan, late)).toBe(SPOT.id);
    expect(await answer(plan, { ...late, ...SHUT })).toMatch(/, and no spot pool that it may use gives capacity now$/);
  });

  it('takes on-demand for work that may not use spot', async () => {
    expect(await answer(plan, only('on-demand'))).toBe(ON_DEMAND.id);
    expect(await answer(plan, { ...slack, ...SHUT, ...only('on-demand') })).toBe(ON_DEMAND.id);
    expect(await answer(plan, only('on-demand', 'spot'))).toBe(SPOT.id);
  });

  it('puts nothing off to a lower price', async () => {
    const { starts, deferred } = await planned(plan, {}, { expectedSpotUsd: (s) => (s > 0 ? 0.01 : 0.08) });
    expect([starts.length, deferred.length]).toEqual([1, 0]);
  });

  it('stops best-effort work for deadlines only', async () => {
    const full: Handmade = { running: [{ name: 'r', instance: 'i-1', tasks: 4 }], vcpus: 4 };
    expect((await planned(plan, { ...slack, worthUsd: 5 }, full)).preemptions).toHaveLength(1);
    const equal = await planned(plan, { worthUsd: 5 }, full);
    expect(equal.preemptions).toEqual([]);
    expect(equal.waits).toMatchObject([{ why: 'capacity' }]);
    expect(equal.waits[0]?.detail).not.toMatch(/spot/);
  });

  it('leaves groups alone that nobody appraised', async () => {
    const input = handmade({ waiting: [{ name: 'a', worthUsd: 5 }] });
    const { starts, waits } = await plan({ ...input, offers: new Map() }, null);
    expect([starts.length, waits.length]).toEqual([0, 1]);
  });
});

describe('spot-greedy', () => {
  it('waits for spot until the last safe start, and says so', async () => {
    expect(await answer(spotGreedyPlan, { ...slack, ...SHUT })).toBe(
      'no spot pool that suits it gives capacity now; it waits for one, until on-demand is all that still meets the deadline',
    );
    expect(await answer(spotGreedyPlan, SHUT)).toBe('no spot pool that suits it gives capacity now; it waits for one');
  });
});

describe('uniform-progress', () => {
  // Ten hours of window, of which one is gone, and six of work: 2,160 s should be done.
  const line = { ...slack, submittedS: -HOUR_S, runtimeS: 6 * HOUR_S };

  it('without spot takes on-demand behind its line and waits before it', async () => {
    expect(await answer(uniformProgressPlan, { ...line, ...SHUT, keptS: 2150 })).toBe(ON_DEMAND.id);
    expect(await answer(uniformProgressPlan, { ...line, ...SHUT, keptS: 3000 })).toBe(
      'no spot pool gives capacity now, and it is 840 s ahead of uniform progress',
    );
  });

  it('takes spot behind its line too', async () => {
    expect(await answer(uniformProgressPlan, { ...line, keptS: 0 })).toBe(SPOT.id);
  });

  it('takes on-demand where the time left is the work left and two changeovers of 170 s', async () => {
    const left = (spareS: number) => ({
      runtimeS: HOUR_S,
      deadlineS: HOUR_S + spareS,
      safeStartS: 130,
      submittedS: -9,
    });
    expect(await answer(uniformProgressPlan, left(339))).toBe(ON_DEMAND.id);
    expect(await answer(uniformProgressPlan, left(341))).toBe(SPOT.id);
  });

  it('says that its safety net is reached where only spot is allowed and none is there', async () => {
    const late = { ...slack, ...SHUT, safeStartS: 60, ...only('spot') };
    expect(await answer(uniformProgressPlan, late)).toMatch(/^its safety net is reached, and no spot/);
    expect(await answer(uniformProgressPlan, { ...line, ...SHUT, ...only('spot') })).toMatch(
      /^it is behind its line of uniform progress, and no spot/,
    );
  });
});
