import { afterAll, describe, expect, it } from '@jest/globals';
import { seconds } from '../../../../lib/kernel/units.ts';
import { certain, distribution } from '../../../../lib/domain/distribution.ts';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { fcfsPlan } from '../../../../lib/stages/plan/fcfs.ts';
import { greedyPlan } from '../../../../lib/stages/plan/greedy.ts';
import { guarded } from '../../../../lib/stages/move/moves.ts';
import { guardMoves } from '../../../../lib/stages/move/deadline-guard.ts';
import { dumpModel, milpPlan } from '../../../../lib/stages/plan/milp.ts';
import type { Solver } from '../../../../lib/policy/solver.ts';
import { HOUR_S, ON_DEMAND, SPOT, due, handmade, type Handmade } from '../../../support/handmade-plan.ts';

const highs = highsSolver();
afterAll(() => highs.close());
/** The plan, with the moves that keep deadlines. */
const plan = (h: Handmade) => {
  const input = handmade(h);
  return milpPlan({ ...input, moves: guarded.propose(input) }, highs);
};

describe('without contention', () => {
  it('starts all on the cheapest offer and asks no solver', async () => {
    const allotment = await plan({ waiting: [{ name: 'a', count: 7, worthUsd: 1 }] });
    expect(allotment.starts.map((s) => [s.option.offer.pool, s.count])).toEqual([[SPOT.id, 7]]);
    expect(allotment.solve).toMatchObject({ status: 'not-needed', used: 'greedy', gap: 0, variables: 0 });
    // 7 x ($1 - a quarter of a machine for an hour at $0.08).
    expect(allotment.solve.objective).toBeCloseTo(7 * (1 - 0.02), 9);
    expect(allotment.waits).toEqual([]);
  });

  it('does not hold against spot what would be late without any interruption', async () => {
    // Three in a hundred such tasks take three hours, wherever it runs. Interrupted, one of an hour takes more than two
    // on spot alone, but flees in time: spot is late no more often than on-demand is.
    const runtime = distribution([
      [HOUR_S, 0.97],
      [3 * HOUR_S, 0.03],
    ]);
    const where = async (pLate: number) =>
      (
        await plan({
          waiting: [
            { name: 'a', worthUsd: 10, deadlineS: 2.1 * HOUR_S, safeStartS: HOUR_S, runtimeS: 5400, runtime, pLate },
          ],
          pInterrupted: 0.2,
          config: { lateBudget: 0 },
        })
      ).starts.map((s) => s.option.offer.pool);
    expect(await where(0.03)).toEqual([SPOT.id]);
    expect(await where(0.045)).toEqual([ON_DEMAND.id]);
  });

  it('uses free room before new machines', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', count: 2, worthUsd: 1 }],
      running: [{ name: 'r', instance: 'i-1', tasks: 2 }],
      vcpus: 4,
    });
    expect(allotment.starts.map((s) => s.count)).toEqual([2]);
    expect(allotment.preemptions).toEqual([]);
  });
});

describe('waiting', () => {
  it('waits where finishing is worth less than it costs, and says both figures', async () => {
    const allotment = await plan({ waiting: [{ name: 'a', worthUsd: 0.01 }] });
    expect(allotment.starts).toEqual([]);
    expect(allotment.waits).toMatchObject([{ why: 'price', count: 1 }]);
    expect(allotment.waits[0]?.detail).toContain('$0.010');
    expect(allotment.waits[0]?.detail).toContain('$0.020');
  });

  it('waits for a lower price that is expected soon, and says when', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', worthUsd: 1, offers: ['spot'] }],
      expectedSpotUsd: (s) => (s >= 1200 ? 0.04 : 0.08),
    });
    expect(allotment.starts).toEqual([]);
    expect(allotment.deferred).toMatchObject([{ count: 1, option: { slot: 2 } }]);
    expect(allotment.waits).toMatchObject([{ why: 'cheaper-later' }]);
    expect(allotment.waits[0]?.detail).toMatch(/\$0\.010 a task in 20 min, against \$0\.020/);
  });

  it('does not wait for a price with slack that an interruption would need', async () => {
    const cheaperSoon = (pInterrupted: number, safeStartS: number) =>
      plan({
        waiting: [{ name: 'a', worthUsd: 1, deadlineS: 24 * 3600, safeStartS }],
        expectedSpotUsd: (s) => (s >= 1200 ? 0.06 : 0.08),
        pInterrupted,
      });
    // Waiting 20 minutes saves a quarter of 2 cents. Of two hours of slack that is a sixth: with an even chance of an
    // interruption, after which the task costs 3 cents more, a quarter of a cent is lost; of 24 minutes it is most.
    expect((await cheaperSoon(0.5, 7200)).deferred).toHaveLength(1);
    expect((await cheaperSoon(0.5, 1440)).starts).toHaveLength(1);
    expect((await cheaperSoon(0.01, 1440)).deferred).toHaveLength(1);
  });

  it('does not wait for a saving too small to trust', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', worthUsd: 1 }],
      expectedSpotUsd: (s) => (s > 0 ? 0.0799 : 0.08),
    });
    expect(allotment.starts).toHaveLength(1);
  });

  it('does not wait for room that others leave later where it can have a machine now', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', worthUsd: 10, deadlineS: 3 * HOUR_S, safeStartS: 1.5 * HOUR_S }],
      running: [{ name: 'r', instance: 'i-1', tasks: 4, cpus: 1, runtime: certain(seconds(900)) }],
    });
    expect(allotment.starts.map((s) => [s.option.offer.pool, s.count])).toEqual([[SPOT.id, 1]]);
    expect(allotment.waits).toEqual([]);
  });

  it('says how much of the quota is taken when there is no room', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', count: 2, worthUsd: 1, cpus: 4 }],
      vcpus: 4,
    });
    expect(allotment.starts.map((s) => s.count)).toEqual([1]);
    expect(allotment.waits).toMatchObject([{ why: 'capacity', count: 1 }]);
    expect(allotment.waits[0]?.detail).toMatch(/of 4 vCPUs are taken/);
  });

  it('names the constraint when no pool is left', async () => {
    const input = handmade({ waiting: [{ name: 'a', worthUsd: 1 }] });
    const offers = new Map(
      [...input.offers].map(([id]) => [
        id,
        { offers: [], excluded: [{ constraint: 'zones', pools: 12 }], considered: [] },
      ]),
    );
    const allotment = await milpPlan({ ...input, offers }, highs);
    expect(allotment.waits).toMatchObject([{ why: 'constraint' }]);
    expect(allotment.waits[0]?.detail).toContain('zones excludes 12 pools');
  });

  it('names the closed pool', async () => {
    const allotment = await plan({ waiting: [{ name: 'a', worthUsd: 1, offers: ['spot'] }], spotOpen: false });
    expect(allotment.waits).toMatchObject([{ why: 'capacity' }]);
    expect(allotment.waits[0]?.detail).toContain('insufficient capacity');
  });

  it('keeps a job within its budget', async () => {
    const within = await plan({ waiting: [{ name: 'a', count: 3, worthUsd: 1, maxCostUsd: 1, spentUsd: 0.9 }] });
    expect(within.starts.map((s) => s.count)).toEqual([3]);
    const over = await plan({ waiting: [{ name: 'a', count: 3, worthUsd: 1, maxCostUsd: 1, spentUsd: 0.95 }] });
    expect(over.starts).toEqual([]);
    expect(over.waits).toMatchObject([{ why: 'budget', count: 3 }]);
    expect(over.waits[0]?.detail).toMatch(/\$0\.95 spent, and at least \$0\.060 .* limit of \$1\.00/);
  });
});

describe('gangs', () => {
  it('start whole', async () => {
    const allotment = await plan({ waiting: [{ name: 'a', count: 6, gang: true, worthUsd: 1 }], vcpus: 8 });
    expect(allotment.starts.map((s) => s.count)).toEqual([6]);
  });

  it('or not at all, and say so', async () => {
    for (const policy of [greedyPlan, fcfsPlan, milpPlan]) {
      const input = handmade({ waiting: [{ name: 'a', count: 6, gang: true, worthUsd: 1 }], vcpus: 4 });
      const allotment = await policy(input, highs);
      expect(allotment.starts).toEqual([]);
      expect(allotment.waits).toMatchObject([{ why: 'gang', count: 6 }]);
    }
  });

  it('are not begun where the quota of the account refused as much at once, which what starts alone is', async () => {
    const within = (used: number, bound: number) => ({ usedMilliCpu: used * 1000, boundMilliCpu: bound * 1000 });
    const six = (over: Partial<Handmade>) =>
      handmade({ waiting: [{ name: 'a', count: 6, gang: true, worthUsd: 1 }], ...over });
    for (const policy of [greedyPlan, fcfsPlan, milpPlan]) {
      for (const quota of [within(0, 8), within(4, 12)]) {
        const allotment = await policy(six({ quota }), highs);
        expect(allotment.starts).toEqual([]);
        expect(allotment.waits).toMatchObject([{ why: 'gang', count: 6 }]);
        expect(allotment.waits[0]?.detail).toMatch(
          /need 6 vCPUs at once; the account's vCPU quota \S+ refused (8|12) at once/,
        );
      }
      for (const quota of [within(0, 12), within(4, 16)]) {
        const { starts } = await policy(six({ quota }), highs);
        expect(starts.map((s) => s.count)).toEqual([6]);
      }
      const alone = handmade({ waiting: [{ name: 'a', count: 6, worthUsd: 1 }], quota: within(4, 8) });
      expect((await policy(alone, highs)).starts).not.toEqual([]);
    }
  });

  it('may fill room and new machines together', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', count: 6, gang: true, worthUsd: 1, offers: ['spot'] }],
      running: [{ name: 'r', instance: 'i-1', tasks: 2, class: 'deadline' }],
      vcpus: 8,
    });
    expect(allotment.starts.map((s) => s.count)).toEqual([6]);
  });
});

describe('preemption', () => {
  const full = { name: 'r', instance: 'i-1', tasks: 4 } as const;

  it('stops best-effort work for work that is worth more, and no more of it than needed', async () => {
    for (const policy of [greedyPlan, fcfsPlan, milpPlan]) {
      const input = handmade({
        waiting: [{ name: 'a', count: 2, worthUsd: 5, deadlineS: 2 * HOUR_S }],
        running: [full],
        vcpus: 4,
      });
      const allotment = await policy(input, highs);
      expect(allotment.preemptions).toHaveLength(2);
      expect(allotment.starts.map((s) => s.count)).toEqual([2]);
    }
  });

  it('never exchanges running work for equal work', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', count: 2, worthUsd: 0.05, offers: ['spot'] }],
      running: [full],
      vcpus: 4,
    });
    expect(allotment.preemptions).toEqual([]);
    expect(allotment.starts).toEqual([]);
  });

  it('leaves work alone that was stopped before and has only just gone on', async () => {
    const stopsAfter = async (ranS: number) =>
      (
        await plan({
          waiting: [{ name: 'a', count: 2, worthUsd: 5, deadlineS: 2 * HOUR_S }],
          running: [{ ...full, number: 2, ranS }],
          vcpus: 4,
        })
      ).preemptions.length;
    // 30 s to save, 160 s to start, 10 s to restore, two cycles of a minute.
    expect(await stopsAfter(310)).toBe(0);
    expect(await stopsAfter(330)).toBe(2);
  });

  it('never stops deadline work', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', worthUsd: 50 }],
      running: [{ ...full, class: 'deadline' }],
      vcpus: 4,
    });
    expect(allotment.preemptions).toEqual([]);
  });

  it('prefers to stop what has the least to do again', async () => {
    const runtime = certain(seconds(2 * HOUR_S));
    const allotment = await plan({
      waiting: [{ name: 'a', worthUsd: 5, cpus: 2, offers: ['spot'] }],
      running: [
        { name: 'unsaved', instance: 'i-1', tasks: 2, cpus: 2, runtime, doneS: HOUR_S, keptS: 0 },
        { name: 'saved', instance: 'i-2', tasks: 2, cpus: 2, runtime, doneS: HOUR_S, keptS: HOUR_S },
      ],
      vcpus: 8,
    });
    expect(allotment.preemptions.map((p) => p.attempt)).toEqual(['saved.0']);
  });

  it('knows that what has run for long takes as long where it begins again', async () => {
    // Nearly all take twelve minutes, which this one has outlived: elsewhere all of its hour is run again, and of the
    // other's the half.
    const runtime = distribution([
      [0.2 * HOUR_S, 99],
      [2 * HOUR_S, 1],
    ]);
    const alike = { tasks: 2, cpus: 2, doneS: HOUR_S };
    const allotment = await plan({
      waiting: [{ name: 'a', worthUsd: 5, cpus: 2, offers: ['spot'] }],
      running: [
        { ...alike, name: 'outlived', instance: 'i-1', runtime, keptS: 0 },
        { ...alike, name: 'saved', instance: 'i-2', runtime: certain(seconds(2 * HOUR_S)), keptS: 0.5 * HOUR_S },
      ],
      vcpus: 8,
      config: { shortJobsFirst: false },
    });
    expect(allotment.preemptions.map((p) => p.attempt)).toEqual(['saved.0']);
  });

  it('gives up a whole machine where another kind is needed', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', worthUsd: 50, cpus: 4, offers: ['on-demand'], deadlineS: 2 * HOUR_S }],
      running: [full],
      vcpus: 4,
    });
    expect(allotment.preemptions).toHaveLength(4);
    expect(allotment.starts).toMatchObject([{ count: 1, option: { offer: { pool: ON_DEMAND.id } } }]);
  });

  it('stops a gang as a whole or not', async () => {
    const allotment = await plan({
      waiting: [{ name: 'a', worthUsd: 50, offers: ['spot'], deadlineS: 2 * HOUR_S }],
      running: [{ ...full, gang: true }],
      vcpus: 4,
    });
    expect(allotment.preemptions).toHaveLength(4);
  });
});

describe('the deadline guard', () => {
  it('lets waiting work near its last safe moment on on-demand only', async () => {
    const early = await plan({ waiting: [{ name: 'a', worthUsd: 5, deadlineS: 3 * HOUR_S, safeStartS: HOUR_S }] });
    expect(early.starts).toMatchObject([{ option: { offer: { pool: SPOT.id } } }]);
    const late = await plan({
      waiting: [{ name: 'a', worthUsd: 5, deadlineS: 1.1 * HOUR_S, safeStartS: 119 }],
      config: { lateBudget: 0 },
    });
    expect(late.starts).toMatchObject([{ option: { offer: { pool: ON_DEMAND.id } } }]);
  });

  it('takes a risky offer only if no other is safer', async () => {
    const risky = { name: 'a', worthUsd: 5, deadlineS: 3 * HOUR_S, pLate: 0.3 };
    expect((await plan({ waiting: [risky] })).starts).toMatchObject([{ option: { offer: { pool: ON_DEMAND.id } } }]);
    const only = await plan({ waiting: [{ ...risky, offers: ['spot'] }] });
    expect(only.starts).toMatchObject([{ option: { offer: { pool: SPOT.id } } }]);
  });

  const running = (safeStartS: number, more: object = {}) => ({
    name: 'r',
    instance: 'i-1',
    tasks: 1,
    class: 'deadline' as const,
    runtime: distribution([
      [HOUR_S, 1],
      [1.5 * HOUR_S, 1],
    ]),
    doneS: 600,
    keptS: 600,
    worth: due(5, safeStartS + 1.5 * HOUR_S, safeStartS),
    ...more,
  });

  it('moves running work off spot before the last safe moment', async () => {
    const { moves } = await plan({ running: [running(100)], pInterrupted: 0.2 });
    expect(moves.map((m) => m.running.attempt.id)).toEqual(['r.0']);
    expect(moves[0]?.reason).toMatch(/last moment .* is in 1\.7 min.* late with probability \d/);
  });

  it('leaves it where there is time, no risk, or nothing to gain', async () => {
    expect((await plan({ running: [running(400)], pInterrupted: 0.2 })).moves).toEqual([]);
    expect((await plan({ running: [running(100)], pInterrupted: 0 })).moves).toEqual([]);
    expect((await plan({ running: [running(100, { pool: ON_DEMAND })], pInterrupted: 0.2 })).moves).toEqual([]);
    // Nothing of an hour's work is kept: starting over would be late for certain.
    const lost = running(100, { doneS: HOUR_S, keptS: 0, worth: due(5, 0.6 * HOUR_S, 100) });
    expect((await plan({ running: [lost], pInterrupted: 0.2 })).moves).toEqual([]);
  });

  it('knows that what has run for long takes as long where it begins again', async () => {
    // Nearly all take twelve minutes, which this one has outlived: it takes an hour, of which six minutes are left. The
    // deadline is in half an hour.
    const runtime = distribution([
      [0.2 * HOUR_S, 99],
      [HOUR_S, 1],
    ]);
    const slow = running(100, { runtime, doneS: 0.9 * HOUR_S, keptS: 0, worth: due(5, 0.5 * HOUR_S, 100) });
    expect(guardMoves(handmade({ running: [slow], pInterrupted: 0.9 }))).toEqual([]);
    // So far off that the hour fits even after an interruption, nothing is gained either; in between, it would leave.
    const dueIn = (hours: number) =>
      guardMoves(handmade({ running: [{ ...slow, worth: due(5, hours * HOUR_S, 100) }], pInterrupted: 0.9 }));
    expect(dueIn(1.5)).toEqual([]);
    expect(dueIn(1.1)).toHaveLength(1);
  });
});

describe('the solver', () => {
  const contended: Handmade = {
    waiting: [
      { name: 'a', count: 3, worthUsd: 3, cpus: 2, offers: ['spot'] },
      { name: 'b', count: 4, worthUsd: 1.7, offers: ['spot'] },
      { name: 'c', count: 1, worthUsd: 4.9, cpus: 3, offers: ['spot'] },
    ],
    vcpus: 8,
    config: { lookAheadSlots: 1, shortJobsFirst: false },
  };

  it('finds the best of a contended plan', async () => {
    const allotment = await plan(contended);
    // Two machines of 4 vCPUs. c fills one (a machine holds one task of it); on the other a pair of a, or four b: 6.8.
    const worths = { a: 3 - 0.04, b: 1.7 - 0.02, c: 4.9 - 0.06 };
    let best = 0;
    for (let a = 0; a <= 3; a++) {
      for (let b = 0; b <= 4; b++) {
        for (let c = 0; c <= 1; c++) {
          if (2 * a + b + 4 * c <= 8) best = Math.max(best, a * worths.a + b * worths.b + c * worths.c);
        }
      }
    }
    expect(allotment.solve.objective).toBeCloseTo(best, 6);
  });

  it('that fails leaves the greedy plan, and the report says so', async () => {
    const broken: Solver = { ...highs, solve: () => Promise.resolve({ status: 'failed', detail: 'broken' }) };
    const input = handmade({
      ...contended,
      waiting: [
        { name: 'a', count: 3, worthUsd: 3, cpus: 3, offers: ['spot'] },
        { name: 'b', count: 9, worthUsd: 1.1, cpus: 2, offers: ['spot'] },
      ],
      vcpus: 12,
    });
    const greedy = await greedyPlan(input, broken);
    const allotment = await milpPlan(input, broken);
    expect(allotment.solve.used).toBe('greedy');
    expect(allotment.solve.objective).toBeGreaterThanOrEqual(greedy.solve.objective);
    expect(allotment.starts.length).toBeGreaterThan(0);
  });

  it('writes its model with the names of the formulation', async () => {
    const text = await dumpModel(handmade(contended), highs, 'lp');
    expect(text).toMatch(/supply_quota_cpu_t0/);
    expect(text).toMatch(/P_g0\.o0\.s0\.new/);
    expect(await dumpModel(handmade(contended), highs, 'mps')).toMatch(/ROWS/);
  });
});
