import { describe, expect, it } from '@jest/globals';
import type { SchedulerConfig } from '../../../../lib/domain/config.ts';
import { certain } from '../../../../lib/domain/distribution.ts';
import type { Job } from '../../../../lib/domain/job.ts';
import { attemptId, jobId } from '../../../../lib/kernel/ids.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import type { PlanInput } from '../../../../lib/policy/contracts.ts';
import { guardMoves } from '../../../../lib/stages/move/deadline-guard.ts';
import { byDollars } from '../../../../lib/stages/move/late-dollars.ts';
import * as build from '../../../support/builders.ts';
import { due, handmade, HOUR_S, SPOT } from '../../../support/handmade-plan.ts';

interface Facts {
  readonly lateBudget: number;
  /** P(interrupted within an hour). */
  readonly pInterrupted?: number;
  readonly saves?: boolean;
  /** Time that a save takes; longer than the notice of an interruption, it comes too late. */
  readonly graceS?: number;
  readonly mustMeet?: boolean;
  /** Tasks of the job, all in the same pool. */
  readonly tasks?: number;
  readonly billing?: SchedulerConfig['billing'];
}

/** Two hours of work on spot, at its last safe start. */
function scene({ lateBudget, pInterrupted = 0.005, saves = true, graceS = 300, ...facts }: Facts): PlanInput {
  const { mustMeet = false, tasks = 1, billing = 'per-second' } = facts;
  const input = handmade({
    running: [
      {
        name: 'long',
        instance: 'i-1',
        pool: SPOT,
        tasks: 1,
        cpus: 4,
        class: 'deadline',
        runtime: certain(seconds(2 * HOUR_S)),
        worth: due(2000, 2 * HOUR_S + 300, 60),
      },
    ],
    pInterrupted,
    config: { lateBudget, billing },
  });
  const checkpoint = saves ? { signal: 'SIGTERM', graceS: seconds(graceS), everyS: seconds(1200) } : null;
  const running = input.snapshot.running.flatMap((r) =>
    Array.from({ length: tasks }, (_, index) => ({
      ...r,
      stage: { ...r.stage, tasks, checkpoint } as typeof r.stage,
      attempt: { ...r.attempt, index, id: index === 0 ? r.attempt.id : attemptId(`${r.attempt.id}-${index}`) },
    })),
  );
  const of = running[0];
  const job: Job = build.job({
    id: jobId('long'),
    spec: build.spec({ name: 'long', mustMeet, stages: of === undefined ? [] : [of.stage] }),
  });
  const instances = new Map(
    [...input.snapshot.instances.values()].map((view) => [view.instance.id, { ...view, attempts: running }]),
  );
  return { ...input, snapshot: { ...input.snapshot, jobs: new Map([[job.id, job]]), running, instances } };
}

const moves = (facts: Facts) => guardMoves(scene(facts), byDollars);

describe('work on spot at its last safe start', () => {
  it('leaves for any gain where nothing may be late', () => {
    expect(moves({ lateBudget: 0, pInterrupted: 0.02 })).toHaveLength(1);
    expect(moves({ lateBudget: 0.05, pInterrupted: 0.02, mustMeet: true })).toHaveLength(1);
  });

  it('stays where leaving costs more than the risk', () => {
    // 4 % of the price 2 h x 0.2 / 0.8 are 0.02 USD; two hours at 0.12 USD more are 0.24.
    expect(moves({ lateBudget: 0.05, pInterrupted: 0.02 })).toEqual([]);
  });

  const dollars = (facts: Facts): readonly [risks: number, leaves: number] => {
    const said = /staying risks \$([\d.]+) of lateness, leaving costs \$([\d.]+)/.exec(moves(facts)[0]?.reason ?? '');
    return [Number(said?.[1]), Number(said?.[2])];
  };

  it('leaves where the risk costs more, and says both', () => {
    const [risks, leaves] = dollars({ lateBudget: 0.01, pInterrupted: 0.2 });
    // 36 % of 0.4 / 0.16 USD.
    expect(risks).toBeCloseTo(0.9, 1);
    expect(leaves).toBeGreaterThan(0.24);
    expect(leaves).toBeLessThan(0.26);
  });

  it('risks its part of the lateness, where one interruption takes more tasks of the job', () => {
    // Twenty times the price of the job, twenty tasks to bear it.
    const [risks] = dollars({ lateBudget: 0.01, pInterrupted: 0.2, tasks: 20 });
    expect(risks).toBeCloseTo(0.9, 1);
  });

  it('leaves for whole hours where they are paid', () => {
    const [, leaves] = dollars({ lateBudget: 0.01, pInterrupted: 0.2, billing: 'per-hour' });
    // A changeover and two hours of on-demand are three at 0.2 USD. Of two on spot one is paid; the other costs 0.08.
    expect(leaves).toBeCloseTo(3 * 0.2 - 0.08, 6);
  });

  it('stays where an interruption loses nothing, whatever the risk', () => {
    expect(moves({ lateBudget: 0, pInterrupted: 0.9, graceS: 30 })).toEqual([]);
  });

  it('counts what a move has to do again, where nothing is saved', () => {
    expect(moves({ lateBudget: 0, pInterrupted: 0.02, saves: false })).toHaveLength(1);
    expect(moves({ lateBudget: 0.05, pInterrupted: 0.02, saves: false })).toEqual([]);
  });
});
