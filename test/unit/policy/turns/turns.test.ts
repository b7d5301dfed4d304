import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { groupId, jobId } from '../../../../lib/kernel/ids.ts';
import { milliCpuIn } from '../../../../lib/domain/resources.ts';
import type { PendingGroup } from '../../../../lib/domain/snapshot.ts';
import { turnsOf, type Line, type TurnContext } from '../../../../lib/policy/turns/turns.ts';
import { resources, snapshot, stage } from '../../../support/builders.ts';
import { runs } from '../../../support/properties.ts';

/** Groups that wait, by job; there is nothing that runs. */
function waiting(groups: readonly { job: string; count: number; cpus: number; gang?: boolean }[], vcpus: number) {
  const of = groups.map(
    ({ job, count, cpus, gang = false }, i) =>
      ({
        id: groupId(`g${String(i).padStart(3, '0')}`),
        job: jobId(job),
        count,
        need: resources(cpus),
        stage: stage({ gang }),
      }) as unknown as PendingGroup,
  );
  const context = {
    snapshot: snapshot({ groups: of, limits: { vcpus }, pools: [], instances: new Map() }),
    forecasts: { runtime: new Map() },
  } as unknown as TurnContext;
  return { ...context, snapshot: { ...context.snapshot, pools: [{ pool: { option: 'spot' } }] as never } };
}

const leastUsed = (jobs: readonly string[]): readonly Line[] =>
  jobs.map((job) => ({ entries: [{ job: jobId(job) }], key: (used) => used }));
const inOrder = (jobs: readonly string[]): readonly Line[] => [
  { entries: jobs.map((job) => ({ job: jobId(job) })), key: () => 0 },
];

const startsOf = (context: TurnContext, lines: readonly Line[]) => {
  const { starts, left } = turnsOf(context, { lines: () => lines, copies: null });
  const counts = new Map<string, number>();
  for (const { group, count } of starts) counts.set(group.job, (counts.get(group.job) ?? 0) + count);
  return { counts: Object.fromEntries(counts), left };
};

describe('turns', () => {
  const two = [
    { job: 'a', count: 10, cpus: 1 },
    { job: 'b', count: 10, cpus: 2 },
  ];

  it('go to the line that is furthest behind', () => {
    expect(startsOf(waiting(two, 12), leastUsed(['a', 'b']))).toEqual({ counts: { a: 6, b: 3 }, left: 0 });
  });

  it('go to the first job of a line as long as it can use them', () => {
    expect(startsOf(waiting(two, 14), inOrder(['b', 'a']))).toEqual({ counts: { b: 7 }, left: 0 });
    expect(startsOf(waiting(two, 24), inOrder(['b', 'a']))).toEqual({ counts: { b: 10, a: 4 }, left: 0 });
  });

  it('pass over what does not fit, and give a gang all or nothing', () => {
    const groups = [
      { job: 'gang', count: 5, cpus: 2, gang: true },
      { job: 'a', count: 3, cpus: 1 },
    ];
    expect(startsOf(waiting(groups, 9), inOrder(['gang', 'a']))).toEqual({ counts: { a: 3 }, left: 6000 });
    expect(startsOf(waiting(groups, 11), inOrder(['gang', 'a']))).toEqual({ counts: { gang: 5, a: 1 }, left: 0 });
  });

  it('never exceed the slots, and leave none that somebody could use', () => {
    const group = fc.record({
      job: fc.constantFrom('a', 'b', 'c'),
      count: fc.integer({ min: 1, max: 9 }),
      cpus: fc.integer({ min: 1, max: 4 }),
      gang: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(group, { maxLength: 8 }),
        fc.integer({ min: 1, max: 60 }),
        fc.boolean(),
        (groups, n, even) => {
          const context = waiting(groups, n);
          const jobs = ['a', 'b', 'c'];
          const { starts, left } = turnsOf(context, {
            lines: () => (even ? leastUsed(jobs) : inOrder(jobs)),
            copies: null,
          });
          const taken = starts.reduce((sum, { group: g, count }) => sum + count * milliCpuIn(g.need), 0);
          expect(taken + left).toBe(1000 * n);
          expect(left).toBeGreaterThanOrEqual(0);
          for (const g of context.snapshot.groups) {
            const started = starts.filter((s) => s.group === g).reduce((sum, s) => sum + s.count, 0);
            expect(started).toBeLessThanOrEqual(g.count);
            const more = g.stage.gang ? g.count : 1;
            if (started < g.count) expect(more * milliCpuIn(g.need)).toBeGreaterThan(left);
          }
        },
      ),
      { numRuns: runs(300) },
    );
  });
});
