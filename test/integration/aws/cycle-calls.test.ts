/**
 * What the functions of a cycle ask of AWS, each a process of its own that has run before, as in a deployment: it must
 * not grow with what runs, only with what changes. On the doubles, which count units of DynamoDB as the service does.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { provideDeployment } from '../../../lib/drivers/aws/compose/deployment.ts';
import type { Swept } from '../../../lib/drivers/aws/fleet/sweep.ts';
import { ENDING_AFTER_S, RunningWorld, type Tally } from '../../support/running-world.ts';

/** Tasks that end while cycles are counted, and as many that begin. */
const CHANGES = 8;
const CYCLES = 3;
const PERIOD_S = 30;

/** What a plan says of all jobs, also of those that go on: at most so much lies in the table, more in the bucket. */
const EXPLAINED_KB = 16;

type Tallies = ReadonlyMap<string, Tally>;

interface Counted {
  readonly running: number;
  readonly calm: Tallies;
  /** With CHANGES tasks that end, and CHANGES that begin. */
  readonly changed: Tallies;
  readonly executions: readonly [calm: number, changed: number];
  readonly sweep: Tallies;
  /** Null where so much runs that the test would be at it for long. */
  readonly swept: Swept | null;
}

async function cyclesWith(running: number): Promise<Counted> {
  const world = await RunningWorld.of({ running, ending: CHANGES });
  const cycles = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      await world.pass(PERIOD_S);
      await world.cycle();
    }
  };
  const changes = async (endS: number): Promise<void> => {
    await world.pass(endS - world.ageS);
    await cycles(1);
    await world.submit(`at-${endS}`, CHANGES);
    await cycles(CYCLES - 1);
  };
  const during = async (act: () => Promise<void>): Promise<readonly [Tallies, number]> => {
    world.tallies.clear();
    const before = world.executions;
    await act();
    return [new Map(world.tallies), world.executions - before];
  };
  try {
    await world.compact();
    await cycles(1);
    await changes(ENDING_AFTER_S[0]);
    const [calm, calmOnes] = await during(() => cycles(CYCLES));
    expect(await world.running()).toEqual([running, running]);
    const [changed, changedOnes] = await during(() => changes(ENDING_AFTER_S[1]));
    expect(await world.running()).toEqual([running, running]);
    return { running, calm, changed, executions: [calmOnes, changedOnes], ...(await sweptIn(world, running)) };
  } finally {
    provideDeployment(null);
    await world.close();
  }
}

async function sweptIn(world: RunningWorld, running: number): Promise<Pick<Counted, 'sweep' | 'swept'>> {
  world.tallies.clear();
  const swept = running > 1000 ? null : await world.sweep();
  return { sweep: new Map(world.tallies), swept };
}

/** Calls by function and name, but for those of the store's buckets and of whoever only watches. */
const callsOf = (tallies: Tallies, isWanted: (call: string) => boolean): Record<string, number> =>
  Object.fromEntries(
    [...tallies]
      .flatMap(([call, { calls }]) => (isCounted(call) && isWanted(call) ? [[call, calls] as const] : []))
      .sort(),
  );
const isCounted = (call: string): boolean => !call.startsWith('outside ');
const isOfS3 = (call: string): boolean => call.includes(' s3 ');
const unitsOf = (tallies: Tallies, isWanted: (call: string) => boolean): number =>
  [...tallies].reduce((sum, [call, { units }]) => sum + (isCounted(call) && isWanted(call) ? units : 0), 0);
const isRead = (call: string): boolean => / dynamodb (BatchGetItem|Query)$/.test(call);
const isWrite = (call: string): boolean => call.includes(' dynamodb ') && !isRead(call);
const total = (calls: Record<string, number>): number => Object.values(calls).reduce((sum, n) => sum + n, 0);

describe('with 10,000 running tasks as with 100', () => {
  let few: Counted;
  let many: Counted;
  beforeAll(async () => {
    // Metrics and logs go where CloudWatch reads them.
    jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    [few, many] = [await cyclesWith(100), await cyclesWith(10_000)];
    jest.restoreAllMocks();
    if (process.env['EBB_SHOW_METER'] === '1') process.stderr.write(shown([few, many]));
  }, 240_000);
  afterAll(() => {
    jest.restoreAllMocks();
  });

  it('a cycle in which nothing changes makes the same calls', () => {
    expect(total(callsOf(few.calm, () => true))).toBeGreaterThan(10 * CYCLES);
    expect(callsOf(many.calm, (call) => !isOfS3(call))).toEqual(callsOf(few.calm, (call) => !isOfS3(call)));
  });

  it('so does one in which as many tasks end and begin', () => {
    const calls = callsOf(few.changed, (call) => !isOfS3(call));
    expect(calls['act ecs RunTask']).toBe(CHANGES);
    expect(calls).toHaveProperty(['observe logs GetLogEvents']);
    expect(callsOf(many.changed, (call) => !isOfS3(call))).toEqual(calls);
  });

  it.each(['calm', 'changed'] as const)('%s ones consume as much of DynamoDB', (which) => {
    expect(unitsOf(many[which], isWrite)).toBeLessThan(unitsOf(few[which], isWrite) + EXPLAINED_KB * CYCLES);
    // Each step reads what the one before has written.
    expect(unitsOf(many[which], isRead)).toBeLessThan(unitsOf(few[which], isRead) + EXPLAINED_KB * CYCLES);
  });

  it.each(['calm', 'changed'] as const)('%s ones hand on by the bucket what is large, each thing once', (which) => {
    const executions = many.executions[which === 'calm' ? 0 : 1];
    const calls = callsOf(many[which], isOfS3);
    // What was seen is read by three steps; forecasts, decision, and outcomes by one each.
    expect(total(calls)).toBeLessThanOrEqual(12 * executions);
  });

  it('the sweep, which compares all there is, asks of a hundred tasks at once, and finds what everybody knows', () => {
    expect(callsOf(few.sweep, (call) => / (ec2|ecs) /.test(call))).toEqual({
      'sweep ec2 DescribeInstances': 1,
      'sweep ecs DescribeTasks': few.running / 100,
    });
    expect(few.swept).toMatchObject({ leaked: [], repaired: [], stuck: [], failed: [], defect: null });
  });
});

function shown(all: readonly Counted[]): string {
  const lines = all.flatMap(({ running, executions, ...phases }) =>
    (['calm', 'changed', 'sweep'] as const).flatMap((phase) => [
      `${running} ${phase} ${JSON.stringify(executions)}`,
      ...[...phases[phase]]
        .filter(([call]) => isCounted(call))
        .sort()
        .map(([call, { calls, units }]) => `  ${call}: ${calls} (${units})`),
    ]),
  );
  return `${lines.join('\n')}\n`;
}
