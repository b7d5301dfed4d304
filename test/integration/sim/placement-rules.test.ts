import { describe, expect, it } from '@jest/globals';
import type { PlacementRules } from '../../../lib/domain/job.ts';
import { epochMs, milliCpu, raw, seconds } from '../../../lib/kernel/units.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { pool, resources } from '../../support/builders.ts';
import { SAVES_SLOWLY, START_MS } from '../../support/mixed-workload.ts';
import { runOf, zones, type Run, type Setting } from '../../support/observed-run.ts';
import { brokenRules } from '../../support/rule-checker.ts';
import { simulatedJob } from '../../support/simulated.ts';

const ZONES = ['a', 'b', 'c'];
const trace = zones(...ZONES.map((name, i) => ({ name, usdPerHour: 0.05 + 0.01 * i })));

/** Machines have room for four of its tasks. */
function job(
  key: string,
  tasks: number,
  placement: PlacementRules,
  of: {
    readonly app?: string;
    readonly owner?: string;
    readonly gang?: boolean;
    readonly atS?: number;
    readonly runS?: number;
  } = {},
): WorkloadJob {
  const { app, owner, gang = false, atS = 0, runS = 3600 } = of;
  const one = simulatedJob(key, atS, Array.from<number>({ length: tasks }).fill(runS), {
    ...(owner === undefined ? {} : { owner }),
    stage: { gang, resources: resources(1), expectedRuntimeS: seconds(runS), placement },
  });
  return { ...one, spec: { ...one.spec, labels: app === undefined ? {} : { app } } };
}

interface On {
  readonly preset?: string;
  readonly market?: MarketTrace;
  readonly open?: readonly string[];
  readonly config?: NonNullable<Setting['config']>;
}

async function run(
  jobs: readonly WorkloadJob[],
  { preset = 'greedy', market = trace, open = ZONES, config = {} }: On = {},
): Promise<Run> {
  const { stages, asks } = presetNamed(preset);
  const done = await runOf({ jobs, trace: market, config }, { name: preset, stages, asks });
  const specs = new Map(jobs.map((j) => [j.spec.name, j.spec]));
  expect(brokenRules({ run: done, specs, zones: open })).toEqual([]);
  return done;
}

const on = ({ stays }: Run, what: 'instance' | 'zone', of: string): readonly number[] =>
  [
    ...Map.groupBy(
      stays.filter((s) => s.job === of),
      (s) => s[what],
    ).values(),
  ]
    .map((s) => s.length)
    .sort();

describe.each(['greedy', 'stratus', 'fleet', 'no-packing'])('placement rules under %s', (preset) => {
  it('keep tasks on instances of their own, and buy one for each and no more', async () => {
    const done = await run([job('own', 6, { maxPerInstance: 1 })], { preset });
    expect(on(done, 'instance', 'own')).toEqual([1, 1, 1, 1, 1, 1]);
    expect(done.bought).toHaveLength(6);
  });

  it('spread tasks evenly over zones', async () => {
    const done = await run([job('wide', 7, { spread: [{ over: 'zone', maxSkew: 1 }] })], { preset });
    expect(on(done, 'zone', 'wide')).toEqual([2, 2, 3]);
  });
});

/** In each zone a type with room for one task, and one with room for four that is cheaper for each of four. */
function twoSizes(): MarketTrace {
  const startMs = raw(START_MS) - 86_400_000;
  const markets = ZONES.flatMap((zone) =>
    (
      [
        ['c5.small', 1, 0.06],
        ['c5.xlarge', 4, 0.17],
      ] as const
    ).map(([name, cpu, usd]): SpotMarket => ({
      type: { ...pool().type, name, capacity: { ...pool().type.capacity, cpu: milliCpu(1000 * cpu) } },
      zone,
      onDemandUsdPerHour: usd,
      prices: { atMs: Float64Array.of(startMs), usdPerHour: Float64Array.of(usd / 3) },
      availability: { atMs: Float64Array.of(startMs), available: Uint8Array.of(1) },
    })),
  );
  return traceOf({ name: 'two sizes', startMs: epochMs(startMs), endMs: epochMs(startMs + 3 * 86_400_000) }, markets);
}

describe('placement rules', () => {
  it.each(['on-demand', 'greedy', 'stratus'])('pay for no room that they let nobody use, under %s', async (preset) => {
    const alone = await run([job('own', 6, { maxPerInstance: 1 })], { preset, market: twoSizes() });
    expect(alone.bought.map((b) => b.type)).toEqual(Array.from({ length: 6 }, () => 'c5.small'));
    const together = await run([job('any', 8, {})], { preset, market: twoSizes() });
    expect(together.bought.map((b) => b.type)).toEqual(['c5.xlarge', 'c5.xlarge']);
  });

  it('put two tasks on each instance, beside tasks that may be anywhere', async () => {
    const done = await run([job('pairs', 6, { maxPerInstance: 2 }), job('others', 6, {})]);
    expect(on(done, 'instance', 'pairs')).toEqual([2, 2, 2]);
    expect(done.bought.length).toBeLessThanOrEqual(5);
  });

  it('keep labels apart, whoever asks for it', async () => {
    const apart: PlacementRules = { antiAffinity: [{ over: 'instance', labels: { app: 'db' } }] };
    const done = await run([job('db', 2, {}, { app: 'db' }), job('web', 2, apart, { app: 'web', atS: 60 })]);
    const where = (of: string) => new Set(done.stays.filter((s) => s.job === of).map((s) => s.instance));
    expect([...where('web')].filter((i) => where('db').has(i))).toEqual([]);
    const later = await run([job('web', 2, apart, { app: 'web' }), job('db', 2, {}, { app: 'db', atS: 600 })]);
    expect(later.stays).toHaveLength(4);
  });

  it('do not concern other owners', async () => {
    const apart: PlacementRules = { antiAffinity: [{ over: 'zone', labels: { app: 'db' } }] };
    const done = await run([
      job('web', 1, apart, { app: 'web', owner: 'ann' }),
      job('db', 2, {}, { app: 'db', owner: 'bob', atS: 900 }),
    ]);
    expect(new Set(done.stays.map((s) => s.zone)).size).toBe(1);
  });

  it('bring tasks to where the labels are, and wait for them', async () => {
    const near: PlacementRules = { affinity: [{ over: 'zone', labels: { app: 'db' } }] };
    const zoned = job('db', 1, {}, { app: 'db', atS: 900, runS: 7200 });
    const [stage] = zoned.spec.stages;
    const db = {
      ...zoned,
      spec: { ...zoned.spec, stages: [{ ...stage, constraints: { zones: ['c'] } }] },
    } as WorkloadJob;
    const done = await run([job('web', 3, near), db]);
    const web = done.stays.filter((s) => s.job === 'web');
    expect(new Set(web.map((s) => s.zone))).toEqual(new Set(['c']));
    expect(Math.min(...web.map((s) => s.fromS))).toBeGreaterThan(900);
  });

  it('keep a gang in one zone, and on one instance where they say so', async () => {
    const zone: PlacementRules = { affinity: [{ over: 'zone', labels: { app: 'mpi' } }] };
    const done = await run([job('mpi', 6, { ...zone, maxPerInstance: 2 }, { app: 'mpi', gang: true })]);
    expect(new Set(done.stays.map((s) => s.zone)).size).toBe(1);
    expect(on(done, 'instance', 'mpi')).toEqual([2, 2, 2]);
    const instance: PlacementRules = { affinity: [{ over: 'instance', labels: { app: 'mpi' } }] };
    const one = await run([job('mpi', 4, instance, { app: 'mpi', gang: true })]);
    expect(on(one, 'instance', 'mpi')).toEqual([4]);
    expect(one.bought).toHaveLength(1);
  });

  it('tell labels apart whatever their values have in them', async () => {
    const apart: PlacementRules = { antiAffinity: [{ over: 'instance', labels: { app: 'a, b=c' } }] };
    const done = await run([job('own', 2, apart, { app: 'a, b=c' }), job('free', 2, {}, { app: 'a', atS: 900 })]);
    expect(on(done, 'instance', 'own')).toEqual([1, 1]);
    expect(on(done, 'instance', 'free')).toEqual([2]);
  });

  it.each<PlacementRules>([
    { spread: [{ over: 'zone', maxSkew: 1 }] },
    { maxPerInstance: 1 },
    { antiAffinity: [{ over: 'zone', labels: { app: 'due' } }] },
  ])('let work leave spot in time for its deadline: %j', async (placement) => {
    // It runs for twice as long as was said, so that its last safe moment comes while it is on spot.
    const slow = simulatedJob('due', 0, [21_600], {
      deadlineS: 28_800,
      stage: { resources: resources(4), checkpoint: SAVES_SLOWLY, expectedRuntimeS: seconds(10_800), placement },
    });
    const due = { ...slow, spec: { ...slow.spec, labels: { app: 'due' } } };
    const done = await run([due], { market: zones({}), open: ['a'], config: { hazardPriorPerHour: 0.05 } });
    expect(done.stays.map((s) => `${s.option} ${s.end}`)).toEqual(['spot moved', 'on-demand succeeded']);
  });

  it('fill the zones again as tasks end', async () => {
    const done = await run([
      job('one', 9, { antiAffinity: [{ over: 'zone', labels: { app: 'one' } }] }, { app: 'one', runS: 900 }),
    ]);
    expect(on(done, 'zone', 'one')).toEqual([3, 3, 3]);
    expect(done.bought.length).toBeLessThanOrEqual(6);
  });
});
