import { describe, expect, it } from '@jest/globals';
import type { EarliestStart, Purchase } from '../../../lib/domain/plan.ts';
import { groupId, jobId } from '../../../lib/kernel/ids.ts';
import { raw, seconds, secondsBetween, usd } from '../../../lib/kernel/units.ts';
import type { LaterDemand, ScaleInput, Stages } from '../../../lib/policy/contracts.ts';
import type { Solver } from '../../../lib/policy/solver.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench } from '../../support/engine-bench.ts';
import { after, calmTrace, START_MS } from '../../support/mixed-workload.ts';

const J = jobId('j-later');
const LATER_S = 3600;
const AHEAD_S = 300;

/** Work that may not start for an hour; a purchase for it five minutes before. */
function buyingAhead(of: Stages<Solver>, purchasesFor: (later: LaterDemand) => readonly Purchase[]): Stages<Solver> {
  const isNear = ({ fromMs }: LaterDemand, { snapshot }: ScaleInput): boolean =>
    secondsBetween(snapshot.nowMs, fromMs) <= AHEAD_S;
  return {
    ...of,
    plan: async (input, solver) => {
      const planned = await of.plan(input, solver);
      if (secondsBetween(input.snapshot.nowMs, after(LATER_S)) <= 0) return planned;
      const earliest: EarliestStart[] = [{ job: J, stage: 'main', notBeforeMs: after(LATER_S) }];
      return { ...planned, starts: [], earliest };
    },
    scale: (input) => {
      const { purchases, releases } = of.scale(input);
      const isHeld = input.snapshot.instances.size > 0;
      const ahead = isHeld ? [] : input.later().filter((l) => isNear(l, input));
      // What is bought ahead is idle at first.
      const isAwaited = input.later().length > 0;
      return { purchases: [...purchases, ...ahead.flatMap(purchasesFor)], releases: isAwaited ? [] : releases };
    },
  };
}

async function run(
  stepped: boolean,
  purchasesFor: (later: LaterDemand) => readonly Purchase[],
  maxCostUsd: number | null = null,
) {
  const bench = new EngineBench({
    trace: calmTrace,
    startMs: START_MS,
    ...(stepped ? { stepped } : { reusesSlots: true }),
    stages: (of) => buyingAhead(of, purchasesFor),
  });
  const main = stage({ tasks: 2, env: { RUNTIME_S: '600' }, expectedRuntimeS: seconds(600) });
  const limit = maxCostUsd === null ? null : usd(maxCostUsd);
  const work = spec({ stages: [main], maxCostUsd: limit });
  await bench.submit([job({ name: J, submittedMs: START_MS, spec: work })]);
  await bench.drive({ withinS: 2 * LATER_S }).catch((error: unknown) => expect(String(error)).toContain('not done'));
  expect(await discrepancies(bench)).toEqual([]);
  const placedS = (await bench.store.attempts(J)).map((a) => secondsBetween(START_MS, a.placedMs));
  const instances = (await bench.store.instances(null, 100, null)).items;
  const requestedS = instances.map((i) => secondsBetween(START_MS, i.requestedMs)).sort((a, b) => a - b);
  return { bench, placedS, requestedS };
}

const one = ({ group, option }: LaterDemand): readonly Purchase[] => [
  { pool: option.offer.pool, bid: option.offer.bid, count: 1, reason: 'ahead of demand', serves: [group.id] },
];

describe.each([
  ['in one process', false],
  ['in steps', true],
])('purchases ahead of demand, %s', (_, stepped) => {
  it('are up when the work may start', async () => {
    const late = await run(stepped, () => []);
    expect(late.requestedS[0]).toBeGreaterThanOrEqual(LATER_S);
    expect(Math.min(...late.placedS)).toBeGreaterThan(LATER_S + 30);
    const ahead = await run(stepped, one);
    expect(ahead.requestedS).toHaveLength(1);
    expect(ahead.requestedS[0]).toBeGreaterThanOrEqual(LATER_S - AHEAD_S);
    expect(ahead.requestedS[0]).toBeLessThan(LATER_S - 100);
    for (const s of ahead.placedS) expect(s).toBeLessThan(LATER_S + 15);
    expect(ahead.placedS).toHaveLength(2);
  });

  it('are kept within the limit of the job that they serve', async () => {
    const needed = await run(stepped, one, 1);
    expect(needed.requestedS[0]).toBeLessThan(LATER_S);
    const poor = await run(stepped, one, 0.001);
    expect(poor.requestedS.filter((s) => s < LATER_S)).toEqual([]);
  });
});

it('a purchase ahead for what does not wait for later is no decision: nothing is bought', async () => {
  const wrong = (l: LaterDemand): readonly Purchase[] => one(l).map((p) => ({ ...p, serves: [groupId('nobody')] }));
  const { bench, requestedS } = await run(false, wrong);
  expect(requestedS).toEqual([]);
  const [held] = await bench.jobs();
  expect([held?.state, JSON.stringify(held?.held)]).toEqual([
    'held',
    expect.stringContaining('does not wait for later'),
  ]);
});

it('demand by time has the work, its time and its offers', async () => {
  const seen: LaterDemand[] = [];
  await run(false, (l) => {
    seen.push(l);
    return [];
  });
  expect(seen.length).toBeGreaterThan(0);
  for (const l of seen) {
    expect(raw(l.fromMs)).toBe(raw(after(LATER_S)));
    expect([l.count, l.group.job]).toEqual([2, J]);
    expect(l.offers).toContainEqual(l.option.offer);
  }
});
