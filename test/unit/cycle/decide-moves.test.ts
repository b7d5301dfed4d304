import { describe, expect, it } from '@jest/globals';
import { movesOf } from '../../../lib/cycle/decide/moves.ts';
import type { Attempt, StageSpec, Task } from '../../../lib/domain/job.ts';
import type { MoveTarget, Plan, Worth } from '../../../lib/domain/plan.ts';
import { capUsd } from '../../../lib/domain/pool.ts';
import { instanceId, jobId, poolId } from '../../../lib/kernel/ids.ts';
import type { RunningTask, Snapshot } from '../../../lib/domain/snapshot.ts';
import { mib, seconds, usdPerHour } from '../../../lib/kernel/units.ts';
import type { DecisionContext, Move, PlannedMove } from '../../../lib/policy/contracts.ts';
import { wrongMove } from '../../../lib/policy/targets.ts';
import { movesProposed } from '../../../lib/policy/own/moves.ts';
import { pool, resources } from '../../support/builders.ts';
import { decided, host, jobOf, keysOf, onDemand, runs, spot, type Scene } from '../../support/decision-scene.ts';

const BID = usdPerHour(0.06);
const elsewhere = pool({ zone: 'b' });

/** One task on spot that is to move, and instances beside it. */
function scene(to: MoveTarget, over: { readonly stage?: Partial<StageSpec>; readonly vcpus?: number } = {}): Scene {
  const one = jobOf('j-one', { running: 1 }, { expectedRuntimeS: seconds(7200), ...over.stage });
  const busy = jobOf('j-busy', { running: 1 }, { expectedRuntimeS: seconds(7200) });
  return {
    jobs: [one, busy],
    attempts: [runs('a0', one), runs('a1', busy, { instance: instanceId('i-full'), resources: resources(4) })],
    instances: [
      host('i-test', spot),
      host('i-full', spot),
      host('i-a', spot),
      host('i-named', spot),
      host('i-starting', spot, { state: 'starting', readyMs: null }),
    ],
    moves: [{ attempt: 'a0', reason: 'as told', to }],
    ...(over.vcpus === undefined ? {} : { vcpus: over.vcpus }),
  };
}
const stopsOf = (plan: Plan) => plan.effects.flatMap((e) => (e.kind === 'stop' ? [[e.attempt, e.to]] : []));
const boughtIn = (plan: Plan) => plan.effects.flatMap((e) => (e.kind === 'launch' ? [[e.pool, capUsd(e.bid)]] : []));

describe('a move to a named instance', () => {
  it('stops to go on there, from spot to spot too, though others have room', async () => {
    const { plan } = await decided(scene({ instance: instanceId('i-named') }));
    expect(stopsOf(plan)).toEqual([['a0', 'i-named']]);
    expect(keysOf(plan, 'release')).toEqual(['i-a', 'i-starting']);
  });

  it('waits for one that starts, which is kept for it', async () => {
    const { plan } = await decided(scene({ instance: instanceId('i-starting') }));
    expect([stopsOf(plan), boughtIn(plan)]).toEqual([[], []]);
    expect(keysOf(plan, 'release')).not.toContain('i-starting');
  });

  it.each<[string, string, Partial<StageSpec>]>([
    ['has no room', 'i-full', {}],
    ['is not held', 'i-gone', {}],
    ['is its own', 'i-test', {}],
    ['its constraints exclude', 'i-named', { constraints: { purchaseOptions: ['on-demand'] } }],
    ['a gang cannot go to', 'i-named', { gang: true }],
  ])('does not begin where the instance %s, and nothing is bought', async (_, id, stage) => {
    const { plan } = await decided(scene({ instance: instanceId(id) }, { stage }));
    expect([stopsOf(plan), boughtIn(plan)]).toEqual([[], []]);
  });
});

describe('a move to a named pool', () => {
  it('stops to go on an instance of the pool that has room, not on its own', async () => {
    const { plan } = await decided(scene({ pool: spot.id, bid: 'uncapped' }));
    expect(stopsOf(plan)).toEqual([['a0', 'i-a']]);
    expect(boughtIn(plan)).toEqual([]);
  });

  it('buys an instance there at the bid where none has room, and runs on', async () => {
    const { plan } = await decided(scene({ pool: elsewhere.id, bid: BID }));
    expect([stopsOf(plan), boughtIn(plan)]).toEqual([[], [[elsewhere.id, 0.06]]]);
    const other = await decided(scene({ pool: onDemand.id, bid: 'uncapped' }));
    expect(boughtIn(other.plan)).toEqual([[onDemand.id, Infinity]]);
  });

  it('never stops before there is room, though the vCPU limit leaves none', async () => {
    const { plan } = await decided(scene({ pool: onDemand.id, bid: 'uncapped' }, { vcpus: 20 }));
    expect([stopsOf(plan), boughtIn(plan)]).toEqual([[], []]);
  });

  it('does not begin where the user’s constraints exclude the pool, or where there is none', async () => {
    const stage = { constraints: { zones: ['a'] } };
    for (const bad of [scene({ pool: elsewhere.id, bid: BID }, { stage }), scene({ pool: poolId('none'), bid: BID })]) {
      const { plan } = await decided(bad);
      expect([stopsOf(plan), boughtIn(plan)]).toEqual([[], []]);
    }
  });
});

describe('a checkpoint, which is part of the disk that a job asks for', () => {
  const big = { ...resources(1), disk: mib(60_000) };
  const moves = async (of: Scene) => (await decided(of)).plan.explanations.flatMap((e) => e.moves ?? []);

  it('keeps its task where it is while the named instance has too little disk left, and says so', async () => {
    const of = scene({ instance: instanceId('i-named') }, { stage: { resources: big } });
    const hog = jobOf('j-hog', { running: 1 }, { expectedRuntimeS: seconds(7200) });
    const taken = runs('a2', hog, { instance: instanceId('i-named'), resources: big });
    const wide = (of.attempts ?? []).map((a) => (a.id === 'a0' ? { ...a, resources: big } : a));
    const crowded = { ...of, jobs: [...of.jobs, hog], attempts: [...wide, taken] };
    const { plan } = await decided(crowded);
    expect([stopsOf(plan), boughtIn(plan)]).toEqual([[], []]);
    expect(await moves(crowded)).toMatchObject([
      {
        state: 'waits',
        to: { instance: 'i-named' },
        why: expect.stringMatching(/^as told; i-named has no room for it: disk \(60000 MiB needed, \d+ MiB there\)$/),
      },
    ]);
  });

  it('is refused a pool whose machines have too little disk, with the reason', () => {
    const one = jobOf('j-one', { running: 1 }, { resources: { ...resources(1), disk: mib(1e9) } });
    const running = { attempt: runs('a0', one), stage: one.spec.stages[0]! } as RunningTask;
    const snapshot = { pools: [{ pool: spot }], instances: new Map(), running: [running] } as unknown as Snapshot;
    const wide = { ...running, attempt: { ...running.attempt, resources: { ...resources(1), disk: mib(1e9) } } };
    expect(wrongMove({ running: wide, to: { pool: spot.id, bid: 'uncapped' } }, snapshot)).toMatch(
      /whose machines it does not fit for want of disk \(1000000000 MiB needed, \d+ MiB there\)$/,
    );
  });
});

describe('of the moves that a plan keeps', () => {
  const one = jobOf('j-one', { running: 1 }, { expectedRuntimeS: seconds(7200) });
  const [stage] = one.spec.stages as [StageSpec];
  const task = (id: string, over: Partial<Attempt> = {}, of: Partial<StageSpec> = {}): RunningTask =>
    ({ attempt: runs(id, one, over), stage: { ...stage, ...of } }) as RunningTask;
  const of = (
    asked: readonly RunningTask[],
    proposed: readonly Partial<Move>[],
    there: readonly RunningTask[] = asked,
  ): readonly PlannedMove[] =>
    movesOf(
      { moves: asked.map((running, i) => ({ running, reason: `move ${i}`, to: 'spot' as const })) },
      { worths: { groups: new Map(), ofRunning: () => ({}) as Worth }, snapshot: { running: there } as Snapshot },
      {
        proposed: asked.map((running, i) => ({ attempt: running.attempt.id, running, ...proposed[i] }) as Move),
        neighbours: null,
      },
    );
  const saves = { checkpoint: { signal: 'SIGUSR2', graceS: seconds(10), everyS: null } } as const;

  it('the first of one attempt stands, and an attempt that stops keeps the target it has', () => {
    const twice = task('a0', {}, saves);
    expect(of([twice, twice], []).map((m) => m.reason)).toEqual(['move 0']);
    expect(of([task('a0', { state: 'stopping', goesTo: instanceId('i-2') }, saves)], [])).toEqual([]);
  });

  it('none is of a copy while its original runs: the original would stop with it', () => {
    const original = { ...task('a0', {}, saves), attempts: 2 };
    const copy = { ...task('a1', { number: 2, role: 'copy', round: 2 }, saves), attempts: 2 };
    const moved = (asked: RunningTask[], there: RunningTask[]) => of(asked, [], there).map((m) => m.running.attempt.id);
    expect(moved([copy], [original, copy])).toEqual([]);
    expect(moved([copy, original], [original, copy])).toEqual(['a0']);
    const stopped = { ...original, attempt: { ...original.attempt, state: 'stopping' as const } };
    expect(moved([copy], [stopped, copy])).toEqual(['a1']);
    expect(moved([copy], [copy])).toEqual(['a1']);
  });

  it('one of a task without a checkpoint stands only if its policy says that it may start again', () => {
    const plain = task('a0', {}, { checkpoint: null });
    expect(of([plain], [{}])).toEqual([]);
    expect(of([plain], [{ restarts: false }])).toEqual([]);
    expect(of([plain], [{ restarts: true }])).toHaveLength(1);
  });

  it('carries the dollars that its policy names', () => {
    const [named] = of([task('a0', {}, saves)], [{ savedUsd: 0.5, riskUsd: 0.125 }]);
    expect(named).toMatchObject({ savedUsd: 0.5, riskUsd: 0.125 });
    const [silent] = of([task('a0', {}, saves)], [{}]);
    expect([silent?.savedUsd, silent?.riskUsd]).toEqual([undefined, undefined]);
  });
});

describe('a gang', () => {
  const budget = (limitUsd: number) =>
    new Map([[jobId('j-gang'), { limitUsd, spentUsd: 0, heldUsd: 0, reservedUsd: 0, isCapped: true }]]);

  /** Three tasks, of which the plan moves the first two off spot, to two instances that are up or not. */
  function scene({ isUp }: { readonly isUp: boolean }): Scene {
    const gang = jobOf(
      'j-gang',
      { running: 3 },
      { gang: true, resources: resources(3), expectedRuntimeS: seconds(7200) },
    );
    const on = (index: number, id: string) =>
      runs(`a${index}`, gang, { index, instance: instanceId(id), resources: resources(3) });
    const instances = [host('i-test', spot), host('i-other', spot), host('i-stays', onDemand), host('i-up', onDemand)];
    return {
      jobs: [gang],
      attempts: [on(0, 'i-test'), on(1, 'i-other'), on(2, 'i-stays')],
      instances: [...instances, host('i-next', onDemand, isUp ? {} : { state: 'starting', readyMs: null })],
      moves: ['a0', 'a1'].map((attempt) => ({ attempt, reason: 'as told' })),
    };
  }
  it('runs on until all of its moves have a target that is up, which are kept', async () => {
    const { plan } = await decided(scene({ isUp: false }));
    expect([stopsOf(plan), keysOf(plan, 'release')]).toEqual([[], []]);
  });

  it('stops as a whole then; a task that does not move comes back to its instance', async () => {
    const { plan } = await decided(scene({ isUp: true }));
    const stops = new Map(plan.effects.flatMap((e) => (e.kind === 'stop' ? [[e.attempt as string, e.to]] : [])));
    expect([...stops.keys()].sort()).toEqual(['a0', 'a1', 'a2']);
    expect(stops.get('a2')).toBe('i-stays');
    for (const moved of ['a0', 'a1']) expect(['i-up', 'i-next']).toContain(stops.get(moved));
  });

  it('has room bought for all of its moves, or for none', async () => {
    const of = scene({ isUp: true });
    const instances = (of.instances ?? []).filter(({ id }) => id !== 'i-up' && id !== 'i-next');
    const launched = async (over: Partial<Scene>): Promise<number> => {
      const { plan } = await decided({ ...of, instances, ...over });
      return plan.effects.filter((e) => e.kind === 'launch').length;
    };
    expect(await launched({})).toBe(2);
    expect(await launched({ budgets: budget(100) })).toBe(2);
    expect(await launched({ budgets: budget(1) })).toBe(0);
    // Of 20 vCPUs 12 are in use, and two instances have 8; of 16 only one instance has room.
    expect(await launched({ vcpus: 20 })).toBe(2);
    expect(await launched({ vcpus: 16 })).toBe(0);
  });

  it('stops first where the vCPU limit leaves room for a part of it only', async () => {
    const of = scene({ isUp: true });
    const instances = (of.instances ?? []).filter(({ id }) => id !== 'i-up' && id !== 'i-next');
    const { plan } = await decided({ ...of, instances, vcpus: 16 });
    expect(stopsOf(plan)).toEqual([
      ['a0', undefined],
      ['a1', undefined],
    ]);
  });

  it('finds its room kept for tasks that have stopped before the others', async () => {
    const { jobs, instances = [] } = scene({ isUp: true });
    const gang = jobs[0]!;
    const stopped = (index: number, on: string): Task => ({
      ...{ job: gang.id, stage: 'main', index, state: 'waiting', attempts: 1, failures: 0 },
      ...{ keptS: seconds(0), notBeforeMs: null, goesTo: instanceId(on) },
    });
    const stays = instanceId('i-stays');
    const { plan } = await decided({
      jobs: [{ ...gang, stages: gang.stages.map((s) => ({ ...s, running: 1, waiting: 2 })) }],
      attempts: [runs('a2', gang, { index: 2, instance: stays, state: 'stopping', goesTo: stays })],
      tasks: [stopped(0, 'i-up'), stopped(1, 'i-next')],
      instances,
    });
    expect(keysOf(plan, 'release')).toEqual(['i-other', 'i-test']);
  });
});

describe('a policy of the user’s own that moves work to a wrong target is refused', () => {
  it.each<[MoveTarget, Partial<StageSpec>, string | null]>([
    [{ instance: instanceId('i-named') }, {}, null],
    ['spot', { constraints: { purchaseOptions: ['on-demand'] } }, null],
    [{ instance: instanceId('i-gone') }, {}, 'it moves a0 to i-gone, which is not held'],
    [{ instance: instanceId('i-test') }, {}, 'it moves a0 to i-test, where its task runs already'],
    [{ instance: instanceId('i-named') }, { gang: true }, 'it moves a0 to a named target, being one of a gang'],
    [{ pool: poolId('none'), bid: BID }, {}, 'it moves a0 to the pool none, which does not exist'],
    [{ pool: spot.id, bid: usdPerHour(-1) }, {}, `it moves a0 to the pool ${spot.id} with the bid -1`],
    [
      { pool: elsewhere.id, bid: BID },
      { constraints: { zones: ['a'] } },
      `it moves a0 to the pool ${elsewhere.id}, which its constraint zones excludes`,
    ],
  ])('%j', async (to, stage, why) => {
    const { deliberation } = await decided({ ...scene('spot', { stage }), moves: [] });
    const { snapshot } = deliberation;
    const running = snapshot.running.find((r) => r.attempt.id === 'a0');
    const view = running && snapshot.instances.get(running.attempt.instance);
    if (running === undefined || view === undefined) throw new Error('a0 runs');
    const move: Move = { attempt: running.attempt.id, reason: 'as told', running, view, to };
    const read = () => movesProposed([move], deliberation as unknown as DecisionContext);
    if (why === null) expect(read()).toEqual([move]);
    else expect(read).toThrow(why);
  });
});
