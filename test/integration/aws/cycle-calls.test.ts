/**
 * What one cycle asks of the store, each step in a process of its own that has run before, as in a deployment: it must not
 * grow with what runs, only with what changes. On the double of DynamoDB, which counts units as the service does.
 */
import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { DynamoStore } from '../../../lib/aws/store/dynamo-store.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { mib, milliCpu } from '../../../lib/kernel/units.ts';
import { ObjectsDouble } from '../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { EngineBench, work } from '../../support/engine-bench.ts';
import { after, mixedTrace } from '../../support/mixed-workload.ts';
import type { Step } from '../../support/stepped-engine.ts';

/** From here on that market takes nothing back. */
const CALM_MS = after(3600);
/** Tasks that end while cycles are counted; all others go on. */
const ENDING = 8;
/** So many commits of nothing, and what is in the log is carried over to the items. */
const COMMITS = 110;
const TINY = { cpu: milliCpu(20), memory: mib(8), gpus: 0, disk: mib(0) };

interface Counted {
  readonly running: number;
  readonly cycles: number;
  readonly callsPerCycle: number;
  readonly readUnitsPerCycle: number;
  readonly writeUnitsPerCycle: number;
}

async function cyclesWith(running: number): Promise<Counted> {
  const table = new DynamoDouble();
  const place = { table: randomUUID(), bucket: 'bucket', s3: new ObjectsDouble().client() };
  const used = { calls: 0, read: 0, written: 0 };
  const stores = new Map<string, DynamoStore>();
  const storeOf = (name: Step | 'outside'): DynamoStore => {
    const known = stores.get(name);
    if (known !== undefined) return known;
    const store = new DynamoStore({
      ...place,
      dynamodb: table.client(),
      meter: ({ operation, units }) => {
        if (name === 'outside') return;
        used.calls += 1;
        if (operation === 'BatchGetItem' || operation === 'Query') used.read += units;
        else used.written += units;
      },
    });
    stores.set(name, store);
    return store;
  };
  const bench = new EngineBench({
    trace: mixedTrace,
    startMs: CALM_MS,
    vcpus: 512,
    stepped: true,
    store: storeOf('outside'),
    storeOf,
  });
  const stages = [
    stage({ name: 'ending', tasks: ENDING, resources: TINY, env: work(1200) }),
    stage({ name: 'lasting', tasks: running, resources: TINY, env: work(40_000) }),
  ];
  await bench.submit([job({ name: 'big', submittedMs: CALM_MS, spec: spec({ name: 'big', deadline: null, stages }) })]);
  const until = async (withinS: number): Promise<void> => {
    await expect(bench.drive({ withinS })).rejects.toThrow('not done within');
  };
  await until(900);
  // What the counted cycles leave in the log counts, and what those before them left does not.
  await carryOver(storeOf('outside'));
  const begun = (await bench.job(jobId('big'))).stages.map((s) => s.running);
  const before = { ...used, cycles: bench.cycles.length };
  await until(1200);
  await carryOver(storeOf('confirm'));
  const ended = (await bench.job(jobId('big'))).stages.map((s) => [s.running, s.succeeded]);
  expect([begun, ended]).toEqual([
    [ENDING, running],
    [
      [0, ENDING],
      [running, 0],
    ],
  ]);
  const cycles = bench.cycles.length - before.cycles;
  return {
    running,
    cycles,
    callsPerCycle: (used.calls - before.calls - COMMITS) / cycles,
    readUnitsPerCycle: (used.read - before.read) / cycles,
    writeUnitsPerCycle: (used.written - before.written - COMMITS) / cycles,
  };
}

async function carryOver(store: DynamoStore): Promise<void> {
  const token = await store.takeLease('test');
  for (let n = 0; n < COMMITS; n++) await store.commit(token, []);
}

it('a cycle asks as much of the store with 10,000 running tasks as with 100', async () => {
  const [few, many] = [await cyclesWith(100), await cyclesWith(10_000)];
  if (process.env['EBB_SHOW_METER'] === '1') process.stderr.write(`${JSON.stringify([few, many])}\n`);
  expect(few.cycles).toBeGreaterThan(5);
  expect(many.callsPerCycle).toBeLessThan(few.callsPerCycle + 2);
  expect(many.readUnitsPerCycle).toBeLessThan(few.readUnitsPerCycle + 8);
  expect(many.writeUnitsPerCycle).toBeLessThan(few.writeUnitsPerCycle + 8);
}, 240_000);
