import { describe, expect, it } from '@jest/globals';
import { recordIntents } from '../../../lib/cycle/act/intents.ts';
import { applyObservations, settleOrHold } from '../../../lib/cycle/observe/observe.ts';
import { attemptName, WorkingState } from '../../../lib/cycle/state/working-state.ts';
import type { Instance } from '../../../lib/domain/instance.ts';
import type { Observation } from '../../../lib/domain/observation.ts';
import { unsolved, type Effect } from '../../../lib/domain/plan.ts';
import { workDoneS, type RunningTask } from '../../../lib/domain/snapshot.ts';
import { effectKey, instanceId, planId, poolId, type InstanceId } from '../../../lib/kernel/ids.ts';
import { epochMs, seconds, ZERO_S, type EpochMs } from '../../../lib/kernel/units.ts';
import { keepsProgress } from '../../../lib/stages/move/own-stops.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { instance, job, spec, stage } from '../../support/builders.ts';

/** What becomes of an attempt that stops for a move, of its task, and of the room on its target. */

const SAVES = { signal: 'SIGUSR2', graceS: seconds(30), everyS: null } as const;
const OF = job({ name: 'j-1', spec: spec({ stages: [stage({ retries: 1, checkpoint: SAVES })] }) });
const TASK = { job: OF.id, stage: 'main', index: 0 } as const;
const T0 = 1_700_000_000_000;
const at = (s: number): EpochMs => epochMs(T0 + s * 1000);
const [HERE, THERE, OTHER] = ['i-here', 'i-there', 'i-other'].map(instanceId) as [InstanceId, InstanceId, InstanceId];
type Ended = Extract<Observation, { kind: 'attempt-ended' }>;

class Scene {
  readonly state = new WorkingState({
    jobs: [OF],
    attempts: [],
    tasks: [],
    instances: [HERE, THERE, OTHER].map((id) => instance({ id, state: 'ready', readyMs: at(-100) })),
    openEffects: [],
    cursors: new Map(),
  });
  #plans = 0;
  #told = 0;

  plan(s: number, effects: readonly Effect[]): void {
    const id = planId(`p-${++this.#plans}`);
    const plan = { token: 1, preset: 'test', explanations: [], solve: unsolved(0) };
    recordIntents(this.state, { ...plan, id, atMs: at(s), effects });
  }

  starts(s: number, number: number, on: InstanceId, role?: 'copy'): void {
    const attempt = attemptName(TASK, number);
    const key = effectKey(`start/${attempt}`);
    const start = {
      kind: 'start',
      key,
      attempt,
      task: TASK,
      instance: on,
      reason: 'room',
      ...(role && { role }),
    } as const;
    this.plan(s, [start]);
    this.told(s, on, { kind: 'attempt-started', attempt });
  }

  moves(s: number, number: number, to: InstanceId = THERE): void {
    const attempt = attemptName(TASK, number);
    const usd = { savedUsd: 0.5 };
    const stop = {
      kind: 'stop',
      key: effectKey(`stop/${attempt}`),
      attempt,
      why: 'preempted',
      reason: 'cheaper',
    } as const;
    this.plan(s, [{ ...stop, to, usd }]);
  }

  ends(s: number, number: number, on: InstanceId, end: Partial<Ended>): void {
    const said = { exitCode: null, exitSignal: null, stopped: null, keptS: ZERO_S, usage: null, detail: null };
    this.told(s, on, { kind: 'attempt-ended', attempt: attemptName(TASK, number), ...said, ...end });
  }

  told(s: number, on: InstanceId, what: Partial<Observation>): void {
    const o = { ...what, instance: on, sequence: ++this.#told, atMs: at(s) } as Observation;
    applyObservations({ state: this.state, pools: new Map() }, [o]);
  }

  attempt(number: number) {
    return this.state.attempts.get(attemptName(TASK, number))!;
  }
  get task() {
    return this.state.triedTask(TASK)!;
  }
  kept(on: InstanceId = THERE): Instance['reservations'] {
    return this.state.instances.get(on)!.reservations;
  }
}

/** Started at 0, ordered to move at 600. */
function leaving(): Scene {
  const scene = new Scene();
  scene.starts(0, 1, HERE);
  scene.moves(600, 1);
  return scene;
}

describe('an attempt that stops for a move', () => {
  it('keeps room on its target from the order on, and makes no progress', () => {
    const scene = leaving();
    const attempt = scene.attempt(1);
    expect(attempt).toMatchObject({ state: 'stopping', goesTo: THERE, leaving: { sinceMs: at(600), savedUsd: 0.5 } });
    const { id, job: of, resources } = attempt;
    expect(scene.kept()).toEqual([{ attempt: id, job: of, resources, sinceMs: at(600), untilMs: null }]);
    const running = { attempt, readS: ZERO_S } as RunningTask;
    expect([at(500), at(600), at(900)].map((ms) => workDoneS(running, ms))).toEqual([500, 600, 600].map(seconds));
  });

  it('ends as moved, and its task arrives by the reservation', () => {
    const scene = leaving();
    scene.ends(660, 1, HERE, { stopped: 'preempted', exitSignal: 'SIGTERM', keptS: seconds(600) });
    expect(scene.attempt(1)).toMatchObject({ outcome: 'moved', reason: 'cheaper', keptS: seconds(600) });
    const departed = {
      attempt: scene.attempt(1).id,
      instance: HERE,
      pool: poolId(scene.state.instances.get(HERE)!.pool),
    };
    expect(scene.task).toMatchObject({
      ...{ state: 'waiting', goesTo: THERE, keptS: seconds(600), ownStops: { count: 1, lostS: seconds(60) } },
      departed: { ...departed, why: 'cheaper', savedUsd: 0.5 },
    });
    scene.starts(661, 2, THERE);
    expect(scene.attempt(2)).toMatchObject({ movedFrom: scene.attempt(1).id, reservedMs: at(600) });
    expect([scene.kept(), scene.task.goesTo, scene.task.departed]).toEqual([undefined, undefined, undefined]);
  });

  it('that saved nothing starts from zero, and is not moved again: what it lost counts', () => {
    const scene = leaving();
    scene.ends(660, 1, HERE, { stopped: 'preempted' });
    expect(scene.task).toMatchObject({
      ...{ state: 'waiting', goesTo: THERE, failures: 0, keptS: ZERO_S },
      ...{ ranS: seconds(600), ownStops: { count: 1, lostS: seconds(660) } },
    });
    scene.starts(661, 2, THERE);
    expect(scene.attempt(2).resumedFromS).toEqual(ZERO_S);
    const known = {
      snapshot: { nowMs: at(700) },
      forecasts: { runtime: new Map() },
      config: schedulerConfig.parse({}),
    };
    const again = {
      attempt: scene.attempt(2),
      stage: OF.spec.stages[0]!,
      readS: ZERO_S,
      savedS: ZERO_S,
    } as RunningTask;
    const { ownStops, ranS } = scene.task;
    const whole = { ...again, ranS: seconds(3600) };
    expect(keepsProgress({ ...whole, ranS: ranS!, ...(ownStops && { ownStops }) }, known as never)).toBe(false);
    expect(keepsProgress(whole, known as never)).toBe(true);
  });

  it.each([
    ['succeeds all the same', { exitCode: 0, keptS: seconds(610) }, 'succeeded'],
    ['fails', { exitCode: 1 }, 'failed'],
  ] as const)('that %s gives its room back at once', (_, end, outcome) => {
    const scene = leaving();
    scene.ends(610, 1, HERE, end);
    expect(scene.attempt(1).outcome).toBe(outcome);
    expect(scene.kept()).toMatchObject([{ sinceMs: at(600), untilMs: at(610) }]);
    expect([scene.task.goesTo, scene.task.departed]).toEqual([undefined, undefined]);
  });

  it('of a job that ends meanwhile gives its room back when it has stopped', () => {
    const scene = leaving();
    scene.state.putJob({ ...scene.state.jobs.get(OF.id)!, cancelRequested: true });
    scene.ends(660, 1, HERE, { stopped: 'preempted', keptS: seconds(600) });
    settleOrHold(scene.state, OF.id, at(660));
    expect(scene.state.jobs.get(OF.id)?.state).toBe('cancelled');
    expect(scene.kept()).toMatchObject([{ untilMs: at(660) }]);
  });

  it('whose task starts elsewhere gives its room back then', () => {
    const scene = leaving();
    scene.ends(660, 1, HERE, { stopped: 'preempted', keptS: seconds(600) });
    scene.starts(700, 2, OTHER);
    expect(scene.attempt(2).movedFrom).toBeUndefined();
    expect(scene.kept()).toMatchObject([{ untilMs: at(700) }]);
  });

  it('is interrupted where the market is faster, which is no stop of ours; its task arrives all the same', () => {
    const scene = leaving();
    scene.ends(620, 1, HERE, { stopped: 'interrupted', exitSignal: 'SIGKILL' });
    expect(scene.attempt(1).outcome).toBe('interrupted');
    expect(scene.task).toMatchObject({ goesTo: THERE, keptS: ZERO_S });
    expect(scene.task.ownStops).toBeUndefined();
    scene.starts(621, 2, THERE);
    expect(scene.attempt(2)).toMatchObject({ movedFrom: scene.attempt(1).id, reservedMs: at(600) });
  });

  it('moves once where copies stop beside it', () => {
    const scene = new Scene();
    scene.starts(0, 1, HERE);
    scene.starts(10, 2, OTHER, 'copy');
    scene.moves(600, 1);
    scene.moves(600, 2);
    expect(scene.kept()).toHaveLength(1);
    expect([scene.attempt(2).goesTo, scene.attempt(2).leaving]).toEqual([THERE, undefined]);
    scene.ends(660, 1, HERE, { stopped: 'preempted', keptS: seconds(600) });
    scene.ends(661, 2, OTHER, { stopped: 'preempted' });
    expect([scene.attempt(1).outcome, scene.attempt(2).outcome]).toEqual(['moved', 'preempted']);
    scene.starts(662, 3, THERE);
    expect(scene.attempt(3)).toMatchObject({
      movedFrom: scene.attempt(1).id,
      reservedMs: at(600),
      resumedFromS: seconds(600),
    });
  });

  it('restarts in its own room where its gang moves', () => {
    const scene = new Scene();
    scene.starts(0, 1, HERE);
    scene.moves(600, 1, HERE);
    expect(scene.kept(HERE)).toBeUndefined();
    scene.ends(602, 1, HERE, { stopped: 'preempted', keptS: seconds(600) });
    expect(scene.kept(HERE)).toMatchObject([{ sinceMs: at(602), untilMs: null }]);
    scene.starts(660, 2, HERE);
    expect(scene.attempt(2)).toMatchObject({ movedFrom: scene.attempt(1).id, reservedMs: at(602) });
  });

  it('that an earlier version stopped ends as preempted, as it did then', () => {
    const scene = leaving();
    const { leaving: _, ...old } = scene.attempt(1);
    scene.state.putAttempt(old);
    scene.ends(660, 1, HERE, { stopped: 'preempted', keptS: seconds(600) });
    expect(scene.attempt(1).outcome).toBe('preempted');
    expect(scene.task).toMatchObject({ state: 'waiting', goesTo: THERE });
  });
});
