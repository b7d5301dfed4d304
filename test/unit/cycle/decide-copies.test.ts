import { describe, expect, it } from '@jest/globals';
import type { Attempt, Job, StageSpec, Task } from '../../../lib/domain/job.ts';
import type { Effect, Plan } from '../../../lib/domain/plan.ts';
import type { Budget } from '../../../lib/domain/snapshot.ts';
import { attemptId, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { raw, usdPerHour, ZERO_S } from '../../../lib/kernel/units.ts';
import type { Copy } from '../../../lib/policy/contracts.ts';
import { resources } from '../../support/builders.ts';
import { at, decided, host, jobOf, onDemand, runs, spot, type Scene } from '../../support/decision-scene.ts';

/** What becomes of copies in one decision. */

const SLOW = attemptId('a-slow');
const copy = (over: Partial<Copy> = {}): Copy => ({ of: SLOW, reason: 'it is slow', ...over });
const asking = (...copies: readonly Copy[]): Pick<Scene, 'speculate'> => ({ speculate: () => copies });

const slow = (over: Partial<StageSpec> = {}): Job => jobOf('j-slow', { running: 1 }, over);
const task = (of: Job, attempts: number): Task => ({
  job: of.id,
  stage: 'main',
  index: 0,
  state: 'running',
  attempts,
  failures: 0,
  keptS: ZERO_S,
  notBeforeMs: null,
});
/** A task that runs on `i-slow`, and an instance beside it. */
const scene = (over: Partial<Scene> = {}, of: Job = slow()): Scene => ({
  jobs: [of],
  attempts: [runs(SLOW, of, { instance: instanceId('i-slow'), resources: resources(2) })],
  tasks: [task(of, 1)],
  instances: [host('i-slow', spot), host('i-idle', spot)],
  ...asking(copy()),
  ...over,
});

type Start = Extract<Effect, { kind: 'start' }>;
const startsOf = (plan: Plan): readonly Start[] => plan.effects.filter((e): e is Start => e.kind === 'start');
const launches = (plan: Plan) => plan.effects.flatMap((e) => (e.kind === 'launch' ? [e] : []));
const released = (plan: Plan) => plan.effects.flatMap((e) => (e.kind === 'release' ? [e.instance] : []));
const told = (plan: Plan, of = 'j-slow') => plan.explanations.find((e) => e.job === jobId(of))?.copies ?? [];

describe('a copy that has room', () => {
  it('starts as the next attempt of its task, elsewhere, and keeps its instance', async () => {
    const { plan } = await decided(scene());
    expect(startsOf(plan)).toMatchObject([
      { attempt: 'j-slow.main.0.2', instance: 'i-idle', role: 'copy', reason: 'it is slow' },
    ]);
    expect(released(plan)).toEqual([]);
    expect(told(plan)).toEqual([
      { stage: 'main', index: 0, state: 'starts', why: 'a copy starts now on i-idle: it is slow' },
    ]);
    const without = await decided(scene({ speculate: () => [] }));
    expect(startsOf(without.plan)).toEqual([]);
    expect(released(without.plan)).toEqual(['i-idle']);
    expect(without.plan.explanations[0]).not.toHaveProperty('copies');
  });

  it('has the number after that of an attempt that came and went', async () => {
    const of = slow();
    const { plan } = await decided(scene({ tasks: [task(of, 4)] }, of));
    expect(startsOf(plan)[0]?.attempt).toBe('j-slow.main.0.5');
  });

  it('goes to the instance or into the pool that it names', async () => {
    const instances = [host('i-slow', spot), host('i-a', spot), host('i-b', spot), host('i-c', onDemand)];
    const onB = await decided(scene({ instances, ...asking(copy({ to: { instance: instanceId('i-b') } })) }));
    expect(startsOf(onB.plan)[0]?.instance).toBe('i-b');
    const to = { pool: onDemand.id, bid: 'uncapped' } as const;
    const onDemanded = await decided(scene({ instances, ...asking(copy({ to })) }));
    expect(startsOf(onDemanded.plan)[0]?.instance).toBe('i-c');
  });

  it('waits for an instance that is starting, which is kept for it', async () => {
    const instances = [host('i-slow', spot), host('i-idle', spot, { state: 'starting', readyMs: at(1100) })];
    const { plan } = await decided(scene({ instances }));
    expect(startsOf(plan)).toEqual([]);
    expect(released(plan)).toEqual([]);
    expect(told(plan)).toMatchObject([{ state: 'waits', why: expect.stringContaining('i-idle') }]);
  });

  it('is not begun where as many attempts live as it asks for', async () => {
    const of = slow();
    const second: Partial<Attempt> = { number: 2, role: 'copy', round: 1, instance: instanceId('i-2') };
    const both = {
      attempts: [...scene().attempts!, runs('a-copy', of, { ...second, resources: resources(2) })],
      tasks: [task(of, 2)],
      instances: [host('i-slow', spot), host('i-2', spot), host('i-idle', spot)],
    };
    const { plan } = await decided(scene(both, of));
    expect(startsOf(plan)).toEqual([]);
    expect(told(plan)).toEqual([
      { stage: 'main', index: 0, state: 'runs', why: expect.stringContaining('a copy runs on i-2') },
    ]);
    expect(plan.explanations[0]?.headline).toContain('1 running');
    const third = await decided(scene({ ...both, ...asking(copy({ attempts: 3 })) }, of));
    expect(startsOf(third.plan)).toMatchObject([{ attempt: 'j-slow.main.0.3', instance: 'i-idle' }]);
  });
});

describe('a copy that has no room', () => {
  const reasonOf = async (over: Partial<Scene>, of?: Job): Promise<string> => {
    const { plan } = await decided(scene(over, of));
    expect(startsOf(plan)).toEqual([]);
    expect(launches(plan)).toEqual([]);
    expect(told(plan)).toMatchObject([{ state: 'dropped' }]);
    return told(plan)[0]!.why;
  };

  it('is dropped with a reason', async () => {
    const alone = [host('i-slow', spot)];
    expect(await reasonOf({ instances: alone })).toBe('no copy: no instance that it may use has room (it is slow)');
    const warned = [...alone, host('i-b', spot, { state: 'warned' })];
    expect(await reasonOf({ instances: warned, ...asking(copy({ to: { instance: instanceId('i-b') } })) })).toContain(
      'i-b has no room for it',
    );
    // Nothing of the job may run on demand.
    const spotOnly = slow({ constraints: { purchaseOptions: ['spot'] } });
    expect(await reasonOf({ instances: [...alone, host('i-c', onDemand)] }, spotOnly)).toContain('no instance');
    const to = { pool: spot.id, bid: usdPerHour(0.1) };
    expect(await reasonOf({ instances: alone, vcpus: 4, ...asking(copy({ to })) })).toContain('limit of 4 vCPUs');
    const low = { pool: spot.id, bid: usdPerHour(0.01) };
    expect(await reasonOf({ instances: alone, ...asking(copy({ to: low })) })).toContain('below the price');
  });

  it('is not asked for in vain: where outputs are claimed, or the image cannot claim', async () => {
    const of = slow();
    const by = attemptId('j-slow.main.0.1');
    expect(await reasonOf({ tasks: [{ ...task(of, 1), claimed: { by } }] }, of)).toBe(
      'no copy: j-slow.main.0.1 has claimed the outputs, so that a copy could not publish its own (it is slow)',
    );
    expect(await reasonOf({ tasks: [{ ...task(of, 1), claimed: { by: null } }] }, of)).toContain('another attempt has');
    const old = { ...of, stages: of.stages.map((s) => ({ ...s, noCopies: 'an old AWS CLI' })) };
    expect(await reasonOf({}, old)).toBe('no copy: an old AWS CLI (it is slow)');
  });

  it('never takes the room of a start', async () => {
    const waits = jobOf('j-waits', { waiting: 1 }, { resources: resources(4) });
    const of = slow();
    const waiting: Task = { ...task(waits, 1), state: 'waiting' };
    const both = scene({ jobs: [of, waits], tasks: [task(of, 1), waiting] }, of);
    const probe = await decided({ ...both, speculate: () => [] });
    const offer = probe.deliberation.offers
      .values()
      .next()
      .value!.offers.find((o) => o.pool === spot.id)!;
    const option = { group: offer.group, offer, slot: 0, startMs: at(1000), worthUsd: 1, costUsd: 0.1 };
    const { plan } = await decided({ ...both, allotment: { starts: [{ option, count: 1, reason: 'first' }] } });
    expect(startsOf(plan).map((s) => [s.attempt, s.instance])).toEqual([['j-waits.main.0.2', 'i-idle']]);
    expect(told(plan)).toMatchObject([{ state: 'dropped' }]);
  });

  it('is bought an instance where it names a pool', async () => {
    const to = { pool: spot.id, bid: usdPerHour(0.1) };
    const { plan } = await decided(scene({ instances: [host('i-slow', spot)], ...asking(copy({ to })) }));
    expect(launches(plan)).toMatchObject([
      { pool: spot.id, reason: 'for a copy: it is slow', boughtFor: [{ job: 'j-slow', part: 1 }] },
    ]);
    expect(startsOf(plan)).toEqual([]);
    expect(told(plan)).toMatchObject([{ state: 'waits', why: expect.stringContaining('is bought for a copy') }]);
  });

  it('shares an instance with other copies where they fit', async () => {
    const of = jobOf('j-slow', { running: 3 });
    const attempts = [0, 1, 2].map((index) =>
      runs(`a${index}`, of, { index, instance: instanceId(`i-${index}`), resources: resources(2) }),
    );
    const to = { pool: spot.id, bid: usdPerHour(0.1) };
    const { plan } = await decided({
      jobs: [of],
      attempts,
      instances: [0, 1, 2].map((n) => host(`i-${n}`, onDemand)),
      ...asking(...attempts.map((a) => copy({ of: a.id, to }))),
    });
    expect(launches(plan).map((l) => l.reason)).toEqual(['for 2 copies', 'for a copy: it is slow']);
  });

  it('before a deadline goes first', async () => {
    const due = { ...jobOf('j-due', { running: 1 }), deadlineMs: at(9000) };
    const half = jobOf('j-half', { running: 1 });
    const of = slow();
    const to = { instance: instanceId('i-half') };
    const onHalf = { instance: to.instance, resources: resources(2) };
    const { plan } = await decided({
      jobs: [of, due, half],
      attempts: [
        ...scene().attempts!,
        runs('a-due', due, { instance: instanceId('i-due'), resources: resources(2) }),
        runs('a-half', half, onHalf),
      ],
      instances: [host('i-slow', onDemand), host('i-due', onDemand), host('i-half', onDemand)],
      ...asking(copy({ to }), copy({ of: attemptId('a-due'), to })),
    });
    expect(startsOf(plan).map((s) => s.task.job)).toEqual(['j-due']);
    expect(told(plan)).toMatchObject([{ state: 'dropped', why: expect.stringContaining('i-half has no room') }]);
  });
});

describe('the limit of a job', () => {
  const budget = (leftUsd: number): Scene['budgets'] & {} =>
    new Map([[jobId('j-slow'), { limitUsd: 10, spentUsd: 10 - leftUsd, reservedUsd: 0, heldUsd: 0 } satisfies Budget]]);

  it('counts a copy, on an instance that is there or bought', async () => {
    expect(startsOf((await decided(scene({ budgets: budget(1) }))).plan)).toHaveLength(1);
    const { plan } = await decided(scene({ budgets: budget(0.001) }));
    expect(startsOf(plan)).toEqual([]);
    expect(told(plan)[0]?.why).toMatch(/maxCost.* could be passed: a copy takes/);
    const to = { pool: spot.id, bid: 'uncapped' } as const;
    const buying = { instances: [host('i-slow', spot)], ...asking(copy({ to })) };
    const bought = launches((await decided(scene({ ...buying, budgets: budget(1) }))).plan);
    // It has a bid, as what is bought for any job with a limit.
    expect(bought.map((l) => [raw(l.bid as never), (l.boughtFor?.[0]?.usd ?? 0) > 0])).toEqual([[0.17, true]]);
    expect(launches((await decided(scene({ ...buying, budgets: budget(0.001) }))).plan)).toEqual([]);
  });

  it('is kept for tasks that wait', async () => {
    const of = jobOf('j-slow', { running: 1, waiting: 1 });
    const waiting: Task = { ...task(of, 1), index: 1, state: 'waiting' };
    const { plan } = await decided(scene({ tasks: [task(of, 1), waiting], budgets: budget(1) }, of));
    expect(startsOf(plan)).toEqual([]);
    expect(told(plan)[0]?.why).toContain('kept for its tasks that wait');
  });
});

describe('a copy that cannot be', () => {
  const refused = async (wrong: Partial<Copy>, over: Partial<Scene> = {}, of?: Job) =>
    expect(decided(scene({ ...over, ...asking(copy(wrong)) }, of))).rejects;

  it('is a defect of its policy', async () => {
    await (await refused({ of: attemptId('a-none') })).toThrow(/copies a-none, which does not run/);
    await (await refused({}, {}, { ...slow(), cancelRequested: true })).toThrow(/whose job is being stopped/);
    await (await refused({}, {}, slow({ gang: true }))).toThrow(/one of a gang/);
    await (await refused({ attempts: 1 })).toThrow(/wants 1 attempts/);
    await (await refused({ to: { instance: instanceId('i-slow') } })).toThrow(/where its task runs already/);
    await (await refused({ to: { instance: instanceId('i-none') } })).toThrow(/i-none, which is not held/);
    await (await refused({ to: { pool: 'x/y/spot' as never, bid: 'uncapped' } })).toThrow(/does not exist/);
    await (await refused({ to: { pool: spot.id, bid: usdPerHour(-1) } })).toThrow(/with the bid -1/);
    const stopping = { attempts: [{ ...scene().attempts![0]!, state: 'stopping' as const }] };
    await (await refused({}, stopping)).toThrow(/which is stopping/);
    await expect(decided(scene(asking(copy(), copy())))).rejects.toThrow(/copies j-slow\/main\/0 twice/);
  });
});

describe('an attempt whose task has a copy', () => {
  const of = slow();
  const pair = (over: Partial<Attempt> = {}, copied: Partial<Attempt> = {}): Scene =>
    scene(
      {
        attempts: [
          runs(SLOW, of, { instance: instanceId('i-slow'), resources: resources(2), ...over }),
          runs('a-copy', of, {
            number: 2,
            role: 'copy',
            round: 1,
            instance: instanceId('i-2'),
            resources: resources(2),
            ...copied,
          }),
        ],
        tasks: [task(of, 2)],
        instances: [host('i-slow', spot), host('i-2', spot), host('i-d', onDemand)],
        speculate: () => [],
      },
      of,
    );
  const stops = (plan: Plan) => plan.effects.flatMap((e) => (e.kind === 'stop' ? [[e.attempt, e.to]] : []));

  it('moves with it, as one task', async () => {
    const { plan } = await decided({ ...pair(), moves: [{ attempt: SLOW, reason: 'its deadline' }] });
    expect(stops(plan)).toEqual([
      [SLOW, 'i-d'],
      ['a-copy', 'i-d'],
    ]);
  });

  it('moves once where a policy moves both: one instance is bought, and the original has the target', async () => {
    const both = [
      { attempt: 'a-copy', reason: 'its deadline' },
      { attempt: SLOW, reason: 'its deadline' },
    ];
    const noRoom = { instances: [host('i-slow', spot), host('i-2', spot)], moves: both };
    const { plan } = await decided({ ...pair(), ...noRoom });
    expect(launches(plan)).toHaveLength(1);
    expect(stops(plan)).toEqual([]);
    const ready = await decided({ ...pair(), moves: both });
    expect(launches(ready.plan)).toEqual([]);
    expect(stops(ready.plan)).toEqual([
      [SLOW, 'i-d'],
      ['a-copy', 'i-d'],
    ]);
  });

  it('has no room kept to go on elsewhere while the copy runs', async () => {
    expect(released((await decided(pair({ state: 'stopping' }))).plan)).toEqual(['i-d']);
    expect(released((await decided(pair({ state: 'stopping' }, { state: 'stopping' }))).plan)).toEqual([]);
    const superseded = { state: 'stopping', supersededBy: attemptId('a-copy') } as const;
    expect(released((await decided(pair(superseded, superseded))).plan)).toEqual(['i-d']);
  });

  it('is not copied again in the decision that stops it', async () => {
    const preemptions = [{ attempt: SLOW, reason: 'others first' }];
    const { plan } = await decided(scene({ allotment: { preemptions } }));
    expect(startsOf(plan)).toEqual([]);
    expect(told(plan)[0]?.why).toContain('is to stop');
  });
});
