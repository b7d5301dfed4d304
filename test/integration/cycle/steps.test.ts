import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { raw } from '../../../lib/kernel/units.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { deterministic, type Solver } from '../../../lib/policy/solver.ts';
import { Crashes, type CrashPoint } from '../../support/crashing.ts';
import { discrepancies, EngineBench } from '../../support/engine-bench.ts';
import { MIXED_ENDS, mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

/**
 * The cycle in steps, each with an empty memory of its own and serialised data between them, as Step Functions runs it:
 * the same decisions as local mode's engine, and nothing lost or doubled when a step dies.
 */
let highs: Solver;
beforeAll(() => {
  highs = highsSolver();
});
afterAll(() => highs.close());

const MAX_NODES = 200;
const VCPUS = 12;
/**
 * Every call is tried on the whole engine (crash-points.test.ts), which is made of the same parts; here a prime number
 * apart.
 */
const STRIDE = 79;

async function run(of: {
  readonly stepped: boolean;
  readonly solver?: Solver;
  readonly points?: readonly CrashPoint[];
}) {
  const bench = new EngineBench({
    trace: mixedTrace,
    startMs: START_MS,
    stepped: of.stepped,
    config: { refundRule: 'none', solverGap: 0 },
    vcpus: VCPUS,
    ...(of.solver === undefined ? {} : { preset: 'ebbtide', solver: deterministic(of.solver, MAX_NODES) }),
  });
  const crashes = new Crashes(of.points ?? [], bench.clock);
  await bench.submit(mixedJobs());
  await bench.drive({ deeds: mixedDeeds(), through: () => crashes.between() });
  return { bench, crashes };
}

async function eventsOf(bench: EngineBench): Promise<string[]> {
  return (await bench.store.events(0, 10_000)).map(
    (e) => `${raw(e.atMs)} ${e.type} ${e.text} ${JSON.stringify(e.data)}`,
  );
}

async function whatIsWrong(bench: EngineBench): Promise<string[]> {
  const wrong = await discrepancies(bench);
  for (const job of await bench.jobs()) {
    const wanted = new Map<string, string>(Object.entries(MIXED_ENDS)).get(job.id);
    if (job.state !== wanted) wrong.push(`${job.id} is ${job.state}, not ${wanted}: ${job.stateReason}`);
  }
  return wrong;
}

describe('the cycle in steps', () => {
  it('does what the engine does, event by event, cent by cent', async () => {
    const [whole, stepped] = [
      (await run({ stepped: false, solver: highs })).bench,
      (await run({ stepped: true, solver: highs })).bench,
    ];
    const events = await eventsOf(whole);
    expect(events.length).toBeGreaterThan(50);
    expect(events.some((e) => e.includes('interrupted'))).toBe(true);
    expect(await eventsOf(stepped)).toEqual(events);
    expect(await stepped.store.costs('job')).toEqual(await whole.store.costs('job'));
    const explained = await Promise.all((await whole.jobs()).map((j) => whole.store.explanation(j.id)));
    expect(await Promise.all((await stepped.jobs()).map((j) => stepped.store.explanation(j.id)))).toEqual(explained);
  });

  it.each(['before', 'after'] as const)(
    'a step dies %s any call, and the next cycle goes on',
    async (when) => {
      const wrong: string[] = [];
      let call = 1;
      for (; ; call += STRIDE) {
        const { bench, crashes } = await run({ stepped: true, points: [{ call, when }] });
        for (const w of await whatIsWrong(bench)) wrong.push(`call ${call}, ${crashes.at.join()}: ${w}`);
        if (crashes.at.length === 0) break;
      }
      expect(call).toBeGreaterThan(100);
      expect(wrong).toEqual([]);
    },
    120_000,
  );
});
