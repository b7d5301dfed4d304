import { expect, it } from '@jest/globals';
import { lotsOf } from '../../../lib/cycle/money/lots.ts';
import type { Leftover } from '../../../lib/policy/contracts.ts';
import type { StageSpec } from '../../../lib/domain/job.ts';
import { groupId, jobId } from '../../../lib/kernel/ids.ts';
import { epochMs, seconds, usdPerHour, ZERO_S } from '../../../lib/kernel/units.ts';
import { pool, resources, stage } from '../../support/builders.ts';

const spot = pool({ zone: 'a' });

/** One task that fills an instance. `asked` is told each time its constraints are looked up. */
function leftover(n: number, asked: () => void): Leftover {
  const id = groupId(`j-${n}/main/fresh`);
  const main = stage({ resources: spot.type.capacity });
  const offer = {
    group: id,
    pool: spot.id,
    bid: 'uncapped' as const,
    priceUsdPerHour: usdPerHour(0.05),
    share: 1,
    roomShare: 1,
    newShare: 1,
    startDelayS: ZERO_S,
    pInterrupted: 0,
    pLate: 0,
    expectedLostS: ZERO_S,
    expectedDurationS: seconds(600),
    expectedCostUsd: 0.01,
  };
  return {
    group: {
      id,
      job: jobId(`j-${n}`),
      class: 'best-effort',
      get stage(): StageSpec {
        asked();
        return main;
      },
      count: 1,
      members: { freshFrom: 0 },
      keptS: ZERO_S,
      submittedMs: epochMs(0),
      deadlineMs: null,
      need: resources(4),
    },
    option: { group: id, offer, slot: 0, startMs: epochMs(0), worthUsd: 0, costUsd: 0.01 },
    count: 1,
    runtimeS: seconds(600),
  };
}

const purchase = (count: number) => ({ pool: spot.id, bid: 'uncapped' as const, count, reason: 'for a test' });
const pools = [{ pool: spot, quote: null, open: true, closedReason: null }];

it('looks at each task a few times, however many instances are bought beyond what the tasks fill', () => {
  let asked = 0;
  const leftovers = Array.from({ length: 200 }, (_, n) => leftover(n, () => (asked += 1)));
  const [lots = []] = lotsOf([purchase(1200)], leftovers, { pools });
  expect(lots.filter((lot) => lot.taken.length > 0)).toHaveLength(200);
  const surplus = lots.filter((lot) => lot.taken.length === 0);
  expect(surplus).toHaveLength(1000);
  for (const { boughtFor } of surplus) {
    expect(boughtFor.reduce((sum, { part }) => sum + part, 0)).toBeCloseTo(1, 9);
  }
  expect(asked).toBeLessThan(10 * 200);
});

it('assigns the same whatever the order of the tasks', () => {
  const leftovers = Array.from({ length: 50 }, (_, n) => leftover(n, () => undefined));
  const named = (of: readonly Leftover[]) =>
    lotsOf([purchase(60)], of, { pools }).map((lots) => lots.map((lot) => lot.boughtFor));
  expect(named(leftovers.toReversed())).toEqual(named(leftovers));
});

it('gives an instance no more tasks of a group than rules allow there', () => {
  const four = { ...leftover(1, () => {}), count: 4, perInstance: 1 };
  const small: Leftover = { ...four, group: { ...four.group, stage: stage({}), need: resources(1), count: 4 } };
  const [lots = []] = lotsOf([purchase(4)], [small], { pools });
  expect(lots.map((lot) => lot.taken.map((t) => t.tasks))).toEqual([[1], [1], [1], [1]]);
});
