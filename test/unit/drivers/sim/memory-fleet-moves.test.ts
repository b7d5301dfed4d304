import { describe, expect, it } from '@jest/globals';
import type { Observation } from '../../../../lib/domain/observation.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { MemoryFleet, type TaskScript } from '../../../../lib/drivers/sim/memory-fleet.ts';
import { Truth } from '../../../../lib/drivers/sim/truth.ts';
import { VirtualClock } from '../../../../lib/kernel/clock.ts';
import { attemptId, effectKey, instanceId, jobId, poolId } from '../../../../lib/kernel/ids.ts';
import { mib, milliCpu, plus, raw, seconds } from '../../../../lib/kernel/units.ts';
import { capacityOf } from '../../../../lib/market/capacity-truth.ts';
import type { StartRequest } from '../../../../lib/ports/fleet.ts';
import { after, mixedTrace, SAVES, START_MS } from '../../../support/mixed-workload.ts';

const [HERE, THERE] = [instanceId('i-here'), instanceId('i-there')];
const [FIRST, SECOND] = [attemptId('j.main.0.1'), attemptId('j.main.0.2')];
/** Zone a is warned 720 s after the start and gone two minutes later; nothing happens in zone b. */
const [TAKEN, CALM] = [poolId('c5.xlarge/a/spot'), poolId('c5.xlarge/b/spot')];
const config = schedulerConfig.parse({});

const request = (over: Partial<StartRequest> = {}): StartRequest => ({
  key: effectKey(`start/${over.attempt ?? FIRST}`),
  attempt: FIRST,
  instance: HERE,
  command: ['x'],
  env: {},
  workdir: '/',
  inputs: [],
  outputs: [],
  resources: { cpu: milliCpu(1000), memory: mib(4096), gpus: 0, disk: mib(0) },
  timeoutS: null,
  checkpoint: { ...SAVES, everyS: null },
  task: { job: 'j', stage: 'main', index: 0, number: 1 },
  ...over,
});

interface Bench {
  readonly fleet: MemoryFleet;
  readonly clock: VirtualClock;
  /** Time at which the first attempt began, s after the start. */
  readonly beganS: number;
  readonly to: (s: number) => Promise<readonly Observation[]>;
  readonly order: () => Promise<unknown>;
}

/** A task of `runtimeS` on an instance of `pool`, whose move takes `movesInS`. */
async function running(
  pool: typeof CALM,
  script: Partial<TaskScript>,
  over: Partial<StartRequest> = {},
): Promise<Bench> {
  const clock = new VirtualClock(START_MS);
  const fleet = new MemoryFleet({
    truth: capacityOf(mixedTrace, config),
    clock,
    script: (_, keptS) => ({
      runtimeS: seconds(5000 - raw(keptS)),
      exitCode: 0,
      checkpointEveryS: null,
      stopsInS: seconds(2),
      ...script,
    }),
  });
  const launch = (id: typeof HERE, of: typeof CALM) => ({
    key: effectKey(`launch/${id}`),
    instance: id,
    pool: of,
    bid: 'uncapped' as const,
  });
  await fleet.launch([launch(HERE, pool), launch(THERE, CALM)]);
  await fleet.start([request(over)]);
  const to = async (s: number): Promise<readonly Observation[]> => {
    await clock.advanceTo(after(s));
    return fleet.observe(new Map());
  };
  const began = (await to(200)).find((o) => o.kind === 'attempt-started');
  const stop = { key: effectKey('stop'), attempt: FIRST, instance: HERE, why: 'preempted' as const, to: THERE };
  return {
    fleet,
    clock,
    beganS: (raw(began!.atMs) - raw(START_MS)) / 1000,
    to,
    order: () => fleet.stop([stop]),
  };
}

const endIn = (seen: readonly Observation[], attempt = FIRST) =>
  seen.find((o) => o.kind === 'attempt-ended' && o.attempt === attempt) as
    | Extract<Observation, { kind: 'attempt-ended' }>
    | undefined;

describe('a stop for a move', () => {
  it('takes the time of the transfer, in which nothing is done, and keeps all that was done before', async () => {
    const { to, order, beganS, fleet } = await running(CALM, { movesInS: seconds(50) });
    await to(400);
    await order();
    expect(endIn(await to(449))).toBeUndefined();
    const end = endIn(await to(450));
    expect([raw(end!.atMs), end!.stopped]).toEqual([raw(after(450)), 'preempted']);
    expect(raw(end!.keptS)).toBeCloseTo(400 - beganS, 6);
    await fleet.start([request({ attempt: SECOND, instance: THERE, task: { ...request().task, number: 2 } })]);
    const done = endIn(await to(6000), SECOND);
    expect((raw(done!.atMs) - raw(after(450))) / 1000).toBeCloseTo(5000 - (400 - beganS), 6);
  });

  it('keeps a task from its end that comes meanwhile: it makes no progress', async () => {
    const { to, order, beganS } = await running(CALM, { runtimeS: seconds(300), movesInS: seconds(100) });
    await to(beganS + 290);
    await order();
    expect(endIn(await to(beganS + 389))).toBeUndefined();
    expect(endIn(await to(beganS + 391))).toMatchObject({ exitCode: null, stopped: 'preempted', keptS: 290 });
  });

  it('takes as long as any stop where that is longer, or where there is nothing to save', async () => {
    const short = await running(CALM, { stopsInS: seconds(9), movesInS: seconds(4) });
    await short.to(400);
    await short.order();
    expect(raw(endIn(await short.to(420))!.atMs)).toBe(raw(after(409)));
    const plain = await running(CALM, { movesInS: seconds(100) }, { checkpoint: null });
    await plain.to(400);
    await plain.order();
    expect(endIn(await plain.to(420))).toMatchObject({ stopped: 'preempted', keptS: 0, atMs: after(402) });
  });

  it('is finished within the notice of an interruption that comes meanwhile', async () => {
    const { to, order, beganS } = await running(TAKEN, { movesInS: seconds(100) });
    await to(690);
    await order();
    const end = endIn(await to(839));
    expect([raw(end!.atMs), end!.stopped]).toEqual([raw(after(790)), 'preempted']);
    expect(raw(end!.keptS)).toBeCloseTo(690 - beganS, 6);
  });

  it.each([
    ['nothing, where the program saves only when told to', null, 0],
    ['what the program had saved by itself', seconds(100), 500],
  ])('that is not finished when its instance goes keeps %s', async (_, checkpointEveryS, keptS) => {
    const { to, order, beganS } = await running(TAKEN, { checkpointEveryS, movesInS: seconds(200) });
    await to(beganS + 550);
    await order();
    const end = endIn(await to(900));
    expect([raw(end!.atMs), end!.stopped]).toEqual([raw(after(840)), 'interrupted']);
    expect(raw(end!.keptS)).toBe(keptS);
  });

  it('that is cut short by a lost instance keeps nothing of it either', async () => {
    const { to, order, fleet } = await running(CALM, { movesInS: seconds(50) });
    await to(400);
    await order();
    await to(420);
    fleet.lose(HERE);
    expect(endIn(await to(421))).toMatchObject({ stopped: 'interrupted', keptS: 0 });
  });
});

describe('the true time of a move', () => {
  const script = (memoryMiB: number, migrationMBPerS?: number) => {
    const truth = new Truth({
      trace: mixedTrace,
      capacity: capacityOf(mixedTrace, config),
      setupS: seconds(0),
      ...(migrationMBPerS === undefined ? {} : { migrationMBPerS }),
    });
    truth.add(jobId('j'), new Map([['main', { runtimeS: Float64Array.of(100) }]]), { stages: [] });
    const { resources } = request();
    return truth.script(request({ resources: { ...resources, memory: mib(memoryMiB) } }), seconds(0), CALM);
  };

  it('is memory over rate: 160 MB/s unless told otherwise, never below that of any stop', () => {
    // 16,000 MB are 15,258.789 MiB.
    expect(raw(script(16_000_000_000 / 1_048_576).movesInS!)).toBeCloseTo(100, 9);
    expect(raw(script(16_000_000_000 / 1_048_576, 80).movesInS!)).toBeCloseTo(200, 9);
    expect(raw(script(1).movesInS!)).toBe(2);
    expect(plus(START_MS, script(1).stopsInS)).toEqual(after(2));
  });
});
