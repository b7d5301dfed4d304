import { describe, expect, it } from '@jest/globals';
import { invariant } from '../../../../lib/kernel/errors.ts';
import { attemptId, groupId } from '../../../../lib/kernel/ids.ts';
import { unsolved, type Allotment } from '../../../../lib/domain/plan.ts';
import { withoutExchanges } from '../../../../lib/stages/plan/without-exchanges.ts';
import { ON_DEMAND, SPOT, at, handmade, type Handmade } from '../../../support/handmade-plan.ts';

/** Tasks of `a` and `b` wait while others of them run, on spot and on on-demand. */
const both = (gang = false): Handmade => ({
  waiting: [
    { name: 'a', count: 4, worthUsd: 1, gang },
    { name: 'b', count: 4, worthUsd: 1 },
  ],
  running: [
    { name: 'a', instance: 'i-1', tasks: 3 },
    { name: 'b', instance: 'i-2', tasks: 2, pool: ON_DEMAND },
    { name: 'other', instance: 'i-3', tasks: 1 },
  ],
});

type Starts = readonly (readonly ['a' | 'b', 'spot' | 'on-demand', number])[];

/** What is left of a plan that starts and stops these. */
async function left(starts: Starts, stops: readonly string[], of: Handmade = both(), over: Partial<Allotment> = {}) {
  const input = handmade(of);
  const startOf = ([name, pool, count]: Starts[number]) => {
    const offers = invariant(input.offers.get(groupId(name)), 'it waits').offers;
    const offer = invariant(
      offers.find((o) => o.pool === (pool === 'spot' ? SPOT.id : ON_DEMAND.id)),
      'both pools are offered',
    );
    const option = { group: groupId(name), offer, slot: 0, startMs: at(0), worthUsd: 1, costUsd: 0 };
    return { option, count, reason: `${name} on ${pool}` };
  };
  const allotment: Allotment = {
    starts: starts.map(startOf),
    deferred: [],
    preemptions: stops.map((id) => ({ attempt: attemptId(id), reason: 'room' })),
    moves: [],
    waits: [],
    solve: unsolved(0),
    ...over,
  };
  const plan = withoutExchanges<null>(() => Promise.resolve(allotment));
  const found = await plan(input, null);
  return {
    starts: found.starts.map((s) => [s.reason, s.count]),
    stops: found.preemptions.map((p) => p.attempt),
    waits: found.waits.map((w) => [w.group, w.count, w.why]),
    same: found === allotment,
  };
}

describe('a plan without exchanges', () => {
  it('neither stops nor starts tasks of one stage in one pool; those that were to start wait', async () => {
    const found = await left([['a', 'spot', 2]], ['a.0', 'a.1']);
    expect(found).toMatchObject({ starts: [], stops: [], waits: [['a', 2, 'capacity']] });
  });

  it('keeps what it starts or stops beyond', async () => {
    expect(await left([['a', 'spot', 3]], ['a.0'])).toMatchObject({
      starts: [['a on spot', 2]],
      stops: [],
      waits: [['a', 1, 'capacity']],
    });
    expect(await left([['a', 'spot', 1]], ['a.0', 'a.1', 'a.2'])).toMatchObject({ starts: [], stops: ['a.0', 'a.1'] });
  });

  it('takes no stop for two starts', async () => {
    const found = await left(
      [
        ['a', 'spot', 2],
        ['a', 'spot', 2],
      ],
      ['a.0', 'a.1', 'a.2'],
    );
    expect(found).toMatchObject({ starts: [['a on spot', 1]], stops: [], waits: [['a', 2, 'capacity']] });
  });

  it('leaves stops and starts of other stages or pools as they are', async () => {
    const other = await left([['b', 'spot', 2]], ['a.0', 'b.0', 'other.0']);
    expect(other).toMatchObject({ starts: [['b on spot', 2]], stops: ['a.0', 'b.0', 'other.0'], same: true });
    expect(await left([['b', 'on-demand', 1]], ['a.0', 'b.0'])).toMatchObject({ starts: [], stops: ['a.0'] });
  });

  it('leaves gangs and plans without stops as they are', async () => {
    expect(await left([['a', 'spot', 4]], ['a.0', 'a.1'], both(true))).toMatchObject({ same: true });
    expect(await left([['a', 'spot', 4]], [])).toMatchObject({ same: true });
  });

  it('does not give a second reason to a group that waits already', async () => {
    const waits = [{ group: groupId('a'), count: 2, why: 'price', detail: 'too dear' }] as const;
    const found = await left([['a', 'spot', 1]], ['a.0'], both(), { waits });
    expect(found.waits).toEqual([['a', 2, 'price']]);
    const apart = await left([['a', 'spot', 1]], ['a.0'], both(), { waits: [{ ...waits[0], group: groupId('b') }] });
    expect(apart.waits).toEqual([
      ['b', 2, 'price'],
      ['a', 1, 'capacity'],
    ]);
  });

  it('says which attempt it does not know', async () => {
    await expect(left([['a', 'spot', 1]], ['nobody.0'])).rejects.toThrow(/attempt nobody\.0, which does not run/);
  });
});
