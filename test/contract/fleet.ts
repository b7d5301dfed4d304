import { describe, expect, it } from '@jest/globals';
import type { Checkpoint } from '../../lib/domain/job.ts';
import type { Observation } from '../../lib/domain/observation.ts';
import { poolKey, type Bid, type InstanceType } from '../../lib/domain/pool.ts';
import { attemptId, effectKey, instanceId, type AttemptId, type InstanceId } from '../../lib/kernel/ids.ts';
import { epochMs, mib, milliCpu, plus, raw, seconds, usdPerHour, type EpochMs } from '../../lib/kernel/units.ts';
import { capacityOf } from '../../lib/market/capacity-truth.ts';
import { traceOf } from '../../lib/market/price-steps.ts';
import type { Fleet, StartRequest } from '../../lib/ports/fleet.ts';

/**
 * What every Fleet promises, whatever runs the tasks. A driver makes fleets over one market, turns a program's
 * description into what its kind of task runs, and lets engine time pass.
 */

/** What a task of the contract does; engine seconds. */
export interface Program {
  readonly runtimeS: number;
  readonly exitCode: number;
  /** Saves by itself so often, and at the checkpoint signal, after which it leaves with code 75. */
  readonly checkpointEveryS?: number;
  /** At the checkpoint signal it does not leave but finishes its work: runs so much longer and exits with 0. */
  readonly finishesInS?: number;
  readonly prints?: string;
}

export interface FleetDriver {
  readonly fleet: Fleet;
  now(): EpochMs;
  program(p: Program): Pick<StartRequest, 'command' | 'env' | 'workdir' | 'checkpoint'>;
  /** Lets time pass until `done` holds for what has been observed so far; fails after `withinS` engine seconds. */
  until(
    what: string,
    done: (seen: readonly Observation[]) => boolean,
    withinS?: number,
  ): Promise<readonly Observation[]>;
  close(): Promise<void>;
}

export interface FleetDriverMaker {
  /** How much of its running time a report may miss or add, engine s: what a real process and its clock cost. */
  readonly toleranceS: number;
  /** Whether it launches into reserved capacity. */
  readonly hasReserved: boolean;
  /**
   * With engine time that goes `slower` times slower than the driver's own pace, where real things must keep up with
   * it.
   */
  make(startMs: EpochMs, slower: number): Promise<FleetDriver>;
}

/** The market: engine times relative to the start of each test. */
export const START_MS = epochMs(Date.UTC(2026, 0, 5, 12));
const at = (s: number): number => raw(START_MS) + s * 1000;
const type: InstanceType = {
  name: 'c5.large',
  family: 'c5',
  generation: 5,
  arch: 'x86_64',
  capacity: { cpu: milliCpu(2000), memory: mib(4096), gpus: 0, disk: mib(20_000) },
};
const DAY_S = 86_400;
const calm = { atMs: Float64Array.of(at(-DAY_S)), usdPerHour: Float64Array.of(0.03) };
const RESERVED_INSTANCES: Readonly<Record<string, number>> = { calm: 2, spiky: 1 };
const market = (zone: string, prices = calm, available: [number, number][] = []) => ({
  type,
  zone,
  onDemandUsdPerHour: 0.1,
  prices,
  ...(RESERVED_INSTANCES[zone] === undefined
    ? {}
    : { reserved: { instances: RESERVED_INSTANCES[zone], usdPerHour: 0.02 } }),
  availability:
    available.length === 0
      ? null
      : {
          atMs: Float64Array.from(available, ([s]) => at(s)),
          available: Uint8Array.from(available, ([, a]) => a),
        },
});

/** When the market takes instances of pool SPIKY: the price passes 0.05 at 400 s, after a hint at 250 s. */
export const SPIKE_S = 400;
const HINT_S = 250;
export const trace = traceOf({ name: 'contract', startMs: epochMs(at(-DAY_S)), endMs: epochMs(at(DAY_S)) }, [
  market('calm'),
  market('spiky', {
    atMs: Float64Array.of(at(-DAY_S), at(HINT_S), at(SPIKE_S), at(SPIKE_S + 600)),
    usdPerHour: Float64Array.of(0.03, 0.048, 0.2, 0.03),
  }),
  market('empty', calm, [[-DAY_S, 0]]),
  market('late', { atMs: Float64Array.of(at(3600)), usdPerHour: Float64Array.of(0.03) }),
]);
export const truth = capacityOf(trace, { billing: 'per-second', refundRule: 'first-hour' });

export const CALM = poolKey('c5.large', 'calm', 'spot');
export const SPIKY = poolKey('c5.large', 'spiky', 'spot');
const EMPTY = poolKey('c5.large', 'empty', 'spot');
const LATE = poolKey('c5.large', 'late', 'spot');
const ON_DEMAND = poolKey('c5.large', 'spiky', 'on-demand');
const RESERVED = poolKey('c5.large', 'calm', 'reserved');
export const BID: Bid = usdPerHour(0.05);

export const SAVES: Checkpoint = { signal: 'SIGUSR2', graceS: seconds(1), everyS: null };

export function startOf(
  driver: Pick<FleetDriver, 'program'>,
  of: { readonly instance: InstanceId; readonly attempt: AttemptId; readonly program: Program } & Partial<StartRequest>,
): StartRequest {
  const { program, ...rest } = of;
  return {
    key: effectKey(`start/${of.attempt}`),
    inputs: [],
    outputs: [],
    resources: { cpu: milliCpu(500), memory: mib(128), gpus: 0, disk: mib(0) },
    timeoutS: null,
    task: {
      job: 'job',
      stage: 'main',
      index: Number(of.attempt.split('.')[0]),
      number: Number(of.attempt.split('.')[1]),
    },
    ...driver.program(program),
    ...rest,
  };
}

export const ofKind = <K extends Observation['kind']>(
  seen: readonly Observation[],
  kind: K,
): Extract<Observation, { kind: K }>[] => seen.filter((o): o is Extract<Observation, { kind: K }> => o.kind === kind);

export const endOf = (seen: readonly Observation[], attempt: AttemptId) =>
  ofKind(seen, 'attempt-ended').find((o) => o.attempt === attempt);

/** The fleet of one test, which is made anew where this machine was too slow. */
class Bench {
  readonly #maker: FleetDriverMaker;
  driver: FleetDriver;
  private constructor(maker: FleetDriverMaker, driver: FleetDriver) {
    this.#maker = maker;
    this.driver = driver;
  }

  static async begin(maker: FleetDriverMaker): Promise<Bench> {
    return new Bench(maker, await maker.make(START_MS, 1));
  }

  get fleet(): Fleet {
    return this.driver.fleet;
  }

  /**
   * What must have happened before the market or the instance does its part. A busy machine is given more time for it.
   */
  async inTime(what: string, prepare: () => Promise<boolean>): Promise<void> {
    for (const slower of [4, 16, 64]) {
      if (await prepare()) return;
      await this.driver.close();
      this.driver = await this.#maker.make(START_MS, slower);
    }
    throw new Error(`this machine is too slow for ${what}`);
  }

  async savedBeforeTheWarning(program: Program): Promise<StartRequest> {
    let start: StartRequest | null = null;
    await this.inTime('a checkpoint before the warning', async () => {
      await this.fleet.launch([{ ...launch, pool: SPIKY }]);
      start = startOf(this.driver, { instance: i1, attempt: a1, program });
      await this.fleet.start([start]);
      const first = (seen: readonly Observation[]) =>
        seen.find((o) => o.kind === 'attempt-checkpointed' || o.kind === 'instance-warned');
      const seen = await this.driver.until('a checkpoint or the warning', (all) => first(all) !== undefined, 2000);
      return first(seen)?.kind === 'attempt-checkpointed';
    });
    return start!;
  }
}

const i1 = instanceId('i-0001');
const a1 = attemptId('1.1');
const launch = { key: effectKey('launch/1'), instance: i1, pool: CALM, bid: BID };
const has = (kind: Observation['kind']) => (seen: readonly Observation[]) => seen.some((o) => o.kind === kind);
const ended = (attempt: AttemptId) => (seen: readonly Observation[]) => endOf(seen, attempt) !== undefined;

/** Runs the contract against the fleets that `maker` makes. */
export function fleetContract(name: string, maker: FleetDriverMaker): void {
  /** On a fleet of its own, beside other tests: most of its time it waits for the market. */
  const onFleet = (does: string, test: (bench: Bench) => Promise<void>): void =>
    it.concurrent(does, async () => {
      const bench = await Bench.begin(maker);
      try {
        await test(bench);
      } finally {
        await bench.driver.close();
      }
    });

  describe(`Fleet contract: ${name}`, () => {
    onFleet('launches an instance that is ready after 30 to 160 s and says so in order', async ({ driver, fleet }) => {
      const [outcome] = await fleet.launch([launch]);
      expect(outcome).toEqual({ status: 'done' });
      const seen = await driver.until('ready', has('instance-ready'));
      expect(seen.map((o) => [o.sequence, o.kind])).toEqual([
        [1, 'instance-launched'],
        [2, 'instance-ready'],
      ]);
      const [launched] = ofKind(seen, 'instance-launched');
      const [ready] = ofKind(seen, 'instance-ready');
      const plannedS = (raw(launched!.readyMs) - raw(launched!.atMs)) / 1000;
      expect(plannedS).toBeGreaterThanOrEqual(30);
      expect(plannedS).toBeLessThanOrEqual(160);
      expect(raw(ready!.atMs)).toBeGreaterThanOrEqual(raw(launched!.readyMs));
      const [known] = await fleet.list();
      expect(known).toEqual({ instance: i1, pool: CALM, bid: BID, launchedMs: launched!.atMs, live: true });
    });

    onFleet('launches once however often it is asked', async ({ driver, fleet }) => {
      await fleet.launch([launch]);
      expect(await fleet.launch([launch, launch])).toEqual([{ status: 'done' }, { status: 'done' }]);
      const seen = await driver.until('ready', has('instance-ready'));
      expect(ofKind(seen, 'instance-launched')).toHaveLength(1);
      expect(await fleet.list()).toHaveLength(1);
    });

    onFleet('answers each request as the market does, in order, and the same when asked again', async ({ fleet }) => {
      const requests = [
        { key: effectKey('l/1'), instance: instanceId('i-a'), pool: CALM, bid: usdPerHour(0.01) },
        { key: effectKey('l/2'), instance: instanceId('i-b'), pool: EMPTY, bid: BID },
        { key: effectKey('l/3'), instance: instanceId('i-c'), pool: ON_DEMAND, bid: 'uncapped' as const },
        { key: effectKey('l/4'), instance: instanceId('i-d'), pool: LATE, bid: BID },
        { key: effectKey('l/5'), instance: instanceId('i-e'), pool: poolKey('x1', 'calm', 'spot'), bid: BID },
      ];
      const outcomes = await fleet.launch(requests);
      expect(outcomes.map((o) => (o.status === 'refused' ? o.why : o.status))).toEqual([
        'bid-below-price',
        'insufficient-capacity',
        'done',
        'insufficient-capacity',
        'unsupported',
      ]);
      expect(await fleet.launch(requests)).toEqual(outcomes);
      expect((await fleet.list()).map((i) => i.instance)).toEqual(['i-c']);
    });

    onFleet(
      'runs a task that was sent before the instance was up, once, and reports its whole running time',
      async ({ driver, fleet }) => {
        await fleet.launch([launch]);
        const start = startOf(driver, { instance: i1, attempt: a1, program: { runtimeS: 60, exitCode: 0 } });
        expect(await fleet.start([start])).toEqual([{ status: 'done' }]);
        expect(await fleet.start([start])).toEqual([{ status: 'done' }]);
        const seen = await driver.until('the end of the task', ended(a1));
        expect(await fleet.start([start])).toEqual([{ status: 'done' }]);
        expect(ofKind(seen, 'attempt-started')).toHaveLength(1);
        expect(ofKind(seen, 'attempt-ended')).toHaveLength(1);
        const [started] = ofKind(seen, 'attempt-started');
        const [ready] = ofKind(seen, 'instance-ready');
        const end = endOf(seen, a1)!;
        expect(raw(started!.atMs)).toBeGreaterThanOrEqual(raw(ready!.atMs));
        expect(end).toMatchObject({ exitCode: 0, exitSignal: null, stopped: null });
        const ranS = (raw(end.atMs) - raw(started!.atMs)) / 1000;
        expect(raw(end.keptS)).toBeCloseTo(ranS, 6);
        expect(ranS).toBeGreaterThanOrEqual(60 - Math.min(maker.toleranceS, 10));
        expect(ranS).toBeLessThanOrEqual(60 + maker.toleranceS);
      },
    );

    onFleet('reports a failure with its exit code, and nothing kept of it', async ({ driver, fleet }) => {
      await fleet.launch([launch]);
      await fleet.start([startOf(driver, { instance: i1, attempt: a1, program: { runtimeS: 20, exitCode: 3 } })]);
      const seen = await driver.until('the end of the task', ended(a1));
      const end = endOf(seen, a1)!;
      expect(end).toMatchObject({ exitCode: 3, exitSignal: null, stopped: null });
      expect(raw(end.keptS)).toBe(0);
    });

    onFleet(
      'stops a task on request: its checkpoint keeps what it did, and stopping again changes nothing',
      async ({ driver, fleet }) => {
        await fleet.launch([launch]);
        const program = { runtimeS: 5000, exitCode: 0, checkpointEveryS: 100 };
        await fleet.start([startOf(driver, { instance: i1, attempt: a1, program })]);
        const saved = await driver.until('a checkpoint', has('attempt-checkpointed'));
        const stop = { key: effectKey('stop/1'), attempt: a1, instance: i1, why: 'preempted' as const };
        expect(await fleet.stop([stop])).toEqual([{ status: 'done' }]);
        expect(await fleet.stop([stop])).toEqual([{ status: 'done' }]);
        const seen = await driver.until('the end of the task', ended(a1));
        expect(await fleet.stop([stop])).toEqual([{ status: 'done' }]);
        const end = endOf(seen, a1)!;
        expect(end.stopped).toBe('preempted');
        expect(end.exitCode).not.toBe(0);
        const [started] = ofKind(seen, 'attempt-started');
        const ranS = (raw(end.atMs) - raw(started!.atMs)) / 1000;
        expect(raw(end.keptS)).toBeGreaterThanOrEqual(raw(ofKind(saved, 'attempt-checkpointed').at(-1)!.keptS));
        expect(raw(end.keptS)).toBeLessThanOrEqual(ranS);
      },
    );

    onFleet('stops a task that moves: what it saved on the way is kept, and it is no failure', async (bench) => {
      const { driver, fleet } = bench;
      await fleet.launch([launch]);
      const program = { runtimeS: 5000, exitCode: 0, checkpointEveryS: 100 };
      await fleet.start([startOf(driver, { instance: i1, attempt: a1, program })]);
      const saved = await driver.until('a checkpoint', has('attempt-checkpointed'));
      const stop = {
        key: effectKey('stop/1'),
        attempt: a1,
        instance: i1,
        why: 'preempted',
        to: instanceId('i-2'),
      } as const;
      expect(await fleet.stop([stop])).toEqual([{ status: 'done' }]);
      // The first order stands, whatever is asked for later.
      const again = { ...stop, key: effectKey('stop/2'), to: instanceId('i-3') };
      expect(await fleet.stop([again])).toEqual([{ status: 'done' }]);
      const seen = await driver.until('the end of the task', ended(a1));
      expect(await fleet.stop([stop])).toEqual([{ status: 'done' }]);
      const end = endOf(seen, a1)!;
      expect(end.stopped).toBe('preempted');
      expect(end.exitCode).not.toBe(0);
      expect(raw(end.keptS)).toBeGreaterThanOrEqual(raw(ofKind(saved, 'attempt-checkpointed').at(-1)!.keptS));
      expect(seen.filter((o) => o.kind === 'attempt-ended')).toHaveLength(1);
    });

    const onReserved = maker.hasReserved ? onFleet : () => undefined;
    onReserved(
      'launches as many instances as are reserved, at their price, and more when one has ended',
      async (bench) => {
        const { driver, fleet } = bench;
        const request = (n: number) => ({
          key: effectKey(`launch/${n}`),
          instance: instanceId(`i-r${n}`),
          pool: RESERVED,
          bid: 'uncapped' as const,
        });
        const outcomes = await fleet.launch([1, 2, 3].map(request));
        expect(outcomes.map((o) => (o.status === 'refused' ? o.why : o.status))).toEqual([
          'done',
          'done',
          'insufficient-capacity',
        ]);
        expect(await fleet.launch([1, 2, 3].map(request))).toEqual(outcomes);
        await driver.until('an instance that is up', (all) =>
          all.some((o) => o.kind === 'instance-ready' && o.instance === 'i-r1'),
        );
        await fleet.release([{ key: effectKey('release/1'), instance: instanceId('i-r1') }]);
        const seen = await driver.until('the end of one', has('instance-ended'));
        const [end] = ofKind(seen, 'instance-ended');
        expect(end?.cause).toBe('released');
        expect(await fleet.launch([request(4)])).toEqual([{ status: 'done' }]);
        const bill = await fleet.bill(instanceId('i-r1'), end!.atMs);
        const [launched] = ofKind(seen, 'instance-launched').filter((o) => o.instance === 'i-r1');
        const hours = Math.max(60, (raw(end!.atMs) - raw(launched!.atMs)) / 1000) / 3600;
        expect(raw(bill.totalUsd)).toBeCloseTo(0.02 * hours, 9);
        expect(bill.pieces.reduce((sum, p) => sum + p.onDemandUsd, 0)).toBeCloseTo(0.1 * hours, 9);
      },
    );

    onFleet('runs a copy beside the original, and says of the one that is stopped for it why', async (bench) => {
      const { driver, fleet } = bench;
      await fleet.launch([launch]);
      const program = { runtimeS: 5000, exitCode: 0, checkpointEveryS: 100 };
      const original = startOf(driver, { instance: i1, attempt: a1, program });
      const copy = attemptId('1.2');
      const start = startOf(driver, { instance: i1, attempt: copy, program: { ...program, runtimeS: 200 } });
      await fleet.start([original, { ...start, role: 'copy', task: { ...start.task, round: 1 } }]);
      const both = (seen: readonly Observation[]) => ofKind(seen, 'attempt-started').length === 2;
      await driver.until('two attempts that run', both);
      const seen = await driver.until('the end of the copy', ended(copy));
      // It began anew, whatever the original has kept.
      const [ranS, startedMs] = [
        endOf(seen, copy)!.atMs,
        ofKind(seen, 'attempt-started').find((o) => o.attempt === copy)!.atMs,
      ];
      expect((raw(ranS) - raw(startedMs)) / 1000).toBeGreaterThanOrEqual(200 - Math.min(maker.toleranceS, 10));
      expect(endOf(seen, copy)).toMatchObject({ exitCode: 0, stopped: null });
      expect(endOf(seen, a1)).toBeUndefined();
      await fleet.stop([{ key: effectKey('superseded/stop/1'), attempt: a1, instance: i1, why: 'superseded' }]);
      const end = endOf(await driver.until('the end of the original', ended(a1)), a1)!;
      expect(end.stopped).toBe('superseded');
    });

    onFleet('never begins a task that is stopped before the instance is up', async (bench) => {
      await bench.inTime('a stop before the instance is up', async () => {
        await bench.fleet.launch([launch]);
        await bench.fleet.start([
          startOf(bench.driver, { instance: i1, attempt: a1, program: { runtimeS: 20, exitCode: 0 } }),
        ]);
        await bench.fleet.stop([{ key: effectKey('stop/1'), attempt: a1, instance: i1, why: 'cancelled' }]);
        return !has('instance-ready')(await bench.fleet.observe(new Map()));
      });
      const seen = await bench.driver.until('the end of the task', ended(a1));
      expect(endOf(seen, a1)).toMatchObject({ exitCode: null, stopped: 'cancelled', usage: null });
      expect(ofKind(seen, 'attempt-started')).toHaveLength(0);
    });

    onFleet('ends a task that runs longer than its timeout', async ({ driver, fleet }) => {
      await fleet.launch([launch]);
      const program = { runtimeS: 50_000, exitCode: 0 };
      await fleet.start([startOf(driver, { instance: i1, attempt: a1, program, timeoutS: seconds(120) })]);
      const seen = await driver.until('the end of the task', ended(a1));
      const end = endOf(seen, a1)!;
      const [started] = ofKind(seen, 'attempt-started');
      expect(end.stopped).toBe('timed-out');
      expect((raw(end.atMs) - raw(started!.atMs)) / 1000).toBeGreaterThanOrEqual(120);
    });

    onFleet(
      "gives a hint, then the two-minute warning, then takes the instance, at the market's times",
      async ({ driver, fleet }) => {
        await fleet.launch([{ ...launch, pool: SPIKY }]);
        const seen = await driver.until('the end of the instance', has('instance-ended'), 2000);
        const [hint] = ofKind(seen, 'instance-rebalance');
        const [warned] = ofKind(seen, 'instance-warned');
        const [end] = ofKind(seen, 'instance-ended');
        expect(raw(hint!.atMs)).toBe(at(HINT_S));
        expect(raw(warned!.atMs)).toBe(at(SPIKE_S));
        expect(raw(warned!.goneMs)).toBe(at(SPIKE_S + 120));
        expect(end).toMatchObject({ cause: 'interrupted', atMs: epochMs(at(SPIKE_S + 120)) });
        expect((await fleet.list())[0]!.live).toBe(false);
      },
    );

    onFleet('interrupts tasks: what they saved is kept, and the next attempt can go on from it', async (bench) => {
      const start = await bench.savedBeforeTheWarning({ runtimeS: 5000, exitCode: 0, checkpointEveryS: 60 });
      await bench.driver.until('the warning', has('instance-warned'), 2000);
      const late = startOf(bench.driver, {
        instance: i1,
        attempt: attemptId('9.1'),
        program: { runtimeS: 1, exitCode: 0 },
      });
      expect(await bench.fleet.start([late])).toMatchObject([{ status: 'refused', why: 'instance-gone' }]);
      // The first one was accepted before the warning, and stays so.
      expect(await bench.fleet.start([start])).toEqual([{ status: 'done' }]);
      const seen = await bench.driver.until('the end of the instance', has('instance-ended'), 2000);
      const end = endOf(seen, a1)!;
      const [started] = ofKind(seen, 'attempt-started');
      expect(end.stopped).toBe('interrupted');
      expect(end.exitCode).not.toBe(0);
      expect(raw(end.keptS)).toBeGreaterThan(0);
      expect(raw(end.keptS)).toBeLessThanOrEqual((raw(end.atMs) - raw(started!.atMs)) / 1000);
      expect(raw(end.atMs)).toBeLessThanOrEqual(at(SPIKE_S + 120));
      expect(seen.at(-1)!.kind).toBe('instance-ended');
    });

    onFleet('counts a task that finishes within the warning as finished', async (bench) => {
      await bench.savedBeforeTheWarning({ runtimeS: 5000, exitCode: 0, checkpointEveryS: 60, finishesInS: 1 });
      const seen = await bench.driver.until('the end of the instance', has('instance-ended'), 2000);
      expect(endOf(seen, a1)).toMatchObject({ exitCode: 0, stopped: null });
    });

    onFleet('charges nothing for an instance that the market took in its first hour', async ({ driver, fleet }) => {
      await fleet.launch([{ ...launch, pool: SPIKY }]);
      const running = await driver.until('ready', has('instance-ready'));
      const early = await fleet.bill(i1, running[1]!.atMs);
      expect(raw(early.totalUsd)).toBeGreaterThan(0);
      const seen = await driver.until('the end of the instance', has('instance-ended'), 2000);
      const bill = await fleet.bill(i1, plus(seen.at(-1)!.atMs, seconds(9999)));
      expect(raw(bill.totalUsd)).toBe(0);
      expect(bill.pieces.at(-1)!.toMs).toEqual(epochMs(at(SPIKE_S + 120)));
    });

    onFleet('gives back an instance: its tasks are stopped, and the bill stands still', async ({ driver, fleet }) => {
      await fleet.launch([launch]);
      await fleet.start([startOf(driver, { instance: i1, attempt: a1, program: { runtimeS: 9000, exitCode: 0 } })]);
      await driver.until('the start of the task', has('attempt-started'));
      const release = { key: effectKey('release/1'), instance: i1 };
      expect(await fleet.release([release])).toEqual([{ status: 'done' }]);
      const seen = await driver.until('the end of the instance', has('instance-ended'));
      expect(await fleet.release([release])).toEqual([{ status: 'done' }]);
      expect(endOf(seen, a1)).toMatchObject({ stopped: 'preempted' });
      const [launched] = ofKind(seen, 'instance-launched');
      const end = seen.at(-1)!;
      expect(end).toMatchObject({ kind: 'instance-ended', cause: 'released' });
      // The trace's price is constant, so the bill has a closed form.
      const hours = (raw(end.atMs) - raw(launched!.atMs)) / 3_600_000;
      const bill = await fleet.bill(i1, plus(end.atMs, seconds(9999)));
      expect(raw(bill.totalUsd)).toBeCloseTo(0.03 * Math.max(hours, 1 / 60), 9);
      const refused = startOf(driver, {
        instance: i1,
        attempt: attemptId('2.1'),
        program: { runtimeS: 1, exitCode: 0 },
      });
      expect(await fleet.start([refused])).toMatchObject([{ status: 'refused', why: 'instance-gone' }]);
      expect(
        await fleet.stop([{ key: effectKey('stop/9'), attempt: a1, instance: i1, why: 'cancelled' }]),
      ).toMatchObject([{ status: 'refused', why: 'instance-gone' }]);
    });

    onFleet('knows nothing of instances that never were', async ({ driver, fleet }) => {
      const nowhere = instanceId('i-none');
      const start = startOf(driver, { instance: nowhere, attempt: a1, program: { runtimeS: 1, exitCode: 0 } });
      expect(await fleet.start([start])).toMatchObject([{ status: 'refused', why: 'instance-gone' }]);
      expect(await fleet.release([{ key: effectKey('r'), instance: nowhere }])).toMatchObject([
        { status: 'refused', why: 'instance-gone' },
      ]);
      await expect(fleet.bill(nowhere, START_MS)).rejects.toMatchObject({ code: 'not-found' });
      expect(await fleet.observe(new Map())).toEqual([]);
    });

    onFleet('reports what comes after a cursor, and all of it again to who has none', async ({ driver, fleet }) => {
      await fleet.launch([launch]);
      await fleet.start([startOf(driver, { instance: i1, attempt: a1, program: { runtimeS: 20, exitCode: 0 } })]);
      await driver.until('the end of the task', ended(a1));
      const all = await fleet.observe(new Map());
      expect(all.map((o) => o.sequence)).toEqual(all.map((_, i) => i + 1));
      for (const cursor of [1, all.length - 1, all.length]) {
        expect(await fleet.observe(new Map([[i1, cursor]]))).toEqual(all.slice(cursor));
      }
    });

    onFleet('serves logs in pieces', async ({ driver, fleet }) => {
      await fleet.launch([launch]);
      const program = { runtimeS: 20, exitCode: 0, prints: 'grüße' };
      await fleet.start([startOf(driver, { instance: i1, attempt: a1, program })]);
      await driver.until('the end of the task', ended(a1));
      const first = await fleet.logs(a1, 'stdout', 0, 2);
      expect(first).toMatchObject({ text: 'gr', nextOffset: 2, totalBytes: 7 });
      expect(await fleet.logs(a1, 'stdout', first.nextOffset, 100)).toMatchObject({
        text: 'üße',
        nextOffset: 7,
        totalBytes: 7,
      });
      expect(await fleet.logs(attemptId('7.7'), 'stdout', 0, 10)).toMatchObject({
        text: '',
        nextOffset: 0,
        totalBytes: 0,
      });
    });

    onFleet('calls back when there is something to observe, until told not to', async ({ driver, fleet }) => {
      let wakes = 0;
      const stop = fleet.onChange(() => wakes++);
      await fleet.launch([launch]);
      await driver.until('ready', (seen) => has('instance-ready')(seen) && wakes > 0);
      stop();
      const before = wakes;
      await fleet.release([{ key: effectKey('release/1'), instance: i1 }]);
      await driver.until('the end of the instance', has('instance-ended'));
      expect(wakes).toBe(before);
    });
  });
}
