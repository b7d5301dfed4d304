import { describe, expect, it } from '@jest/globals';
import type { Attempt } from '../../../lib/domain/job.ts';
import type { EarliestStart } from '../../../lib/domain/plan.ts';
import { poolKey } from '../../../lib/domain/pool.ts';
import { effectKey, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { raw, seconds, usdPerHour, type EpochMs } from '../../../lib/kernel/units.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { recordByHand, restarted } from '../../support/by-hand.ts';
import { discrepancies, EngineBench, NOTHING_BETWEEN, type Deed } from '../../support/engine-bench.ts';
import { after, calmTrace, SAVES, START_MS } from '../../support/mixed-workload.ts';

/** When and where a plan wants tasks to start. Plans are the test's own. */

const J = jobId('j-planned');

interface Happening {
  readonly atMs: EpochMs;
  readonly act: (store: Store, bench: EngineBench) => Promise<unknown>;
}

async function run(happenings: readonly Happening[], stepped: boolean) {
  const bench = new EngineBench({
    trace: calmTrace,
    startMs: START_MS,
    ...(stepped ? { stepped } : { reusesSlots: true }),
  });
  const of = [
    stage({ tasks: 2, env: { RUNTIME_S: '1200' }, checkpoint: SAVES, expectedRuntimeS: seconds(1200) }),
    stage({ name: 'other', env: { RUNTIME_S: '600' } }),
  ];
  await bench.submit([job({ name: J, submittedMs: START_MS, spec: spec({ stages: of }) })]);
  const deeds = happenings.map(({ atMs, act }) => ({ atMs, act: (store: Store) => act(store, bench) }));
  await bench.drive({ deeds, through: () => restarted(NOTHING_BETWEEN) });
  expect(await discrepancies(bench)).toEqual([]);
  expect((await bench.job(J)).state).toBe('succeeded');
  return { bench, attempts: await bench.store.attempts(J) };
}

const placedS = (a: Attempt | undefined): number => (raw(a!.placedMs) - raw(START_MS)) / 1000;

describe.each([
  ['in one process', false],
  ['in steps', true],
])('a plan, %s', (_, stepped) => {
  const saying = (atMs: EpochMs, earliest: readonly EarliestStart[], name = 'p-earliest'): Deed => ({
    atMs,
    act: (store: Store) => recordByHand(store, name, () => ({ effects: [], earliest }), atMs),
  });
  const main = { job: J, stage: 'main' } as const;

  it('keeps the tasks of a stage from starting before a time, and no others', async () => {
    const first = saying(START_MS, [{ ...main, notBeforeMs: after(3000) }]);
    const look: string[] = [];
    const explained: Deed = {
      atMs: after(600),
      act: async (store) => {
        const explanation = await store.explanation(J);
        for (const w of explanation?.waiting ?? []) look.push(`${w.stage} ${w.why} ${raw(w.expectedStartMs!)}`);
      },
    };
    const bench = await beforeAnythingStarts([first, explained], stepped);
    expect(look).toEqual([`main not-before ${raw(after(3000))}`]);
    for (const a of bench.attempts) {
      if (a.stage === 'main') expect(placedS(a)).toBeGreaterThanOrEqual(3000);
      else expect(placedS(a)).toBeLessThan(600);
    }
    // It starts then, not at the next look by chance.
    expect(placedS(bench.attempts.find((a) => a.stage === 'main'))).toBeLessThan(3010);
  });

  it('takes that back', async () => {
    const first = saying(START_MS, [{ ...main, notBeforeMs: after(30_000) }]);
    const back = saying(after(600), [{ ...main, notBeforeMs: null }], 'p-back');
    const { attempts } = await beforeAnythingStarts([first, back], stepped);
    for (const a of attempts) expect(placedS(a)).toBeLessThan(900);
  });

  it('keeps one task that was interrupted from starting before a time', async () => {
    const { attempts } = await run(
      [
        saying(after(590), [{ ...main, notBeforeMs: after(30_000) }], 'p-stage'),
        { atMs: after(600), act: async (store, bench) => bench.fleet.lose((await store.attempts(J))[0]!.instance) },
        saying(after(640), [
          { ...main, notBeforeMs: null },
          { ...main, index: 0, notBeforeMs: after(5000) },
        ]),
      ],
      stepped,
    );
    const [first, second] = [0, 1].map((i) => attempts.filter((a) => a.stage === 'main' && a.index === i));
    expect(first!.map((a) => a.outcome)).toEqual(['interrupted', 'succeeded']);
    expect(placedS(first![1])).toBeGreaterThanOrEqual(5000);
    expect(placedS(first![1])).toBeLessThan(5200);
    expect(placedS(second!.at(-1))).toBeLessThan(900);
  });

  it('moves a task to the instance that it names', async () => {
    const target = instanceId('i-target');
    const launch = effectKey('p-move/launch');
    const pool = poolKey('c5.xlarge', 'b', 'spot');
    const bought: Deed = {
      atMs: after(300),
      act: (store) =>
        recordByHand(
          store,
          'p-buy',
          () => ({
            effects: [
              {
                kind: 'launch',
                key: launch,
                instance: target,
                allocation: launch,
                pool,
                bid: usdPerHour(0.1),
                reason: 'a target',
              },
              // Kept from being given back by a task of its own.
              {
                kind: 'stop',
                key: effectKey('p-move/stop'),
                attempt: `${J}.main.0.1` as Attempt['id'],
                why: 'preempted',
                reason: 'it goes on there',
                to: target,
              },
            ],
          }),
          after(300),
        ),
    };
    const { attempts } = await run([bought], stepped);
    const moved = attempts.filter((a) => a.stage === 'main' && a.index === 0);
    expect(moved.map((a) => a.outcome)).toEqual(['moved', 'succeeded']);
    expect(moved[0]).toMatchObject({ goesTo: target });
    expect(moved[1]).toMatchObject({ instance: target });
    expect(raw(moved[1]!.resumedFromS)).toBeGreaterThan(0);
  });
});

/** The first plan is there before the engine begins. */
async function beforeAnythingStarts([first, ...deeds]: readonly [Deed, ...Deed[]], stepped: boolean) {
  const bench = new EngineBench({
    trace: calmTrace,
    startMs: START_MS,
    ...(stepped ? { stepped } : { reusesSlots: true }),
  });
  const of = [stage({ tasks: 2, env: { RUNTIME_S: '600' } }), stage({ name: 'other', env: { RUNTIME_S: '6000' } })];
  await bench.submit([job({ name: J, submittedMs: START_MS, spec: spec({ stages: of }) })]);
  await first.act(bench.store);
  await bench.drive({ deeds, through: () => restarted(NOTHING_BETWEEN) });
  expect(await discrepancies(bench)).toEqual([]);
  return { bench, attempts: await bench.store.attempts(J) };
}
