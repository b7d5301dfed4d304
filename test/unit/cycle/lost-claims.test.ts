import { describe, expect, it } from '@jest/globals';
import { recordIntents, stopsOfLost } from '../../../lib/cycle/act/intents.ts';
import { applyObservations } from '../../../lib/cycle/observe/observe.ts';
import { attemptName, WorkingState } from '../../../lib/cycle/state/working-state.ts';
import type { Observation } from '../../../lib/domain/observation.ts';
import { unsolved } from '../../../lib/domain/plan.ts';
import { attemptId, effectKey, instanceId, planId } from '../../../lib/kernel/ids.ts';
import { epochMs, seconds, ZERO_S } from '../../../lib/kernel/units.ts';
import { instance, job, spec, stage } from '../../support/builders.ts';

/**
 * Rounds whose outputs are claimed by an attempt that ends without success, images that cannot claim at all, and the
 * last attempts of rounds.
 */

const OF = job({ name: 'j-1', spec: spec({ stages: [stage({ retries: 1, outputs: ['out'] })] }) });
const TASK = { job: OF.id, stage: 'main', index: 0 } as const;
const T0 = 1_700_000_000_000;
type Ended = Extract<Observation, { kind: 'attempt-ended' }>;

class Scene {
  readonly state = new WorkingState({
    jobs: [OF],
    attempts: [],
    tasks: [],
    instances: [],
    openEffects: [],
    cursors: new Map(),
  });
  #plans = 0;
  #told = 0;

  /** Begins an original, or a copy where the task runs. */
  begin(): string {
    const number = (this.state.triedTask(TASK)?.attempts ?? 0) + 1;
    const on = instanceId(`i-${number}`);
    this.state.putInstance(instance({ id: on, state: 'ready' }));
    const attempt = attemptName(TASK, number);
    const key = effectKey(`start-${number}`);
    this.plan([{ kind: 'start', key, attempt, task: TASK, instance: on, role: 'copy', reason: '' }]);
    return attempt;
  }

  plan(effects: Parameters<typeof recordIntents>[1]['effects'] = []) {
    const plan = { token: 1, atMs: epochMs(T0), preset: 'test', explanations: [], solve: unsolved(0) };
    return recordIntents(this.state, { ...plan, id: planId(`p-${++this.#plans}`), effects });
  }

  ends(number: number, end: Partial<Ended>): void {
    const sequence = ++this.#told;
    const o: Ended = {
      kind: 'attempt-ended',
      attempt: attemptName(TASK, number),
      instance: instanceId(`i-${number}`),
      sequence,
      atMs: epochMs(T0 + sequence * 1000),
      exitCode: null,
      exitSignal: null,
      stopped: null,
      keptS: ZERO_S,
      usage: null,
      detail: null,
      ...end,
    };
    applyObservations({ state: this.state, pools: new Map() }, [o]);
  }

  /** It lost the claim of its round to another one. */
  loses(number: number, to: number): void {
    this.ends(number, { exitCode: 0, stopped: 'superseded', publisher: attemptName(TASK, to) });
  }

  get task() {
    return this.state.task(TASK);
  }
}

const scene = (attempts: number): Scene => {
  const made = new Scene();
  for (let n = 0; n < attempts; n++) made.begin();
  return made;
};

describe('a round whose claimant ended without success', () => {
  it.each([
    ['is known to be lost first', true],
    ['is known to be lost last', false],
  ])('is stopped where the claimant %s, and the next round has a claim of its own', (_, first) => {
    const of = scene(3);
    if (first) of.ends(1, { stopped: 'interrupted' });
    of.loses(2, 1);
    if (!first) {
      expect(of.task.claimed).toEqual({ by: 'j-1.main.0.1' });
      expect(stopsOfLost(of.state)).toEqual([]);
      of.ends(1, { stopped: 'interrupted' });
    }
    expect(of.plan().map((r) => r.effect)).toEqual([
      {
        kind: 'stop',
        key: 'claim-lost/stop/j-1.main.0.3',
        attempt: 'j-1.main.0.3',
        why: 'preempted',
        reason: 'j-1.main.0.1 claimed the outputs and ended without success',
      },
    ]);
    expect(of.plan()).toEqual([]);
    expect(of.task.state).toBe('running');
    of.ends(3, { stopped: 'preempted' });
    expect(of.task).toMatchObject({ state: 'waiting', failures: 0 });
    expect(of.task).not.toHaveProperty('claimed');
    of.begin();
    expect(of.state.attempts.get(attemptName(TASK, 4))).not.toHaveProperty('round');
    of.ends(4, { exitCode: 0, keptS: seconds(9) });
    expect(of.task.state).toBe('succeeded');
  });

  it('takes no copies, also where the plan was made before', () => {
    const of = scene(3);
    of.ends(1, { stopped: 'interrupted' });
    of.loses(2, 1);
    const late = of.begin();
    expect(of.state.attempts.get(attemptId(late))).toMatchObject({ round: 1, claimLostTo: 'j-1.main.0.1' });
    expect(of.plan().map((r) => r.effect)).toMatchObject([{ kind: 'stop', attempt: late }]);
  });

  it('goes on where the claimant lives, or gave its claim back by failing', () => {
    const of = scene(3);
    of.loses(2, 1);
    of.ends(1, { exitCode: 1 });
    expect(of.task).toMatchObject({ state: 'running', failures: 1 });
    expect(of.task).not.toHaveProperty('claimed');
    expect(of.plan()).toEqual([]);
    of.ends(3, { exitCode: 0 });
    expect(of.task.state).toBe('succeeded');
  });

  it('goes on where the claimant is not known', () => {
    const of = scene(3);
    of.ends(2, { exitCode: 0, stopped: 'superseded' });
    of.ends(1, { stopped: 'interrupted' });
    expect(of.task.claimed).toEqual({ by: null });
    expect(of.plan()).toEqual([]);
  });
});

describe('a copy whose image cannot claim', () => {
  it('is remembered for its stage, and its original goes on', () => {
    const of = scene(2);
    of.ends(2, { exitCode: 0, stopped: 'superseded', cannotClaim: true, detail: 'an old AWS CLI' });
    expect(of.state.stage(TASK).noCopies).toBe('an old AWS CLI');
    expect(of.task).toMatchObject({ state: 'running', failures: 0 });
    expect(of.task).not.toHaveProperty('claimed');
  });
});

describe('the last of several attempts', () => {
  it('keeps the target of a move, however it ends', () => {
    const of = scene(2);
    const to = instanceId('i-9');
    of.plan(
      [1, 2].map((n) => ({
        kind: 'stop',
        key: effectKey(`stop-${n}`),
        attempt: attemptName(TASK, n),
        why: 'preempted',
        reason: 'moves',
        to,
      })),
    );
    of.ends(1, { stopped: 'preempted' });
    expect(of.task).not.toHaveProperty('goesTo');
    of.ends(2, { stopped: 'interrupted' });
    expect(of.task).toMatchObject({ state: 'waiting', goesTo: to });
  });

  it.each([
    ['is interrupted', { stopped: 'interrupted' }],
    ['is preempted, as by a drain', { stopped: 'preempted', exitSignal: 'SIGTERM' }],
    ['lost a claim', { exitCode: 0, stopped: 'superseded', publisher: attemptName(TASK, 2) }],
  ] as const)('lets the task run again where it %s and the others have used up the retries', (_, end) => {
    const of = scene(3);
    of.ends(1, { exitCode: 1 });
    of.ends(2, { exitCode: 3 });
    of.ends(3, end);
    expect(of.task).toMatchObject({ state: 'waiting', failures: 2 });
    expect(of.state.jobs.get(OF.id)?.stateReason).toBeNull();
    of.begin();
    of.ends(4, { exitCode: 7 });
    expect(of.state.jobs.get(OF.id)).toMatchObject({
      state: 'failed',
      stateReason: 'stage main: task 0 failed with no retries left: exit code 7',
    });
  });

  it('goes on where the end of another cannot be recorded', () => {
    const of = scene(2);
    const [main] = OF.spec.stages;
    const broken = { ...OF.spec, stages: [{ ...main!, name: 'another' }] };
    of.state.putJob({ ...of.state.jobs.get(OF.id)!, spec: broken });
    of.ends(1, { stopped: 'interrupted' });
    expect(of.state.jobs.get(OF.id)).toMatchObject({ state: 'held', stages: [{ running: 1, waiting: 0 }] });
    of.ends(2, { stopped: 'interrupted' });
    expect(of.state.jobs.get(OF.id)?.stages).toMatchObject([{ running: 0, waiting: 1 }]);
  });
});
