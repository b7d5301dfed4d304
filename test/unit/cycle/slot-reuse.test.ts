import { describe, expect, it } from '@jest/globals';
import type { Deliberation } from '../../../lib/cycle/decide/deliberation.ts';
import { recordIntent } from '../../../lib/cycle/act/intents.ts';
import { endOrHold } from '../../../lib/cycle/observe/observe.ts';
import { SlotReuse } from '../../../lib/cycle/decide/slot-reuse.ts';
import { WorkingState } from '../../../lib/cycle/state/working-state.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { certain } from '../../../lib/domain/distribution.ts';
import type { Job, StageSpec } from '../../../lib/domain/job.ts';
import type { Pool, PurchaseOption } from '../../../lib/domain/pool.ts';
import type { PendingGroup } from '../../../lib/domain/snapshot.ts';
import { attemptId, groupId, jobId, planId } from '../../../lib/kernel/ids.ts';
import { epochMs, raw, seconds, ZERO_S } from '../../../lib/kernel/units.ts';
import { attempt, instance, job, pool, resources, snapshot, spec, stage } from '../../support/builders.ts';

const NOW = epochMs(1_700_000_000_000);
const config = schedulerConfig.parse({});
const RUNNING = jobId('j-running');

/** A group of never-tried tasks that waits for room. The first listed is worth most. */
interface Waits {
  readonly name: string;
  readonly cpus?: number;
  readonly runtimeS?: number;
  readonly tasks?: number;
  readonly template?: string;
  readonly constraints?: StageSpec['constraints'];
  readonly offered?: readonly PurchaseOption[];
  /** Seconds from now to the last safe start of one with a deadline. */
  readonly safeForS?: number;
  readonly over?: Partial<Job>;
}

/**
 * Four places of one vCPU each, one of which has just been left by a task of a job that goes on; what is given on, as
 * task names.
 */
function given(waits: readonly Waits[], on: { readonly pool?: Pool; readonly stops?: boolean } = {}) {
  const held = on.pool ?? pool();
  const jobs = waits.map(({ name, cpus = 1, tasks = 1, constraints = {}, safeForS, template = 'other', over }) =>
    job({
      name,
      template,
      deadlineMs: safeForS === undefined ? null : epochMs(raw(NOW) + 86_400_000),
      spec: spec({ name, stages: [stage({ tasks, constraints, resources: resources(cpus, 512 * cpus) })] }),
      ...over,
    }),
  );
  const running = job({
    name: RUNNING,
    template: 'running',
    state: 'running',
    spec: spec({ name: 'running', stages: [stage({ tasks: 4 })] }),
    stages: [{ name: 'main', tasks: 4, nextFresh: 4, waiting: 0, running: 4, succeeded: 0, failed: 0, cancelled: 0 }],
  });
  const attempts = [0, 1, 2, 3].map((index) =>
    attempt({
      id: attemptId(`${RUNNING}.main.${index}.1`),
      job: RUNNING,
      index,
      ...(on.stops === true && index === 3 ? { state: 'stopping' } : {}),
    }),
  );
  const state = new WorkingState({
    jobs: [running, ...jobs],
    tasks: attempts.map(({ job: of, stage: main, index }) => ({
      ...{ job: of, stage: main, index, state: 'running', attempts: 1, failures: 0, keptS: ZERO_S, notBeforeMs: null },
    })),
    attempts,
    instances: [instance({ pool: held.id })],
    openEffects: [],
    cursors: new Map(),
  });
  const groups = jobs.map((of): PendingGroup => {
    const [main] = of.spec.stages;
    if (main === undefined) throw new Error('no stage');
    return {
      id: groupId(`${of.id}/main/fresh`),
      job: of.id,
      class: of.spec.class,
      stage: main,
      count: main.tasks,
      members: { freshFrom: 0 },
      keptS: ZERO_S,
      submittedMs: of.submittedMs,
      deadlineMs: of.deadlineMs,
      need: main.resources,
    };
  });
  const offered = (w: Waits | undefined) =>
    (w?.offered ?? ['spot']).map((option) => ({ pool: pool({ option }).id, pLate: 0 }));
  const worthOf = (i: number) => ({ points: [{ atMs: NOW, usd: 1e6 * 10 ** -(2 * i) }] });
  const safeUntil = (w: Waits | undefined) =>
    w?.safeForS === undefined ? null : epochMs(raw(NOW) + 1000 * w.safeForS);
  const deliberation = {
    snapshot: snapshot({ nowMs: NOW, jobs: new Map([running, ...jobs].map((j) => [j.id, j])), groups }),
    forecasts: {
      runtime: new Map(
        groups.map((g, i) => [
          `${g.job}/main`,
          { runtime: certain(seconds(waits[i]?.runtimeS ?? 10)), reason: 'told' },
        ]),
      ),
    },
    worths: {
      groups: new Map(groups.map((g, i) => [g.id, { curve: worthOf(i), latestSafeStartMs: safeUntil(waits[i]) }])),
    },
    offers: new Map(groups.map((g, i) => [g.id, { offers: offered(waits[i]) }])),
    allotment: {
      waits: groups.map((g) => ({ group: g.id, count: g.count, why: 'capacity', detail: '' })),
      preemptions: [],
      moves: [],
    },
    reserved: [],
    placements: [],
    lots: [],
    forSlotReuse: new Map(),
    untold: new Map(),
  } as unknown as Deliberation;
  const plan = planId('p-test');
  const reuse = SlotReuse.of(deliberation, { plan, config });
  const [first] = attempts;
  if (reuse === null || first === undefined) return { tasks: null, needsDecision: true };
  const end = { exitCode: 0, exitSignal: null, keptS: seconds(10), usage: null, reason: null };
  endOrHold(state, first, { at: NOW, outcome: 'succeeded', ...end });
  const { instances } = state.whatRuns({ poolById: new Map([[held.id, held]]), restoreS: ZERO_S });
  const tasks: string[] = [];
  const left = [{ attempt: first, outcome: 'succeeded' as const }];
  const needsDecision = reuse.give({ left, cameUp: [] }, { state, instances, nowMs: NOW }, (start) => {
    recordIntent(state, start, { id: plan, atMs: NOW });
    tasks.push(`${start.task.job}/${start.task.index}`);
  });
  return { tasks, needsDecision };
}

describe('a place that a task left', () => {
  it('goes to what is worth most of all that waits', () => {
    const waits = [{ name: 'j-first', tasks: 5 }, { name: 'j-second' }];
    expect(given(waits)).toEqual({ tasks: ['j-first/0'], needsDecision: false });
  });

  it('is shared by several smaller tasks', () => {
    const waits = [
      { name: 'j-half', cpus: 0.5 },
      { name: 'j-other-half', cpus: 0.5 },
      { name: 'j-late', cpus: 0.5 },
    ];
    expect(given(waits)).toEqual({ tasks: ['j-half/0', 'j-other-half/0'], needsDecision: false });
  });

  it('is kept for a decision where what comes first needs more: nobody overtakes it', () => {
    const waits = [{ name: 'j-large', cpus: 3 }, { name: 'j-small' }];
    expect(given(waits)).toEqual({ tasks: [], needsDecision: true });
  });

  it('is kept for a decision where what comes first may not run there', () => {
    const elsewhere = { zones: ['test-1b'] };
    expect(given([{ name: 'j-elsewhere', constraints: elsewhere }, { name: 'j-small' }]).tasks).toEqual([]);
  });

  it('is kept for a decision where a long task comes first, unless one like it has left', () => {
    expect(given([{ name: 'j-long', runtimeS: 3600 }])).toEqual({ tasks: [], needsDecision: true });
    expect(given([{ name: 'j-long', runtimeS: 3600, template: 'running' }]).tasks).toEqual(['j-long/0']);
  });

  it('on on-demand capacity goes to nobody who is offered spot', () => {
    const onDemand = pool({ option: 'on-demand' });
    expect(given([{ name: 'j-spot', offered: ['spot', 'on-demand'] }], { pool: onDemand }).tasks).toEqual([]);
    expect(given([{ name: 'j-on-demand', offered: ['on-demand'] }], { pool: onDemand }).tasks).toEqual([
      'j-on-demand/0',
    ]);
    expect(given([{ name: 'j-on-demand', offered: ['on-demand'] }]).tasks).toEqual([]);
  });

  it('on spot goes to a task with a deadline only while that is not endangered', () => {
    expect(given([{ name: 'j-soon', safeForS: 60 }])).toEqual({ tasks: [], needsDecision: true });
    expect(given([{ name: 'j-later', safeForS: 7200 }]).tasks).toEqual(['j-later/0']);
  });

  it('passes over jobs that are being stopped or held', () => {
    const waits = [
      { name: 'j-cancelled', over: { cancelRequested: true } },
      { name: 'j-held', over: { state: 'held', held: { reason: 'a fault', sinceMs: NOW } } as const },
      { name: 'j-small' },
    ];
    expect(given(waits).tasks).toEqual(['j-small/0']);
  });

  it('is kept while other work stops on its instance', () => {
    expect(given([{ name: 'j-small' }], { stops: true }).tasks).toEqual([]);
  });

  it('needs a decision once nothing waits', () => {
    expect(given([])).toEqual({ tasks: [], needsDecision: true });
  });
});
