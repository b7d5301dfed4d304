import { describe, expect, it } from '@jest/globals';
import { attemptId, jobId } from '../../../../lib/kernel/ids.ts';
import { seconds, ZERO_S } from '../../../../lib/kernel/units.ts';
import type { Pool } from '../../../../lib/domain/pool.ts';
import type { RunningTask } from '../../../../lib/domain/snapshot.ts';
import { Footprint } from '../../../../lib/stages/scale/footprint.ts';
import * as build from '../../../support/builders.ts';
import { group, instance, market, pool, resources, view } from '../../../support/decision-world.ts';
import { acquireInput, type Wanted } from '../../../support/leftovers.ts';

/** Footprints counted by hand: 8 vCPUs in zone a, 4 in zone b, and 2 on-demand that do not count. */
const a = pool({ zone: 'a', vcpus: 8, gib: 32 });
const b = pool({ zone: 'b', vcpus: 4, gib: 16 });
const c = pool({ zone: 'c', vcpus: 2 });
const onDemand = pool({ zone: 'a', option: 'on-demand', vcpus: 2 });
const views = [a, b, c, onDemand].map((p) => view(p, 0.05));

const runs = (id: string, job: string, vcpus: number): RunningTask => ({
  attempt: build.attempt({ id: attemptId(id), job: jobId(job), resources: resources(vcpus, 1) }),
  stage: build.stage(),
  class: 'best-effort',
  deadlineMs: null,
  readS: ZERO_S,
  savedS: ZERO_S,
});

interface Held {
  readonly pool: Pool;
  readonly attempts?: readonly RunningTask[];
}

const wanted = (over: Partial<Wanted> = {}): Wanted => ({
  group: group({ id: 'g', job: 'j', count: 3, need: resources(2, 1) }),
  runtimeS: 3600,
  pools: views.slice(0, 3),
  offer: { pInterrupted: 0.2, expectedLostS: seconds(360), startDelayS: seconds(90) },
  ...over,
});

function footprint(
  held: readonly Held[],
  of: { readonly wanted?: Wanted; readonly gamma?: number; readonly correlation?: (x: Pool, y: Pool) => number } = {},
) {
  const instances = held.map((h, i) => ({ ...instance(`i-${i}`, h.pool), attempts: h.attempts ?? [] }));
  const input = acquireInput(
    [of.wanted ?? wanted()],
    { pools: views, instances, market: market(views, undefined, of.correlation ?? (() => 0.5)) },
    { correlationPenalty: of.gamma ?? 0.1 },
  );
  const leftover = input.leftovers[0];
  if (leftover === undefined) throw new Error('there is a leftover');
  return { made: new Footprint(input), leftover };
}

const HELD = [{ pool: a }, { pool: b }, { pool: onDemand }];

describe('the correlation penalty (Tributary eq. 2.6)', () => {
  it('is that of the sum over the pools held, the purchase counted, by hand', () => {
    const { made } = footprint(HELD);
    // In zone a: 8 + 8 of 20 vCPUs there, and 0.5 x (16 + 4) / (2 x 20) for zone b.
    expect(made.correlationPenalty(a, 8)).toBeCloseTo(0.1 * (16 / 20 + (0.5 * 20) / 40), 12);
    // In zone c, where nothing is held: 2 of 14, and both others.
    expect(made.correlationPenalty(c, 2)).toBeCloseTo(0.1 * (2 / 14 + (0.5 * 10) / 28 + (0.5 * 6) / 28), 12);
  });

  it('asks the market for each pair, and follows its sign', () => {
    const apart = footprint(HELD, { correlation: (x, y) => (x.zone === 'c' && y.zone === 'a' ? -1 : 0.25) });
    expect(apart.made.correlationPenalty(c, 2)).toBeCloseTo(0.1 * (2 / 14 - 10 / 28 + (0.25 * 6) / 28), 12);
  });

  it('is the same pool under another object', () => {
    const { made } = footprint(HELD);
    expect(made.correlationPenalty({ ...a }, 8)).toBeCloseTo(made.correlationPenalty(a, 8), 12);
  });

  it('grows with what is bought on spot, and with nothing else', () => {
    const { made } = footprint([{ pool: b }]);
    made.buy(onDemand, 100);
    expect(made.correlationPenalty(b, 4)).toBeCloseTo(0.1, 12);
    made.buy(a, 8);
    made.buy({ ...a }, 8);
    expect(made.correlationPenalty(b, 4)).toBeCloseTo(0.1 * (8 / 24 + (0.5 * 24) / 48), 12);
  });

  it('is none without a weight, on capacity that stays, and where nothing is held or bought', () => {
    expect(footprint(HELD, { gamma: 0 }).made.correlationPenalty(a, 8)).toBe(0);
    expect(footprint(HELD).made.correlationPenalty(onDemand, 8)).toBe(0);
    expect(footprint([]).made.correlationPenalty(a, 0)).toBe(0);
    expect(footprint([]).made.correlationPenalty(a, 8)).toBeCloseTo(0.1, 12);
  });
});

describe('the premium for losing much of a job at once', () => {
  const premium = ({ made, leftover }: ReturnType<typeof footprint>, of: Pool): number => {
    const offer = { ...leftover.option.offer, pool: of.id };
    return made.concentrationPremium(leftover, offer);
  };

  it('is the share of the job there, times P(interrupted), times the share of a run that is lost, by hand', () => {
    const attempts = [runs('t1', 'j', 1), runs('t2', 'j', 2), runs('t3', 'other', 4)];
    const there = footprint([{ pool: a, attempts }]);
    // 3 of the job's 6 vCPUs that still wait; 360 / 0.2 + 90 seconds of an hour.
    expect(premium(there, a)).toBeCloseTo((3 / 6) * 0.2 * (1890 / 3600), 12);
    expect(premium(there, b)).toBe(0);
  });

  it('counts room that tasks are given, up to the whole job and the whole run', () => {
    const there = footprint([], { wanted: wanted({ runtimeS: 900 }) });
    expect(premium(there, a)).toBe(0);
    there.made.give(jobId('j'), a, 2);
    there.made.give(jobId('j'), a, 1);
    expect(premium(there, a)).toBeCloseTo((3 / 6) * 0.2, 12);
    there.made.give(jobId('j'), a, 9);
    expect(premium(there, a)).toBeCloseTo(0.2, 12);
  });

  it('is none of what is never interrupted, and finite for work that takes no time', () => {
    const safe = footprint([{ pool: a, attempts: [runs('t1', 'j', 1)] }], {
      wanted: wanted({ offer: { pInterrupted: 0 } }),
    });
    expect(premium(safe, a)).toBe(0);
    const brief = footprint([{ pool: a, attempts: [runs('t1', 'j', 3)] }], {
      wanted: wanted({
        runtimeS: 0,
        offer: { pInterrupted: 0.5, expectedLostS: seconds(0), startDelayS: seconds(0.5) },
      }),
    });
    expect(premium(brief, a)).toBeCloseTo(0.5 * 0.5 * 0.5, 12);
  });
});
