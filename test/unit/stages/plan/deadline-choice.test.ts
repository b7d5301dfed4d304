import { describe, expect, it } from '@jest/globals';
import { groupId } from '../../../../lib/kernel/ids.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { certain, distribution } from '../../../../lib/domain/distribution.ts';
import { invariant } from '../../../../lib/kernel/errors.ts';
import { deadlineAnswer, type DeadlineAnswer } from '../../../../lib/stages/plan/deadline-choice.ts';
import { greedyPlan } from '../../../../lib/stages/plan/greedy.ts';
import type { PlanInput } from '../../../../lib/policy/contracts.ts';
import { at, handmade, HOUR_S, SPOT, type Handmade, type Waiting } from '../../../support/handmade-plan.ts';

const SAVES = { checkpoint: { signal: 'SIGTERM', graceS: seconds(30), everyS: null } } as const;
const OPENS = { inS: 200, p: 0.5 };

/** Ten hours of work that saves its state, and so much slack until its last safe start. */
const long = (slackH: number, over: Partial<Waiting> = {}): Waiting => ({
  name: 'long',
  cpus: 4,
  worthUsd: 4000,
  runtimeS: 10 * HOUR_S,
  deadlineS: (10 + slackH) * HOUR_S + 200,
  safeStartS: slackH * HOUR_S,
  stage: SAVES,
  ...over,
});

/** Spot has refused so many times in a row; 0: it is open. */
function scene(waiting: Waiting, refusals: number, world: Handmade = {}): PlanInput {
  const input = handmade({ ...world, waiting: [{ ...waiting, ...(refusals > 0 && { opens: OPENS }) }] });
  const pools = input.snapshot.pools.map((view) =>
    view.pool.id !== SPOT.id || refusals === 0
      ? view
      : { ...view, open: false, backOff: { untilMs: at(OPENS.inS), refusals }, refusedMs: at(OPENS.inS - 300) },
  );
  return { ...input, snapshot: { ...input.snapshot, pools } };
}

function answer(input: PlanInput, runtime = certain(seconds(10 * HOUR_S)), canFlee = true): DeadlineAnswer | null {
  const [group] = input.snapshot.groups;
  return deadlineAnswer(
    {
      group: invariant(group, 'a group waits'),
      worth: invariant(input.worths.groups.get(groupId('long')), 'it has a worth'),
      left: runtime,
      offers: input.offers.get(groupId('long'))?.offers ?? [],
      viewOf: (offer) => input.snapshot.pools.find((view) => view.pool.id === offer.pool),
      canFlee,
    },
    input,
  );
}

describe('a task with a deadline', () => {
  const MEET = { config: { lateBudget: 0 } };

  it('takes spot that it can have', () => {
    expect(answer(scene(long(5), 0, MEET))?.take).toBe('spot');
  });

  it('waits out a young outage with slack to spare, and takes on-demand in an old one with little', () => {
    expect(answer(scene(long(5), 1, MEET))?.take).toBe('wait');
    expect(answer(scene(long(0.05), 60, MEET))?.take).toBe('on-demand');
  });

  it('takes on-demand from its last safe start on, whatever it costs', () => {
    const late = answer(scene(long(0.01), 0, MEET));
    expect(late?.take).toBe('on-demand');
    expect(late?.choice).toBeNull();
  });

  it('is left to the other rules without a deadline, without checkpoints, and where spot saves nothing', () => {
    expect(answer(scene(long(5, { stage: {} }), 1, MEET))).toBeNull();
    expect(answer(scene(long(5, { offers: ['on-demand'] }), 0, MEET))).toBeNull();
    expect(answer(scene(long(5, { offers: ['spot'] }), 1, MEET))).toBeNull();
    expect(answer(scene(long(5), 1, { ...MEET, spotUsd: 0.2 }))).toBeNull();
  });

  it('costs no more in dollars by its choice than by the others', () => {
    const waits = answer(scene(long(5), 1, MEET));
    const choice = invariant(waits?.choice, 'it is weighed');
    expect(choice.stayUsd).toBeLessThan(choice.onDemandUsd);
    // All on on-demand: 10 h at 0.2 USD.
    expect(choice.onDemandUsd).toBeLessThan(2.1);
    expect(choice.stayUsd).toBeGreaterThan(10 * 0.08);
    const { lastsS, thenUsd } = invariant(waits, 'it is answered').wait();
    expect(lastsS).toBeGreaterThan(0);
    expect(lastsS).toBeLessThanOrEqual(5 * HOUR_S);
    expect(thenUsd).toBeGreaterThan(choice.onDemandUsd);
  });

  it('puts its deadline at risk only within the budget, and never where it must be met', () => {
    // Nine of ten such tasks take two hours, and one takes four: on-demand must begin now to be in time for that.
    const runtime = distribution([
      [2 * HOUR_S, 0.9],
      [4 * HOUR_S, 0.1],
    ]);
    const doubtful = (lateBudget: number, mustMeet = false): DeadlineAnswer | null => {
      const input = scene(long(0.01, { runtime, deadlineS: 4 * HOUR_S + 236 }), 0, { config: { lateBudget } });
      const jobs = [...input.snapshot.jobs].map(
        ([id, job]) => [id, { ...job, spec: { ...job.spec, mustMeet } }] as const,
      );
      return answer({ ...input, snapshot: { ...input.snapshot, jobs: new Map(jobs) } }, runtime);
    };
    expect(doubtful(0)?.take).toBe('on-demand');
    expect(doubtful(0.0001)?.take).toBe('on-demand');
    expect(doubtful(0.5)?.take).toBe('spot');
    expect(doubtful(0.5, true)?.take).toBe('on-demand');
  });

  it('takes spot although an interruption would lose its work, where that is worth the risk', () => {
    // Ten hours cost 2 USD on on-demand and 0.8 on spot. A late job costs 2 / (16 x budget).
    const risky = (lateBudget: number, pLate: number): string | undefined =>
      answer(scene(long(0.01, { stage: {}, pLate, deadlineS: 11 * HOUR_S }), 0, { config: { lateBudget } }))?.take;
    expect(risky(0.01, 0.08)).toBe('spot');
    expect(risky(0.01, 0.12)).toBe('on-demand');
    expect(risky(0.1, 0.12)).toBe('spot');
    expect(risky(0, 0)).toBeUndefined();
  });

  it('counts on no flight where vCPUs are short: an interruption is then lateness', () => {
    const take = (pInterrupted: number, canFlee: boolean, stage: Waiting['stage'] = {}): string | undefined => {
      const of = long(0.01, { stage, pLate: 0.001, deadlineS: 11 * HOUR_S });
      return answer(scene(of, 0, { pInterrupted, config: { lateBudget: 0.01 } }), undefined, canFlee)?.take;
    };
    expect([take(0.12, true), take(0.12, false), take(0.005, false)]).toEqual(['spot', 'on-demand', 'spot']);
    // The program plans its own flight.
    expect(take(0.05, false, SAVES)).toBeUndefined();
  });

  it('takes tasks that start together in one pool for one risk', () => {
    // The price of a late job grows with its tasks; the risk of its one pool does not.
    const take = (count: number): string | undefined =>
      answer(scene(long(0.01, { stage: {}, pLate: 0.04, count }), 0, { config: { lateBudget: 0.01 } }))?.take;
    expect(take(1)).toBe('spot');
    expect(take(20)).toBe('spot');
  });

  it('counts on no on-demand where the vCPU limit may refuse it', async () => {
    const { waits } = await greedyPlan(scene(long(5), 1, { ...MEET, vcpus: 2 }), null);
    expect(waits.map((w) => w.detail).join()).not.toContain('waiting is expected to cost');
  });

  it('says in dollars what a start on spot risks, and what on-demand would cost', async () => {
    const reasonOf = async (of: Waiting, world: Handmade): Promise<string | undefined> =>
      (await greedyPlan(scene(of, 0, world), null)).starts[0]?.reason;
    // Ten hours on on-demand are 2 USD, so that a late job costs 2 / (16 x 1 %) = 12.50 USD; 8 % of that is at risk.
    const risky = long(0.01, { stage: {}, pLate: 0.08, deadlineS: 11 * HOUR_S });
    const why = await reasonOf(risky, { config: { lateBudget: 0.01 } });
    expect(why).toContain('it risks $1.00 of lateness, and on-demand would cost $2.00, its own risk included');
    expect(await reasonOf(long(5), MEET)).toMatch(
      /to the end spot is expected to cost \$[\d.]+ and on-demand \$[\d.]+, lateness included/,
    );
  });

  it('says what waiting risks, and until when', async () => {
    const { waits, starts } = await greedyPlan(scene(long(5), 1, MEET), null);
    expect(starts).toEqual([]);
    expect(waits.map((w) => w.detail)).toEqual([
      expect.stringMatching(
        /waiting is expected to cost \$[\d.]+ and on-demand now \$[\d.]+; it waits until 2026-05-01T\d\d:\d\d.* at most, and risks \$[\d.]+ more/,
      ),
    ]);
  });
});
