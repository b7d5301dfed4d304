import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isolate, type Isolated, type IsolationLimits, type TrialOutcome } from '../../../lib/cycle/decide/isolate.ts';
import type { Decision } from '../../../lib/cycle/decide/decision.ts';
import { jobId, type JobId } from '../../../lib/kernel/ids.ts';
import type { Job } from '../../../lib/domain/job.ts';
import type { Snapshot } from '../../../lib/domain/snapshot.ts';
import { job, snapshot } from '../../support/builders.ts';

const LIMITS: IsolationLimits = { groupMs: 5000, jobMs: 10_000, allMs: 30_000, budgetMs: 60_000 };
const idOf = (n: number): JobId => jobId(`j-${String(n).padStart(6, '0')}`);
const snapshotOf = (jobs: number): Snapshot =>
  snapshot({
    jobs: new Map(Array.from({ length: jobs }, (_, n): [JobId, Job] => [idOf(n), job({ id: idOf(n) })])),
  });

/** A world in which some jobs never let a decision end, some throw, and time passes as each says. */
class World {
  nowMs = 0;
  trials = 0;
  readonly #jobs: number;
  readonly #of: {
    readonly stuck?: ReadonlySet<number>;
    readonly throwing?: ReadonlySet<number>;
    readonly msEach?: number;
  };

  constructor(jobs: number, of: World['of']) {
    this.#jobs = jobs;
    this.#of = of;
  }

  get of() {
    return this.#of;
  }

  run(limits: IsolationLimits = LIMITS): Promise<Isolated | null> {
    return isolate({
      snapshot: snapshotOf(this.#jobs),
      limits,
      nowMs: () => this.nowMs,
      trial: async ({ aside }, limitMs): Promise<TrialOutcome> => {
        this.trials++;
        const { stuck = new Set(), throwing = new Set(), msEach = 0 } = this.#of;
        const within = Array.from({ length: this.#jobs }, (_, n) => n).filter((n) => !aside.has(idOf(n)));
        const takesMs = within.length * msEach;
        if (within.some((n) => stuck.has(n)) || takesMs > limitMs) {
          this.nowMs += limitMs;
          return { status: 'stuck', afterMs: limitMs };
        }
        this.nowMs += takesMs;
        if (within.some((n) => throwing.has(n))) return { status: 'threw', error: 'no' };
        return { status: 'decided', decision: { plan: within } as unknown as Decision };
      },
    });
  }
}

const decidedOn = (found: Isolated | null): readonly number[] => (found?.decision.plan ?? []) as unknown as number[];
const heldBy = (found: Isolated | null): readonly JobId[] => (found?.held ?? []).map((h) => h.job).sort();

describe('isolating jobs that stop the cycle', () => {
  it('holds exactly the faulty ones, and decides on all others', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 300 }),
        fc.uniqueArray(fc.integer({ min: 0, max: 299 }), { maxLength: 4 }),
        fc.boolean(),
        async (jobs, faulty, isStuck) => {
          const bad = new Set(faulty.filter((n) => n < jobs));
          const world = new World(jobs, isStuck ? { stuck: bad } : { throwing: bad });
          const found = await world.run({ ...LIMITS, budgetMs: Infinity });
          expect(heldBy(found)).toEqual([...bad].map(idOf).sort());
          expect(decidedOn(found)).toEqual(Array.from({ length: jobs }, (_, n) => n).filter((n) => !bad.has(n)));
          expect(found?.undecided).toEqual([]);
        },
      ),
      { numRuns: 200, seed: 3 },
    );
  });

  it('finds the newest of 20,000 jobs in a few trials, and the oldest in some more', async () => {
    const newest = new World(20_000, { stuck: new Set([19_999]) });
    expect(heldBy(await newest.run())).toEqual([idOf(19_999)]);
    expect(newest.nowMs).toBe(LIMITS.jobMs);
    const oldest = new World(20_000, { stuck: new Set([0]) });
    expect(heldBy(await oldest.run({ ...LIMITS, budgetMs: Infinity }))).toEqual([idOf(0)]);
    expect(oldest.trials).toBeLessThan(60);
  });

  it('decides on those it has cleared when its time is over, and comes further the next time', async () => {
    const stuck = new Set([10, 30, 50, 70, 90]);
    const found = await new World(100, { stuck }).run({ ...LIMITS, budgetMs: 25_000 });
    const held = heldBy(found);
    expect(held.length).toBeGreaterThan(0);
    expect(held.length).toBeLessThan(stuck.size);
    expect(found?.undecided.length).toBeGreaterThan(0);
    expect(decidedOn(found).length).toBeGreaterThan(0);
    expect(decidedOn(found).some((n) => stuck.has(n))).toBe(false);
  });

  it('holds nobody for the size of the workload: the older half is decided on first', async () => {
    const found = await new World(1000, { msEach: 50 }).run({ ...LIMITS, budgetMs: Infinity });
    expect(found?.held).toEqual([]);
    expect(decidedOn(found)).toEqual(Array.from({ length: 500 }, (_, n) => n));
    expect(found?.undecided).toHaveLength(500);
  });
});
