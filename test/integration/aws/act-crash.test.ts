import { describe, expect, it } from '@jest/globals';
import type { Observation } from '../../../lib/domain/observation.ts';
import type { Effect, EffectOutcome } from '../../../lib/domain/plan.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import {
  attemptId,
  effectKey,
  instanceId,
  planId,
  poolId,
  type EffectKey,
  type InstanceId,
} from '../../../lib/kernel/ids.ts';
import { mib, milliCpu, usdPerHour } from '../../../lib/kernel/units.ts';
import type { Attempt } from '../../../lib/domain/job.ts';
import type { Change } from '../../../lib/ports/store.ts';
import { attempt, instance, job, spec, task } from '../../contract/store-samples.ts';
import type { KnobSettings } from '../../../scripts/aws-double/knobs.ts';
import { brokenConnection, Faults, type AtCall } from '../../support/aws-faults.ts';
import { AwsWorld, type Process } from '../../support/aws-world.ts';

/** Worlds at once: most of their time they wait. */
const AT_ONCE = 4;
const WITHIN_MS = 40_000;
const CALM = poolId('c5.large/calm/spot');
const EMPTY = poolId('c5.large/empty/spot');
const RESERVED = poolId('c5.large/spiky/reserved');
/** The last two are one more than the reservation has. */
const [HOST, IDLE, NONE, KEPT, OVER] = (['host', 'idle', 'none', 'kept', 'over'] as const).map((n) =>
  instanceId(`i-${n}`),
) as [InstanceId, InstanceId, InstanceId, InstanceId, InstanceId];
const [FIRST, COPY, SECOND] = [attemptId('j1.main.0.1'), attemptId('j1.main.0.2'), attemptId('j1.main.1.1')];
const ATTEMPTS: readonly Attempt[] = [
  attempt(FIRST, { index: 0 }),
  attempt(COPY, { index: 0, number: 2, role: 'copy', round: 1 }),
  attempt(SECOND, { index: 1 }),
].map((a) => ({ ...a, instance: HOST, state: 'starting', startedMs: null }));

/** Long enough to be stopped, in wall seconds. */
const commands = ['sleep 60', 'sleep 0.2'];
const theJob = (() => {
  const [stage] = spec().stages;
  if (stage === undefined) throw new Error('a job without stages');
  const resources = { cpu: milliCpu(500), memory: mib(128), gpus: 0, disk: mib(0) };
  const command = ['sh', '-c', `case {index} in 0) ${commands[0]};; *) ${commands[1]};; esac`];
  const main = { ...stage, command, env: {}, workdir: '/tmp', inputs: [], outputs: [], resources, checkpoint: null };
  return job('j1', { state: 'running', spec: spec({ stages: [{ ...main, tasks: 2 }] }) });
})();

const bid = usdPerHour(0.05);
/** `ordinal`: of those that are bought together in the pool. */
const launch = (id: InstanceId, pool: typeof CALM, ordinal: number): Effect => ({
  kind: 'launch',
  key: effectKey(`begin/launch/${pool}/${ordinal}`),
  allocation: effectKey(`begin/launch/${pool}`),
  instance: id,
  pool,
  bid,
  reason: '',
});
const start = (of: typeof FIRST, index: number): Extract<Effect, { kind: 'start' }> => ({
  kind: 'start',
  key: effectKey(`start ${of}`),
  attempt: of,
  task: { job: theJob.id, stage: 'main', index },
  instance: HOST,
  reason: '',
});

/** Two plans, one after the other: what gets something going, and what ends it. */
const BEGIN: readonly Effect[] = [
  launch(HOST, CALM, 0),
  launch(IDLE, CALM, 1),
  launch(NONE, EMPTY, 0),
  launch(KEPT, RESERVED, 0),
  launch(OVER, RESERVED, 1),
  start(FIRST, 0),
  { ...start(COPY, 0), role: 'copy' },
];
const END: readonly Effect[] = [
  { kind: 'stop', key: effectKey('stop'), attempt: FIRST, why: 'preempted', reason: '', to: KEPT },
  { kind: 'stop', key: effectKey(`superseded/stop/${COPY}`), attempt: COPY, why: 'superseded', reason: '' },
  { kind: 'release', key: effectKey('release'), instance: IDLE, reason: '' },
  start(SECOND, 1),
];

/** What befalls a process: the acting one in each of the two plans, and the observing one throughout. */
type Fate = (call: number) => AtCall;
const spared: Fate =
  () =>
  ({ perform }) =>
    perform();

/** What was seen of a whole story. */
interface Story {
  readonly outcomes: ReadonlyMap<EffectKey, EffectOutcome>;
  readonly observed: readonly Observation[];
  readonly instances: Awaited<ReturnType<AwsWorld['instances']>>;
  readonly tasks: readonly (readonly string[])[];
  /** Calls of each process that was met by its fate, as far as it came. */
  readonly calls: number;
}

/**
 * Begins and ends a story in which the `at`-th call of each process meets a fate; what comes after it is repeated until
 * it is done.
 */
async function story(fate: Fate, at: number, knobs: KnobSettings = {}): Promise<Story> {
  const observing = new Faults(fate(at), 'all');
  let observer: Process | null = null;
  const world = await AwsWorld.begin({ knobs }, async (event, on) => {
    observer ??= on.process(observing);
    try {
      await observer.observe(event);
    } catch (error) {
      // The event comes again, to another process.
      if (observing.isDead) observer = on.process();
      throw error;
    }
  });
  try {
    const calm = world.process();
    const outcomes = new Map<EffectKey, EffectOutcome>();
    const counts: number[] = [];
    const plan = async (name: string, effects: readonly Effect[], more: readonly Change[]): Promise<void> => {
      const records = effects.map((effect) => ({
        key: effect.key,
        plan: planId(name),
        atMs: world.double.now(),
        effect,
        outcome: null,
      }));
      const token = await calm.store.takeLease(name);
      await calm.store.commit(token, [...more, ...records.map((value): Change => ({ put: 'effect', value }))]);
      const faults = new Faults(fate(at), 'all');
      let process = world.process(faults);
      const keys = effects.map((e) => e.key);
      // As the state machine does, and the cycles after it.
      await until(`an outcome of ${name}`, async () => {
        try {
          for (const [key, outcome] of await process.act(keys)) outcomes.set(key, outcome);
        } catch (error) {
          // What passes is tried again, by the state machine's rule; a defect is not.
          const passes = error instanceof EbbError && error.code === 'aws.unavailable';
          if (!faults.isDead && !passes) throw error;
        }
        if (faults.isDead) process = world.process();
        return keys.every((key) => (outcomes.get(key)?.status ?? 'failed') !== 'failed');
      });
      counts.push(faults.calls.length);
    };
    const observed = (): Promise<readonly Observation[]> => calm.fleet.observe(new Map());
    const has = (kind: Observation['kind'], of: string) => async (): Promise<boolean> => {
      await calm.sweep();
      return (await observed()).some((o) => o.kind === kind && ('attempt' in o ? o.attempt : o.instance) === of);
    };
    await calm.store.submit([{ job: theJob, idempotency: null }]);
    const hosts = [HOST, IDLE, NONE, KEPT, OVER].map((id) => instance(id, { state: 'requested', launchedMs: null }));
    await plan('begin', BEGIN, [
      { put: 'job', value: theJob },
      ...hosts.map((value): Change => ({ put: 'instance', value })),
      ...ATTEMPTS.map((value): Change => ({ put: 'attempt', value })),
      ...[2, 1].map((attempts, index): Change => ({ put: 'task', value: task('j1', index, { attempts }) })),
    ]);
    const [began, over] = [has('attempt-started', FIRST), has('attempt-ended', FIRST)];
    await until('the first task', async () => (await began()) || (await over()));
    const [copyBegan, copyOver] = [has('attempt-started', COPY), has('attempt-ended', COPY)];
    await until('its copy', async () => (await copyBegan()) || (await copyOver()));
    await until('the idle instance', has('instance-ready', IDLE));
    await until('the reserved instance', has('instance-ready', KEPT));
    await plan('end', END, []);
    await until('the end of the first task', has('attempt-ended', FIRST));
    await until('the end of its copy', copyOver);
    await until('the end of the second task', has('attempt-ended', SECOND));
    await until('the end of the idle instance', has('instance-ended', IDLE));
    counts.push(observing.calls.length);
    return {
      outcomes,
      observed: await observed(),
      instances: await world.instances(),
      tasks: [FIRST, COPY, SECOND].map((id) => world.tasks(id)),
      calls: Math.max(...counts),
    };
  } finally {
    await world.close();
  }
}

async function until(what: string, done: () => Promise<boolean>): Promise<void> {
  const patience = performance.now() + WITHIN_MS;
  while (!(await done())) {
    if (performance.now() > patience) throw new Error(`no ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

/** Everything that was intended happened, and happened once. */
function expectOnce({ outcomes, observed, instances, tasks }: Story): void {
  expect(instances.get(HOST)).toMatchObject([{ state: 'running' }]);
  expect(instances.get(IDLE)).toMatchObject([{ state: 'terminated' }]);
  expect(instances.get(NONE)).toBeUndefined();
  expect(instances.get(KEPT)).toMatchObject([{ state: 'running' }]);
  expect(instances.get(OVER)).toBeUndefined();
  expect(tasks.map((arns) => arns.length)).toEqual([1, 1, 1]);
  const of = new Map([...outcomes].map(([key, o]) => [key, o.status === 'refused' ? o.why : o.status]));
  const lacking = [`begin/launch/${EMPTY}/0`, `begin/launch/${RESERVED}/1`];
  for (const { key } of [...BEGIN, ...END]) {
    expect([key, of.get(key)]).toEqual([key, lacking.includes(key) ? 'insufficient-capacity' : 'done']);
  }
  const told = (kind: Observation['kind']) =>
    observed.flatMap((o) => (o.kind === kind ? ['attempt' in o ? o.attempt : o.instance] : [])).sort();
  expect(told('instance-launched')).toEqual([HOST, IDLE, KEPT]);
  expect(told('instance-ready')).toEqual([HOST, IDLE, KEPT]);
  expect(told('instance-ended')).toEqual([IDLE]);
  expect(told('attempt-started')).toEqual([FIRST, COPY, SECOND]);
  expect(told('attempt-ended')).toEqual([FIRST, COPY, SECOND]);
  const ends = observed.flatMap((o) => (o.kind === 'attempt-ended' ? [[o.attempt, o.stopped, o.exitCode]] : []));
  expect(ends).toEqual(
    expect.arrayContaining([
      [FIRST, 'preempted', null],
      [COPY, 'superseded', null],
      [SECOND, null, 0],
    ]),
  );
  for (const [, own] of Map.groupBy(observed, (o) => o.instance)) {
    expect(own.map((o) => o.sequence)).toEqual(own.map((_, n) => n + 1));
  }
}

async function inParallel<T>(list: readonly T[], work: (value: T) => Promise<void>): Promise<void> {
  const queue = [...list];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

describe('acting on AWS and observing it', () => {
  it('does everything once where nothing goes wrong', async () => {
    const told = await story(spared, 0);
    expectOnce(told);
    expect(told.calls).toBeGreaterThan(20);
  }, 60_000);

  const dies: Fate =
    (at) =>
    async ({ ordinal, perform, die }) => {
      const answer = await perform();
      return ordinal === at ? die() : answer;
    };
  const losesAnswer: Fate =
    (at) =>
    async ({ ordinal, perform }) => {
      const answer = await perform();
      if (ordinal === at) throw brokenConnection();
      return answer;
    };

  it.each<[string, Fate, number]>([
    ['dies when it has made a call', dies, 1],
    // Less happens than at a death, so not all are tried.
    ['loses the answer of a call', losesAnswer, 3],
  ])(
    'does everything once though each process %s, whichever it is',
    async (_, fate, stride) => {
      const { calls } = await story(spared, 0);
      const points = Array.from({ length: Math.ceil(calls / stride) }, (__, n) => 1 + n * stride);
      await inParallel(points, async (at) => {
        try {
          expectOnce(await story(fate, at));
        } catch (error) {
          throw new Error(`at call ${at} of ${calls}: ${String(error)}`, { cause: error });
        }
      });
    },
    600_000,
  );

  const cut = (action: string): NonNullable<KnobSettings['faults']>[number] => ({
    action,
    when: 'after',
    code: null,
    // As often as one call is tried: what was done is found out by asking again later.
    times: 3,
  });
  it.each<[string, KnobSettings]>([
    [
      'connections break',
      { faults: ['CreateFleet', 'RunInstances', 'RunTask', 'StopTask', 'TerminateInstances'].map(cut) },
    ],
    ['AWS fails', { faults: [{ action: '*', code: 'InternalError', times: 12 }] }],
    ['calls are throttled', { throttle: { '*': { ratePerS: 12, burst: 2 } } }],
    ['events come twice and in any order', { events: { duplicate: 0.5, reorderWindow: 4 } }],
    ['events are lost', { events: { lose: 0.5 } }],
    [
      'all of it happens',
      {
        faults: [cut('CreateFleet'), cut('RunInstances'), cut('RunTask')],
        throttle: { '*': { ratePerS: 20, burst: 4 } },
        events: { duplicate: 0.3, lose: 0.2, reorderWindow: 3 },
      },
    ],
  ])(
    'does everything once though %s',
    async (_, knobs) => {
      expectOnce(await story(spared, 0, knobs));
    },
    90_000,
  );
});
