import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { recordIntents } from '../../../lib/cycle/act/intents.ts';
import { applyObservations } from '../../../lib/cycle/observe/observe.ts';
import { attemptName, WorkingState } from '../../../lib/cycle/state/working-state.ts';
import type { Observation } from '../../../lib/domain/observation.ts';
import { unsolved, type Effect } from '../../../lib/domain/plan.ts';
import { effectKey, instanceId, planId, type AttemptId } from '../../../lib/kernel/ids.ts';
import { epochMs, ZERO_S } from '../../../lib/kernel/units.ts';
import { instance, job } from '../../support/builders.ts';

/**
 * Attempts of one task as their fleets run them: a claim for each round, then two uploads, then the end, which is told
 * late, in any order and twice. The engine's own code decides who has succeeded and when a new round begins.
 */

const OF = job({ name: 'j-1' });
const TASK = { job: OF.id, stage: 'main', index: 0 } as const;
const T0 = 1_700_000_000_000;

type End = Pick<Extract<Observation, { kind: 'attempt-ended' }>, 'exitCode' | 'stopped' | 'publisher'>;
interface Live {
  readonly id: AttemptId;
  readonly round: number;
  /** Runs, has claimed, has uploaded one output, has uploaded both. */
  step: 0 | 1 | 2 | 3;
  end: End | null;
}

class World {
  readonly state = new WorkingState({
    jobs: [OF],
    attempts: [],
    tasks: [],
    instances: [],
    openEffects: [],
    cursors: new Map(),
  });
  readonly claims = new Map<number, AttemptId>();
  readonly files = ['', ''];
  readonly attempts: Live[] = [];
  readonly #claiming: boolean;
  #told = 0;
  #plans = 0;
  lost = 0;
  /** Attempts that were stopped because their round cannot publish any more. */
  stopped = 0;

  constructor(claiming: boolean) {
    this.#claiming = claiming;
  }

  get isDone(): boolean {
    return this.state.jobs.get(OF.id)?.stages[0]?.succeeded === 1;
  }

  begin(): void {
    if (this.isDone) return;
    const number = this.attempts.length + 1;
    const on = instanceId(`i-${number}`);
    this.state.putInstance(instance({ id: on, state: 'ready' }));
    const id = attemptName(TASK, number);
    const start = {
      kind: 'start',
      key: effectKey(`start-${number}`),
      attempt: id,
      task: TASK,
      instance: on,
      role: 'copy',
      reason: '',
    } as const;
    this.#plan([start]);
    const round = this.state.attempts.get(id)?.round ?? number;
    this.attempts.push({ id, round, step: 0, end: null });
  }

  #plan(effects: readonly Effect[]): void {
    const plan = { token: 1, atMs: epochMs(T0), preset: 'test', explanations: [], solve: unsolved(0) };
    const records = recordIntents(this.state, { ...plan, id: planId(`p-${++this.#plans}`), effects });
    for (const { effect } of records) {
      if (effect.kind !== 'stop' || effect.why !== 'preempted') continue;
      this.stopped++;
      const live = this.attempts.find((a) => a.id === effect.attempt);
      if (live !== undefined) live.end ??= { exitCode: null, stopped: 'preempted' };
    }
  }

  /** One step of an attempt's way to its end. */
  go(live: Live): void {
    if (live.end !== null) return;
    if (live.step === 0) {
      const publisher = this.claims.get(live.round) ?? live.id;
      if (this.#claiming && publisher !== live.id) {
        this.lost++;
        live.end = { exitCode: 0, stopped: 'superseded', publisher };
        return;
      }
      this.claims.set(live.round, live.id);
    } else if (live.step < 3) this.files[live.step - 1] = live.id;
    if (live.step === 3) live.end = { exitCode: 0, stopped: null };
    else live.step++;
  }

  /** Its instance is taken, or it is stopped. */
  die(live: Live): void {
    const isSuperseded = this.state.attempts.get(live.id)?.supersededBy !== undefined;
    live.end ??= { exitCode: null, stopped: isSuperseded ? 'superseded' : 'interrupted' };
  }

  tell({ id, end }: Live): void {
    if (end === null) return;
    const on = instanceId(`i-${this.attempts.findIndex((a) => a.id === id) + 1}`);
    const sequence = ++this.#told;
    const ended = {
      kind: 'attempt-ended',
      attempt: id,
      exitSignal: null,
      keptS: ZERO_S,
      usage: null,
      detail: null,
    } as const;
    const o: Observation = { ...ended, ...end, instance: on, sequence, atMs: epochMs(T0 + sequence * 1000) };
    applyObservations({ state: this.state, pools: new Map() }, [o]);
    this.#plan([]);
  }
}

const deed = fc.record({ do: fc.constantFrom('begin', 'go', 'go', 'go', 'die', 'tell', 'tell'), of: fc.nat(4) });

/** What is wrong with a history; null: nothing. */
function fault(deeds: readonly { readonly do: string; readonly of: number }[], world: World): string | null {
  const check = (): string | null => {
    const winners = world.attempts.filter((a) => world.state.attempts.get(a.id)?.outcome === 'succeeded');
    if (winners.length > 1) return `${winners.length} successes`;
    const wrong = winners.some(({ id }) => world.files.some((by) => by !== id));
    return wrong ? `${winners[0]?.id} succeeded, and the outputs are of ${world.files.join(' and ')}` : null;
  };
  world.begin();
  for (const { do: what, of } of deeds) {
    const live = world.attempts.at(-1 - (of % world.attempts.length))!;
    if (what === 'begin') world.begin();
    else if (what === 'go') world.go(live);
    else if (what === 'die') world.die(live);
    else world.tell(live);
    const found = check();
    if (found !== null) return found;
  }
  // Whatever happened, the task comes to its end.
  for (let round = 0; round < 3; round++) {
    for (const live of world.attempts) {
      while (live.end === null) world.go(live);
      world.tell(live);
    }
    if (!world.isDone) world.begin();
  }
  if (!world.isDone) return 'it never succeeds';
  const open = world.attempts.filter((a) => world.state.attempts.get(a.id)?.state !== 'ended');
  return check() ?? (open.length === 0 ? null : `${open.length} attempts never end`);
}

describe('outputs of a task with several attempts', () => {
  it('are those of the attempt that the engine says succeeded, whoever dies and whatever is told late or twice', () => {
    const seen = { lost: 0, later: 0, died: 0, stopped: 0 };
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 40 }), (deeds) => {
        const world = new World(true);
        expect(fault(deeds, world)).toBeNull();
        seen.lost += Math.min(1, world.lost);
        if (world.claims.size > 1) seen.later++;
        if (world.stopped > 0) seen.stopped++;
        if (world.attempts.some((a) => a.step > 0 && a.end?.exitCode === null)) seen.died++;
      }),
      { seed: 28, numRuns: 4000 },
    );
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(50);
  });

  it('would be mixed without claims', () => {
    const found = fc.check(
      fc.property(fc.array(deed, { maxLength: 40 }), (deeds) => fault(deeds, new World(false)) === null),
      { seed: 28, numRuns: 1000 },
    );
    expect(found.failed).toBe(true);
  });
});
