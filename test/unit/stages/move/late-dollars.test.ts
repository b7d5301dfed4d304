import { describe, expect, it } from '@jest/globals';
import { certain } from '../../../../lib/domain/distribution.ts';
import type { Job } from '../../../../lib/domain/job.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
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
}

/** Two hours of work on spot, at its last safe start. */
function scene({ lateBudget, pInterrupted = 0.005, saves = true, graceS = 300, mustMeet = false }: Facts): PlanInput {
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
    config: { lateBudget },
  });
  const checkpoint = saves ? { signal: 'SIGTERM', graceS: seconds(graceS), everyS: seconds(1200) } : null;
  const running = input.snapshot.running.map((r) => ({ ...r, stage: { ...r.stage, checkpoint } as typeof r.stage }));
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
    // 4 % of the price 2 h x 0.2 / 0.15 are 0.11 USD; two hours at 0.12 USD more are 0.24.
    expect(moves({ lateBudget: 0.05, pInterrupted: 0.02 })).toEqual([]);
  });

  it('leaves where the risk costs more, and says both', () => {
    const [move] = moves({ lateBudget: 0.01, pInterrupted: 0.2 });
    const [, risks, leaves] =
      /staying risks \$([\d.]+) of lateness, leaving costs \$([\d.]+)/.exec(move?.reason ?? '') ?? [];
    // 36 % of 0.4 / 0.02 USD.
    expect(Number(risks)).toBeCloseTo(7.2, 1);
    expect(Number(leaves)).toBeGreaterThan(0.24);
    expect(Number(leaves)).toBeLessThan(0.26);
  });

  it('stays where an interruption loses nothing, whatever the risk', () => {
    expect(moves({ lateBudget: 0, pInterrupted: 0.9, graceS: 30 })).toEqual([]);
  });

  it('counts what a move has to do again, where nothing is saved', () => {
    expect(moves({ lateBudget: 0, pInterrupted: 0.02, saves: false })).toHaveLength(1);
    expect(moves({ lateBudget: 0.05, pInterrupted: 0.02, saves: false })).toEqual([]);
  });
});
