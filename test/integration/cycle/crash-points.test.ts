import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../lib/kernel/random.ts';
import { Crashes, type CrashPoint } from '../../support/crashing.ts';
import { discrepancies, EngineBench } from '../../support/engine-bench.ts';
import { MIXED_ENDS, mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

/** Who dies after one of these has left what there is as it was before. Any other call does something. */
const ASKING = new Set([
  ...['memory', 'loadActive', 'changedByOthers', 'attemptsOn', 'findJobs'].map((m) => `store.${m}`),
  ...['list', 'observe', 'bill'].map((m) => `fleet.${m}`),
]);

/**
 * The engine dies in every state in which its calls to the store and the fleet leave what there is, and a new one goes
 * on with it. The points are counted in the running code: a call added tomorrow is a crash point tomorrow.
 */
async function run(points: readonly CrashPoint[]) {
  const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, config: { refundRule: 'none' } });
  const crashes = new Crashes(points, bench.clock);
  await bench.submit(mixedJobs());
  await bench.drive({ deeds: mixedDeeds(), through: () => crashes.between() });
  return { bench, crashes };
}

/**
 * One for each such state: after every call that does something, and before the first call of each instant. Before any
 * other call it is as after the one that precedes it.
 */
const deaths = ({ calls, madeMs }: Crashes): CrashPoint[] =>
  calls.flatMap((method, i) => [
    ...(madeMs[i] === madeMs[i - 1] ? [] : [{ call: i + 1, when: 'before' } as const]),
    ...(ASKING.has(method) ? [] : [{ call: i + 1, when: 'after' } as const]),
  ]);

async function whatIsWrong({ bench }: Awaited<ReturnType<typeof run>>): Promise<string[]> {
  const wrong = await discrepancies(bench);
  for (const [id, state] of Object.entries(MIXED_ENDS)) {
    const job = (await bench.jobs()).find((j) => j.id === id);
    if (job?.state !== state) wrong.push(`${id} is ${job?.state}, not ${state}: ${job?.stateReason}`);
    if (state === 'succeeded' && job !== undefined) {
      const tasks = job.stages.flatMap((s) => Array.from({ length: s.tasks }, (_, i) => `${id}/${s.name}/${i}`));
      const done = bench.completions();
      for (const task of tasks) if (done.get(task) !== 1) wrong.push(`${task} completed ${done.get(task) ?? 0} times`);
    }
  }
  return wrong;
}

describe('without a crash', () => {
  let calm: Awaited<ReturnType<typeof run>>;
  beforeAll(async () => {
    calm = await run([]);
  });

  it('all jobs come to their end and every instance is accounted for', async () => {
    expect(await whatIsWrong(calm)).toEqual([]);
    expect(calm.bench.engines).toBe(1);
  });

  it('the workload meets what an engine can meet', async () => {
    const outcomes = new Set<string>();
    for (const job of await calm.bench.jobs())
      for (const a of await calm.bench.store.attempts(job.id)) outcomes.add(String(a.outcome));
    expect([...outcomes].sort()).toEqual(['cancelled', 'failed', 'interrupted', 'moved', 'succeeded']);
    expect(new Set(calm.crashes.calls)).toEqual(
      new Set([
        ...['takeLease', 'memory', 'loadActive', 'changedByOthers', 'commit', 'attemptsOn', 'findJobs'].map(
          (m) => `store.${m}`,
        ),
        ...['list', 'observe', 'launch', 'start', 'stop', 'release', 'bill'].map((m) => `fleet.${m}`),
      ]),
    );
  });

  it('the check itself notices what is to be noticed', async () => {
    const { bench } = await run([]);
    const end = [...bench.reported.values()].find((o) => o.kind === 'attempt-ended' && o.exitCode === 0);
    if (end === undefined) throw new Error('nothing succeeded');
    bench.reported.set('again', end);
    const token = await bench.store.takeLease('test');
    await bench.store.commit(token, [{ put: 'ledger', instance: end.instance, value: [] }]);
    const found = (await whatIsWrong({ ...calm, bench })).join('\n');
    expect(found).toContain('completed 2 times');
    expect(found).toContain('its ledger says 0');
    expect(found).toMatch(/bills of [\d.]+, a ledger of/);
  });
});

describe('the engine dies', () => {
  it('once, in every state that there is between its calls', async () => {
    const points = deaths((await run([])).crashes);
    const wrong: string[] = [];
    for (const point of points) {
      const result = await run([point]);
      expect([result.crashes.at.length, result.bench.engines]).toEqual([1, 2]);
      for (const w of await whatIsWrong(result)) wrong.push(`call ${point.call}, ${result.crashes.at.join()}: ${w}`);
    }
    expect(wrong).toEqual([]);
    expect(points.length).toBeGreaterThan(100);
  }, 180_000);

  it('before or after a call that only asks, and what follows is the same', async () => {
    const { calls } = (await run([])).crashes;
    for (const method of ASKING) {
      const call = calls.lastIndexOf(method) + 1;
      const died = async (when: CrashPoint['when']) => (await run([{ call, when }])).bench.store.events(0, 10_000);
      expect(await died('after')).toEqual(await died('before'));
    }
  });

  it('with half of its requests done', async () => {
    const { batches } = (await run([])).crashes;
    const wrong: string[] = [];
    for (const call of batches) {
      const result = await run([{ call, when: 'halfway' }]);
      expect(result.crashes.at).toHaveLength(1);
      for (const w of await whatIsWrong(result)) wrong.push(`call ${call}, ${result.crashes.at.join()}: ${w}`);
    }
    expect(wrong).toEqual([]);
    expect(batches.length).toBeGreaterThan(3);
  });

  it('again and again', async () => {
    const draw = randomStream(7, 'crash-points');
    const calls = (most: number): number => 1 + Math.floor(draw() * most);
    const when = (): CrashPoint['when'] => (draw() < 0.5 ? 'before' : 'after');
    const wrong: string[] = [];
    let deaths = 0;
    for (let n = 0; n < 60; n++) {
      // The second soon after the first: in the recovery itself as often as after it. The others anywhere.
      const points = [
        { call: calls(220), when: when() },
        { call: calls(20), when: when() },
        ...Array.from({ length: n % 4 }, () => ({ call: calls(40), when: when() })),
      ];
      const result = await run(points);
      deaths += result.crashes.at.length;
      for (const w of await whatIsWrong(result))
        wrong.push(`${JSON.stringify(points)} ${result.crashes.at.join()}: ${w}`);
    }
    expect(wrong).toEqual([]);
    expect(deaths).toBeGreaterThan(120);
  }, 120_000);
});
