import { describe, expect, it } from '@jest/globals';
import { ANSWER_PATIENCE_S } from '../../../lib/cycle/act/intents.ts';
import type { EffectOutcome } from '../../../lib/domain/plan.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { invariant } from '../../../lib/kernel/errors.ts';
import { jobId, type PoolId } from '../../../lib/kernel/ids.ts';
import { between, plus, raw, seconds } from '../../../lib/kernel/units.ts';
import type { Fleet } from '../../../lib/ports/fleet.ts';
import { isSpotPool } from '../../../lib/domain/pool.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench, work, type Deed } from '../../support/engine-bench.ts';
import { mixedJobs, mixedTrace, SAVES, START_MS } from '../../support/mixed-workload.ts';

const WITHIN_S = 4 * 3600;
/** Engine seconds from the submission to a request to cancel: before anything of it can run. */
const CANCELLED_S = 20;
const NO_ANSWER: EffectOutcome = { status: 'failed', detail: 'the line is dead' };
const NO_QUOTA: EffectOutcome = { status: 'refused', why: 'quota', detail: 'MaxSpotInstanceCountExceeded' };
const DENIED: EffectOutcome = { status: 'refused', why: 'denied', detail: 'UnauthorizedOperation: no right to buy' };

interface Launching {
  /** The launch has the key that was asked first. */
  readonly isFirst: boolean;
  /** Engine seconds since the start. */
  readonly atS: number;
  readonly pool: PoolId;
  /** Spot instances that there are, and instances of all kinds. */
  readonly spot: () => Promise<number>;
  readonly live: () => Promise<number>;
  readonly launch: () => Promise<EffectOutcome>;
}
type Meets = (of: Launching) => Promise<EffectOutcome>;

/** A job of two tasks without a deadline. */
const RETRIED = mixedJobs().filter((j) => j.id === 'j-retried');

interface Driven {
  readonly deeds?: readonly Deed[];
  readonly jobs?: readonly Job[];
}

/** Work on a fleet each of whose launches meets something. */
async function drive(meets: Meets, stepped: boolean, { deeds = [], jobs = RETRIED }: Driven = {}) {
  const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, config: { refundRule: 'none' }, stepped });
  await bench.submit(jobs);
  const asked = new Map<string, number>();
  const met = (fleet: Fleet): Fleet =>
    new Proxy(fleet, {
      get: (target, method) => {
        if (method !== 'launch') return (Reflect.get(target, method) as () => unknown).bind(target);
        return async (...[requests]: Parameters<Fleet['launch']>) => {
          const outcomes: EffectOutcome[] = [];
          for (const request of requests) {
            asked.set(request.key, (asked.get(request.key) ?? 0) + 1);
            outcomes.push(
              await meets({
                isFirst: request.key === [...asked.keys()][0],
                atS: raw(between(START_MS, bench.clock.now())),
                pool: request.pool,
                spot: async () => (await target.list()).filter((i) => i.live && isSpotPool(i.pool)).length,
                live: async () => (await target.list()).filter((i) => i.live).length,
                launch: async () => invariant((await target.launch([request]))[0], 'a fleet answers every request'),
              }),
            );
          }
          return outcomes;
        };
      },
    });
  await bench.drive({ through: () => ({ store: (s) => s, fleet: met }), withinS: WITHIN_S, deeds });
  const [job] = await bench.jobs();
  const events = await bench.store.events(0, 10_000);
  return { bench, job: invariant(job, 'it was submitted'), asked: [...asked.values()], events };
}

async function expectNothingLeft({ bench, job }: Awaited<ReturnType<typeof drive>>): Promise<void> {
  expect(job.state).toBe('succeeded');
  expect((await bench.fleet.list()).filter((i) => i.live)).toEqual([]);
  expect(await discrepancies(bench)).toEqual([]);
}

describe.each([
  ['one process', false],
  ['steps', true],
])('a launch, by an engine of %s', (_, stepped) => {
  it('that is never answered is given up, and what waited for it runs elsewhere', async () => {
    const run = await drive(async ({ isFirst, launch }) => (isFirst ? NO_ANSWER : launch()), stepped);
    await expectNothingLeft(run);
    expect(run.asked[0]).toBeGreaterThan(1);
    expect(run.asked.length).toBeGreaterThan(1);
    expect(run.events.filter((e) => e.text.includes('no answer in 10 minutes: the line is dead'))).not.toEqual([]);
    // Its tasks began once: they were not started and ended again each time that it was tried.
    const begun = run.events.filter((e) => e.type === 'attempt-starting').length;
    expect(begun).toBeLessThanOrEqual(8);
  });

  it('that happens as it is given up is given back and paid for', async () => {
    const run = await drive(async ({ isFirst, atS, launch }) => {
      if (!isFirst) return launch();
      if (atS > raw(ANSWER_PATIENCE_S)) await launch();
      return NO_ANSWER;
    }, stepped);
    await expectNothingLeft(run);
    expect(run.events.some((e) => e.type === 'instance-released')).toBe(true);
  });

  it('that happened though nobody says so is used', async () => {
    const run = await drive(async ({ launch }) => {
      await launch();
      return NO_ANSWER;
    }, stepped);
    await expectNothingLeft(run);
    expect(run.events.filter((e) => e.text.includes('no answer'))).toEqual([]);
  });

  it.each([
    ['never happens', Infinity],
    ['happens before', 0],
    ['happens afterwards', CANCELLED_S],
  ])('that is not answered and whose job is cancelled leaves nothing where it %s', async (_name, happensS) => {
    const cancel: Deed = {
      atMs: plus(START_MS, seconds(CANCELLED_S)),
      act: (store) => store.requestCancel(jobId('j-retried')),
    };
    const meets: Meets = async ({ atS, launch }) => {
      if (atS >= happensS) await launch();
      return NO_ANSWER;
    };
    const { bench, job, asked } = await drive(meets, stepped, { deeds: [cancel] });
    expect(job).toMatchObject({ state: 'cancelled', stateReason: 'cancelled on request' });
    expect(asked[0]).toBeGreaterThan(0);
    expect((await bench.fleet.list()).filter((i) => i.live)).toEqual([]);
    expect(await discrepancies(bench)).toEqual([]);
  });

  it('that meets a used-up quota is not asked for in another pool under it for five minutes', async () => {
    const spotAtS: number[] = [];
    const others: string[] = [];
    const run = await drive(async ({ pool, atS, launch }) => {
      if (!isSpotPool(pool)) others.push(pool);
      else if (spotAtS.push(atS) < 3) return NO_QUOTA;
      return launch();
    }, stepped);
    await expectNothingLeft(run);
    const [first = 0, second = Infinity] = spotAtS;
    expect(spotAtS.length).toBeGreaterThan(1);
    // Spot alone is asked for here: it can wait.
    expect(others).toEqual([]);
    expect(second - first).toBeGreaterThanOrEqual(300);
  });

  it('that meets a used-up quota says so to whoever waits, and what would change it', async () => {
    let seen: unknown = null;
    const deed: Deed = {
      atMs: plus(START_MS, seconds(1200)),
      act: async (store) => void (seen = (await store.explanation(jobId('j-retried')))?.waiting),
    };
    const run = await drive(async ({ atS, launch }) => (atS < 3600 ? NO_QUOTA : launch()), stepped, { deeds: [deed] });
    await expectNothingLeft(run);
    expect(seen).toMatchObject([
      {
        detail: expect.stringMatching(/the account's vCPU quota spot\/standard/),
        wouldChange: expect.stringMatching(/^a higher vCPU quota spot\/standard of the account \(Service Quotas\)/),
      },
    ]);
  });

  it('that met a used-up quota is asked for again once an instance under it was taken', async () => {
    const [refusedAtS, launchedAtS]: [number[], number[]] = [[], []];
    const alone = stage({ tasks: 2, env: work(1500), resources: resources(3), checkpoint: SAVES });
    const run = await drive(
      async ({ atS, launch, spot }) => {
        const isFull = (await spot()) > 0;
        (isFull ? refusedAtS : launchedAtS).push(atS);
        return isFull ? NO_QUOTA : launch();
      },
      stepped,
      { jobs: [job({ submittedMs: START_MS, name: 'j-two', spec: spec({ name: 'two', stages: [alone] }) })] },
    );
    await expectNothingLeft(run);
    const soon = launchedAtS.filter((at) => refusedAtS.some((r) => r < at && at - r < 300));
    expect(soon).not.toEqual([]);
    // Though the other one was refused, and its pool rests, the first is used and not given back.
    const began = run.events.findIndex((e) => e.type === 'attempt-starting');
    expect(run.events.slice(0, began).filter((e) => e.type === 'instance-released')).toEqual([]);
  });

  it('of a gang that the quota is too small for is not bought and given back every five minutes', async () => {
    const RAISED_S = 3 * 3600;
    let seen: unknown = null;
    const boughtAtS: number[] = [];
    const gang = stage({ tasks: 4, gang: true, env: work(600), resources: resources(3), checkpoint: SAVES });
    const single = stage({ tasks: 1, env: work(300), resources: resources(3), checkpoint: SAVES });
    const run = await drive(
      async ({ atS, launch, live }) => {
        if (atS < RAISED_S && (await live()) >= 2) return NO_QUOTA;
        boughtAtS.push(atS);
        return launch();
      },
      stepped,
      {
        deeds: [
          {
            atMs: plus(START_MS, seconds(1800)),
            act: async (store) => void (seen = (await store.explanation(jobId('j-gang')))?.waiting),
          },
        ],
        jobs: [
          job({ submittedMs: START_MS, name: 'j-gang', spec: spec({ name: 'gang', stages: [gang] }) }),
          job({ submittedMs: START_MS, name: 'j-single', spec: spec({ name: 'single', stages: [single] }) }),
        ],
      },
    );
    await expectNothingLeft(run);
    expect(seen).toMatchObject([
      {
        why: 'gang',
        detail: expect.stringMatching(/the account's vCPU quota (spot|on-demand)\/standard refused \d+ at once/),
        wouldChange: expect.stringMatching(/^a higher vCPU quota (spot|on-demand)\/standard of the account/),
      },
    ]);
    const jobs = await run.bench.jobs();
    const overS = (name: string): number =>
      raw(between(START_MS, invariant(jobs.find((j) => j.spec.name === name)?.finishedMs, `${name} is over`)));
    expect(overS('single')).toBeLessThan(3600);
    // One for the single task, and two under each of the quotas, of spot and on demand, in each hour in which they may
    // have been raised.
    const before = boughtAtS.filter((s) => s < RAISED_S).length;
    expect(before).toBeGreaterThan(3);
    expect(before).toBeLessThanOrEqual(1 + 3 * 4);
    expect(overS('gang')).toBeGreaterThan(RAISED_S);
  });

  it('that is denied is asked for anew once its pool has rested, until it is allowed', async () => {
    const run = await drive(async ({ atS, launch }) => (atS < 1800 ? DENIED : launch()), stepped);
    await expectNothingLeft(run);
    expect(run.asked.every((times) => times === 1)).toBe(true);
    const refused = run.events.filter((e) => e.text.includes('no right to buy'));
    expect(refused.length).toBeGreaterThan(0);
  });
});
