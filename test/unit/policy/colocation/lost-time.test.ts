import { describe, expect, it } from '@jest/globals';
import { jobId, type JobId } from '../../../../lib/kernel/ids.ts';
import type { Job } from '../../../../lib/domain/job.ts';
import type { InstanceView } from '../../../../lib/domain/snapshot.ts';
import { leftOfEach } from '../../../../lib/policy/left-of.ts';
import { leavingFor, longerTogether, lostS, type Sharer } from '../../../../lib/policy/colocation/lost-time.ts';
import type { NeighbourBelief } from '../../../../lib/policy/colocation/neighbour-belief.ts';
import { job } from '../../../support/builders.ts';
import { scene } from '../../../support/whole-moves.ts';
import { pool } from '../../../support/decision-world.ts';

/** Twice as long beside each task of another reader. */
const belief = {
  slowdown: (_: string, beside: readonly { readonly template: string; readonly tasks?: number }[]) => ({
    factor: 2 ** beside.reduce((n, { template, tasks = 1 }) => (template === 'reader' ? n + tasks : n), 0),
    sd: 0,
  }),
} as unknown as NeighbourBelief;
const on = { belief, type: pool({}).type };
const sharer = (over: Partial<Sharer> = {}): Sharer => ({
  template: 'reader',
  part: 0.25,
  tasks: 1,
  leftS: 100,
  isSlowed: true,
  ...over,
});

describe('time that tasks lose by sharing an instance', () => {
  it('is that of those who come and of those who are there, each by its part', () => {
    const longer = longerTogether([sharer()], [sharer({ part: 0.5 })], on);
    expect(longer.map(({ byS }) => byS)).toEqual([100, 100]);
    expect(lostS(longer)).toBe(75);
    expect(lostS(longerTogether([sharer({ tasks: 2 })], [sharer()], on))).toBe(2 * 0.25 * 100 + 0.25 * 300);
  });

  it('is lost by those who are there only while they are together', () => {
    const [there, coming] = longerTogether([sharer({ leftS: 1000 })], [sharer({ leftS: 10 })], on);
    expect([there?.byS, coming?.byS]).toEqual([10, 10]);
  });

  it('is no time of programs that nobody slows down', () => {
    const quiet = sharer({ template: 'quiet', isSlowed: false });
    expect(longerTogether([quiet], [sharer()], on)).toEqual([]);
    expect(longerTogether([sharer()], [quiet], on)).toEqual([]);
  });

  it('is gained by leaving worse neighbours', () => {
    expect(lostS(longerTogether([], [sharer({ now: 4 })], on))).toBe(-0.25 * 75);
  });

  it('is that of all that come, also where they come from several instances', () => {
    const longer = longerTogether([], [sharer({ now: 2, tasks: 2 }), sharer()], on);
    expect(longer.map(({ byS }) => byS)).toEqual([100, 300]);
  });
});

describe('tasks that leave an instance', () => {
  it('count by their part of another, and by what their neighbours take now', () => {
    const [small, large] = [pool({ vcpus: 4, gib: 16 }), pool({ vcpus: 8, gib: 32, type: 'm5.2xlarge' })];
    const of = scene([], [{ id: 'i', pool: small, tasks: ['a', 'b'].map((name) => ({ name, leftS: 60, vcpus: 2 })) }]);
    const [view] = of.snapshot.instances.values();
    const reading = (name: string): readonly [JobId, Job] => [
      jobId(name),
      job({ id: jobId(name), template: 'reader' }),
    ];
    const snapshot = { jobs: new Map([reading('a'), reading('b')]) };
    const told = { ...belief, tells: () => true, slowdown: () => ({ factor: 3, sd: 0 }) } as unknown as NeighbourBelief;
    const tasks = view?.attempts.slice(0, 1) ?? [];
    const given = { belief: told, snapshot, leftOf: leftOfEach(of) };
    expect(leavingFor(large.type, view as InstanceView, tasks, given)).toEqual([
      { template: 'reader/main', part: 0.25, tasks: 1, leftS: 60, isSlowed: true, now: 3 },
    ]);
  });
});
