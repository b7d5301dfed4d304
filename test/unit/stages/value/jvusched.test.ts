import { DecisionMemory } from '../../../../lib/policy/memory.ts';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { certain, distribution, type Distribution } from '../../../../lib/domain/distribution.ts';
import type { Job, StageProgress, StageSpec } from '../../../../lib/domain/job.ts';
import type { Worth } from '../../../../lib/domain/plan.ts';
import type { Pool } from '../../../../lib/domain/pool.ts';
import type { PendingGroup, RunningTask } from '../../../../lib/domain/snapshot.ts';
import type { Forecasts } from '../../../../lib/domain/forecasts.ts';
import type { ValuePolicy } from '../../../../lib/policy/contracts.ts';
import { worthAt } from '../../../../lib/domain/utility.ts';
import { invariant } from '../../../../lib/kernel/errors.ts';
import { groupId } from '../../../../lib/kernel/ids.ts';
import { epochMs, mib, milliCpu, raw, seconds, usd, ZERO_S } from '../../../../lib/kernel/units.ts';
import { jvuSched } from '../../../../lib/stages/value/jvusched.ts';
import { perJob, perJobSharp } from '../../../../lib/stages/value/per-job.ts';
import { strictPriority } from '../../../../lib/stages/value/strict-priority.ts';
import { attempt, job, pool, snapshot, spec, stage } from '../../../support/builders.ts';
import { NO_BELIEFS } from '../../../../bench/load/no-beliefs.ts';

const config = schedulerConfig.parse({ startDelayMeanS: 95, startDelayMaxS: 160, restoreS: 10, safetyQuantile: 0.95 });
const T0 = 1_700_000_000_000;
const at = (s: number) => epochMs(T0 + s * 1000);
/** A quarter of a 0.16 USD/h machine: 0.04 USD per task-hour. */
const machine = pool({ type: 'm5.xlarge', option: 'on-demand', cpus: 4, memoryMiB: 16_384, onDemand: 0.16 });

interface Scene {
  readonly of: Job;
  readonly runtimes?: Readonly<Record<string, Distribution>>;
  readonly groups?: readonly PendingGroup[];
  readonly running?: readonly RunningTask[];
  readonly vcpus?: number;
  readonly on?: Pool;
  readonly policy?: ValuePolicy;
  readonly settings?: Partial<typeof config>;
}

function evaluate(scene: Scene) {
  const { of, groups = [], running = [], vcpus = 1000, on = machine, policy = jvuSched } = scene;
  const now = snapshot({
    nowMs: at(0),
    jobs: new Map([[of.id, of]]),
    groups,
    running,
    pools: [{ pool: on, quote: on.onDemandUsdPerHour, open: true, closedReason: null }],
    limits: { vcpus },
  });
  const forecasts: Forecasts = {
    runtime: new Map(
      of.spec.stages.map((s) => [
        `${of.id}/${s.name}`,
        { runtime: scene.runtimes?.[s.name] ?? certain(seconds(3600)), basis: 'history' as const, reason: 'test' },
      ]),
    ),
    market: { interruption: never, expectedPrice: never, correlation: never },
  };
  return policy({
    snapshot: now,
    forecasts,
    config: { ...config, ...scene.settings },
    memory: new DecisionMemory(),
    beliefs: NO_BELIEFS,
  });
}

function never(): never {
  throw new Error('values do not depend on the market');
}

const group = (of: Job, over: Partial<PendingGroup> & { stageName?: string } = {}): PendingGroup => {
  const name = over.stageName ?? 'main';
  const spec = invariant(
    of.spec.stages.find((s) => s.name === name),
    `stage ${name}`,
  );
  return {
    id: groupId(`${of.id}/${name}`),
    job: of.id,
    class: of.spec.class,
    stage: spec,
    count: spec.tasks,
    members: { freshFrom: 0 },
    keptS: ZERO_S,
    submittedMs: of.submittedMs,
    deadlineMs: of.deadlineMs,
    need: spec.resources,
    ...over,
  };
};

function one(scene: Scene, name = 'main'): Worth {
  const worths = evaluate({ ...scene, groups: scene.groups ?? [group(scene.of, { stageName: name })] });
  return invariant(worths.groups.get(groupId(`${scene.of.id}/${name}`)), 'the group has a worth');
}

const progress = (s: StageSpec, succeeded: number): StageProgress => ({
  name: s.name,
  tasks: s.tasks,
  nextFresh: succeeded,
  waiting: 0,
  running: 0,
  succeeded,
  failed: 0,
  cancelled: 0,
});

function deadlineJob(
  stages: readonly StageSpec[],
  over: { deadlineS?: number; value?: Job['spec']['value'] } = {},
): Job {
  const deadlineS = over.deadlineS ?? 7200;
  return job({
    spec: spec({
      class: 'deadline',
      deadline: { afterS: seconds(deadlineS) },
      stages,
      ...(over.value === undefined ? {} : { value: over.value }),
    }),
    submittedMs: at(0),
    deadlineMs: at(deadlineS),
  });
}
const bestEffort = (stages: readonly StageSpec[]): Job => job({ spec: spec({ stages }), submittedMs: at(0) });

describe('utilities', () => {
  it('are constant until the deadline, then fall linearly to nothing over worthlessAfter', () => {
    const of = deadlineJob([stage()], { value: { onTimeUsd: usd(10), worthlessAfterS: seconds(1000) } });
    const { curve } = one({ of });
    expect([0, 7200, 7700, 8200, 99_999].map((s) => worthAt(curve, at(s)))).toEqual([10, 10, 5, 0, 0]);
  });

  it('without worthlessAfter fall over as long again as the job had, to a worth that still pays on-demand', () => {
    const { curve } = one({ of: deadlineJob([stage()]) });
    const onDemandUsd = 0.16;
    expect(worthAt(curve, at(7200))).toBeCloseTo(2000 * onDemandUsd, 9);
    expect(worthAt(curve, at(14_400))).toBeCloseTo(1.25 * onDemandUsd, 9);
    expect(worthAt(curve, at(1e7))).toBeGreaterThan(onDemandUsd);
  });

  it('make deadline jobs dominate best-effort jobs of their size by 1000', () => {
    const urgent = worthAt(one({ of: deadlineJob([stage()]) }).curve, at(0));
    const relaxed = worthAt(one({ of: bestEffort([stage()]) }).curve, at(0));
    expect(urgent / relaxed).toBeCloseTo(1000, 6);
  });

  it('count all of a started hour where that is charged, so that a minute of work is worth its hour', () => {
    const runtimes = { main: certain(seconds(60)) };
    const of = bestEffort([stage()]);
    const worthIn = (over: Partial<typeof config>): number =>
      worthAt(one({ of, runtimes, settings: over }).curve, at(10 * 86_400));
    expect(worthIn({})).toBeCloseTo((1.25 * 0.16) / 60, 9);
    expect(worthIn({ billing: 'per-hour' })).toBeCloseTo(1.25 * 0.16, 9);
  });

  it('let best-effort worth fall slowly and never below what on-demand costs', () => {
    const { curve, taskDeadlineMs, latestSafeStartMs } = one({ of: bestEffort([stage()]) });
    expect(taskDeadlineMs).toBeNull();
    expect(latestSafeStartMs).toBeNull();
    const worths = [0, 3600, 43_200, 86_400, 864_000].map((s) => worthAt(curve, at(s)));
    expect(worths[0]).toBeCloseTo(0.32, 9);
    expect(worths[1]).toBeLessThan(worths[0] ?? 0);
    expect(worths[1]).toBeGreaterThan(0.3);
    expect(worths[3]).toBeCloseTo(0.2, 9);
    expect(worths[4]).toBe(worths[3]);
  });

  it('of the baselines: nothing once late; the same at any time', () => {
    const of = deadlineJob([stage()]);
    const sharp = one({ of, policy: perJobSharp }).curve;
    expect(worthAt(sharp, at(7200))).toBe(100_000);
    expect(worthAt(sharp, at(7200.01))).toBe(0);
    const flat = one({ of, policy: strictPriority }).curve;
    expect(worthAt(flat, at(99_999))).toBeCloseTo(320, 9);
  });
});

describe('the same worth for each job', () => {
  it('whatever it costs: a thousand times that of best effort, until the deadline, and then falling to it', () => {
    for (const tasks of [1, 50]) {
      const { curve } = one({ of: deadlineJob([stage({ tasks })]), policy: perJob });
      const worthOfJob = (s: number): number => tasks * worthAt(curve, at(s));
      expect(worthOfJob(7200)).toBeCloseTo(100_000, 6);
      expect(worthOfJob(10_800)).toBeCloseTo(50_031.25, 6);
      expect(worthOfJob(99_999)).toBeCloseTo(62.5, 6);
    }
  });
});

describe('splitting', () => {
  it('shares the worth among the tasks that are not done', () => {
    const many = stage({ tasks: 10 });
    const value = { onTimeUsd: usd(100), worthlessAfterS: null };
    const fresh = deadlineJob([many], { value });
    expect(worthAt(one({ of: fresh }).curve, at(0))).toBeCloseTo(10, 9);
    const nearlyDone = { ...fresh, stages: [progress(many, 9)] };
    expect(worthAt(one({ of: nearlyDone }).curve, at(0))).toBeCloseTo(100, 9);
  });

  it('hands the worth of later stages to the stages that they wait for', () => {
    const of = deadlineJob(
      [
        stage({ name: 'a', tasks: 2 }),
        stage({ name: 'b', dependsOn: ['a'] }),
        stage({ name: 'c', dependsOn: ['b'] }),
        stage({ name: 'side' }),
      ],
      { value: { onTimeUsd: usd(10), worthlessAfterS: null } },
    );
    // Work in task-hours: a 2, b 1, c 1, side 1. Behind a: b and c.
    const worth = (name: string) => worthAt(one({ of }, name).curve, at(-1e6));
    expect(worth('a')).toBeCloseTo((10 * 4) / 5 / 2, 9);
    expect(worth('b')).toBeCloseTo((10 * 2) / 5, 9);
    expect(worth('c')).toBeCloseTo((10 * 1) / 5, 9);
    expect(worth('side')).toBeCloseTo((10 * 1) / 5, 9);
    expect(one({ of }, 'a').reason).toContain('stages b, c');
  });
});

describe('times', () => {
  it('stages behind pull the task deadline forward along the longest path', () => {
    const of = deadlineJob([
      stage({ name: 'a' }),
      stage({ name: 'short', dependsOn: ['a'] }),
      stage({ name: 'long', dependsOn: ['a'] }),
      stage({ name: 'z', dependsOn: ['short', 'long'] }),
    ]);
    const runtimes = {
      a: certain(seconds(600)),
      short: certain(seconds(100)),
      long: certain(seconds(1000)),
      z: certain(seconds(50)),
    };
    const deadlineS = (name: string) => (raw(invariant(one({ of, runtimes }, name).taskDeadlineMs, name)) - T0) / 1000;
    expect(deadlineS('z')).toBe(7200);
    expect(deadlineS('long')).toBe(7200 - (95 + 50));
    expect(deadlineS('short')).toBe(7200 - (95 + 50));
    expect(deadlineS('a')).toBe(7200 - (95 + 50) - (95 + 1000));
  });

  it('the last safe start leaves room for start-up and the safety quantile of the work', () => {
    const runtimes = {
      main: distribution([
        [600, 0.9],
        [900, 0.06],
        [5000, 0.04],
      ]),
    };
    const of = deadlineJob([stage()]);
    const safeS = (scene: Omit<Scene, 'of'>) =>
      (raw(invariant(one({ of, ...scene }).latestSafeStartMs, 'safe')) - T0) / 1000;
    expect(safeS({ runtimes })).toBe(7200 - 160 - 900);
    // From a checkpoint: less to do, but to be restored first. Given more than 500 s, 900 s is still the 95 % quantile.
    expect(safeS({ runtimes, groups: [group(of, { keptS: seconds(500) })] })).toBe(7200 - 160 - 10 - 400);
    // Interrupted after 700 s with nothing kept: 5000 s are the 95 % quantile of what takes longer, and all of it is to
    // be done.
    expect(safeS({ runtimes, groups: [group(of, { ranS: seconds(700) })] })).toBe(7200 - 160 - 5000);
  });

  it('waves before the last one bring the last safe start forward', () => {
    const of = deadlineJob([stage({ tasks: 10 })], { deadlineS: 20_000 });
    const safe = one({ of, vcpus: 4 }).latestSafeStartMs;
    // 10 tasks of one vCPU on 4: three waves.
    expect((raw(invariant(safe, 'safe')) - T0) / 1000).toBe(20_000 - 160 - 3600 - 2 * 3600);
  });

  it('a running attempt that saves when it is told to leave takes all that it has done along', () => {
    const checkpoint = { signal: 'SIGUSR2' as const, graceS: seconds(30), everyS: seconds(600) };
    const of = deadlineJob([stage({ checkpoint })]);
    const running: RunningTask = {
      attempt: attempt({ job: of.id, resumedFromS: seconds(1000), startedMs: null }),
      class: 'deadline',
      stage: invariant(of.spec.stages[0], 'stage'),
      deadlineMs: of.deadlineMs,
      readS: seconds(0),
      savedS: seconds(600),
    };
    const worth = evaluate({ of, running: [running] }).ofRunning(running);
    const safeS = (raw(invariant(worth?.latestSafeStartMs, 'safe')) - T0) / 1000;
    // What is left after 1000 s, not after the 600 s that it last saved by itself.
    expect(safeS).toBe(7200 - 160 - 10 - 2600);
  });

  it('a running attempt must be able to begin again from its last checkpoint', () => {
    const of = deadlineJob([stage()]);
    const run = (doneS: number, keptS: number, before: Pick<RunningTask, 'ranS'> = {}): RunningTask => ({
      attempt: attempt({ job: of.id, resumedFromS: seconds(doneS), startedMs: null }),
      class: 'deadline',
      stage: invariant(of.spec.stages[0], 'stage'),
      deadlineMs: of.deadlineMs,
      readS: seconds(0),
      savedS: seconds(keptS),
      ...before,
    });
    const safeS = (r: RunningTask) => {
      const worth = evaluate({ of, running: [r] }).ofRunning(r);
      return (raw(invariant(worth?.latestSafeStartMs, 'safe')) - T0) / 1000;
    };
    expect(safeS(run(1000, 0))).toBe(7200 - 160 - 3600);
    expect(safeS(run(1000, 900))).toBe(7200 - 160 - 10 - 2700);
    // Outlived its estimate by two cycles of 60 s: the next increment ends three cycles beyond it.
    expect(safeS(run(3600 + 120, 0))).toBe(7200 - 160 - (3600 + 180));
    // So did an attempt before.
    expect(safeS(run(10, 0, { ranS: seconds(3600 + 120) }))).toBe(7200 - 160 - (3600 + 180));
  });

  it('a running attempt may be due whenever its last safe start is that near, and is not while it is far', () => {
    const tens = (max: number) => fc.integer({ min: 0, max }).map((s) => s * 10);
    const times = { deadlineS: tens(4000), doneS: tens(2000), savedS: tens(2000), ranS: tens(2000), withinS: tens(30) };
    const scene = fc.record(times);
    let due = 0;
    fc.assert(
      fc.property(scene, fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 5 }), (is, runs) => {
        const of = deadlineJob([stage()], { deadlineS: is.deadlineS });
        const running: RunningTask = {
          attempt: attempt({ job: of.id, resumedFromS: seconds(is.doneS), startedMs: null }),
          class: 'deadline',
          stage: invariant(of.spec.stages[0], 'stage'),
          deadlineMs: of.deadlineMs,
          readS: seconds(0),
          savedS: seconds(Math.min(is.savedS, is.doneS)),
          ranS: seconds(is.ranS),
        };
        const runtimes = { main: distribution(runs.map((s) => [10 * s, 1])) };
        const { ofRunning, mayBeDue } = evaluate({ of, runtimes, running: [running] });
        const safeS = (raw(invariant(ofRunning(running)?.latestSafeStartMs, 'safe')) - T0) / 1000;
        if (safeS <= is.withinS) due++;
        if (safeS <= is.withinS) expect(mayBeDue?.(running, is.withinS)).toBe(true);
      }),
    );
    expect(due).toBeGreaterThan(10);
    const far = deadlineJob([stage()], { deadlineS: 86_400 });
    const running = {
      attempt: attempt({ job: far.id }),
      stage: far.spec.stages[0],
      deadlineMs: far.deadlineMs,
    } as RunningTask;
    expect(evaluate({ of: far, running: [running] }).mayBeDue?.(running, 120)).toBe(false);
  });
});

describe('a job record that is valued again', () => {
  const of = deadlineJob([
    stage({ tasks: 4, resources: { cpu: milliCpu(1000), memory: mib(1024), gpus: 0, disk: mib(0) } }),
  ]);
  const startsBy = (worth: Worth): number => raw(invariant(worth.latestSafeStartMs, 'it has a deadline'));

  it('has another worth as soon as running times, limits or on-demand prices are others', () => {
    const first = one({ of });
    const longer = one({ of, runtimes: { main: certain(seconds(5400)) } });
    expect((startsBy(first) - startsBy(longer)) / 1000).toBeCloseTo(1800, 6);
    expect((startsBy(first) - startsBy(one({ of, vcpus: 2 }))) / 1000).toBeCloseTo(3600, 6);
    const twice = pool({ type: 'm5.xlarge', option: 'on-demand', cpus: 4, memoryMiB: 16_384, onDemand: 0.32 });
    const usd = (worth: Worth): number => worthAt(worth.curve, at(0));
    expect(usd(one({ of, on: twice })) / usd(first)).toBeCloseTo(2, 9);
    expect(one({ of })).toEqual(first);
  });
});
