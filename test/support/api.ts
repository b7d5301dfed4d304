import { VirtualClock } from '../../lib/kernel/clock.ts';
import { randomStream } from '../../lib/kernel/random.ts';
import { epochMs, raw, usd, usdPerHour } from '../../lib/kernel/units.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import { FROM_HISTORY } from '../../lib/domain/forecast.ts';
import { admitter } from '../../lib/cycle/admit/admission.ts';
import { Forecasting } from '../../lib/cycle/forecast/forecasting.ts';
import { poolForecasts } from '../../lib/cycle/forecast/pool-forecasts.ts';
import { LoggedHistory } from '../../lib/stages/estimate/logged-history.ts';
import { CapacityEvidence } from '../../lib/market/forecast/hazard.ts';
import type { Bill } from '../../lib/domain/ledger.ts';
import { type Pool, isSpotPool } from '../../lib/domain/pool.ts';
import type { Limits } from '../../lib/domain/snapshot.ts';
import { provideBackend } from '../../lib/api/provided-backend.ts';
import { dispatcher, type ApiResponse, type Dispatch } from '../../lib/api/dispatch.ts';
import type { Backend } from '../../lib/ports/backend.ts';
import type { LogChunk } from '../../lib/ports/fleet.ts';
import type { Store } from '../../lib/ports/store.ts';
import { handler as api } from '../../lambdas/api/handler.ts';
import { handler as intake } from '../../lambdas/intake/handler.ts';
import { MemoryStore } from '../../lib/drivers/sim/memory-store.ts';
import { pool } from './builders.ts';

export const NOW = epochMs(Date.UTC(2026, 2, 1, 12));
const HOUR_MS = 3_600_000;
const LIMITS: Limits = { vcpus: 32, raisedBy: 'start it with a higher --vcpus' };

/** What the exported handlers stand on in a test, and how to look behind them. */
export interface ApiUnderTest {
  readonly dispatch: Dispatch;
  readonly store: Store;
  readonly clock: VirtualClock;
  readonly pools: readonly Pool[];
  /** Texts of attempts' logs: `attempt/stream`. */
  readonly logs: Map<string, string>;
  /** How often the engine was woken. */
  wakes(): number;
  get(path: string, headers?: Record<string, string>): Promise<ApiResponse>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<ApiResponse>;
}

/** A market of two pools: spot at 0.05 (0.07 until an hour ago) and on-demand at 0.17 USD per hour. */
export function apiUnderTest(over: Partial<Backend> = {}): ApiUnderTest {
  const store = over.store ?? new MemoryStore();
  const clock = new VirtualClock(NOW);
  const pools = [pool(), pool({ option: 'on-demand' })];
  const logs = new Map<string, string>();
  let wakes = 0;
  const admit = admitter({
    pools,
    limits: LIMITS,
    config: schedulerConfig.parse({}),
    history: new LoggedHistory(),
  });
  const backend: Backend = {
    store,
    clock,
    random: randomStream(1, 'test'),
    limits: LIMITS,
    market: {
      pools: () => pools,
      quote: (id) => usdPerHour(isSpotPool(id) ? 0.05 : 0.17),
      history: (id) =>
        isSpotPool(id)
          ? {
              atMs: Float64Array.of(raw(NOW) - 30 * HOUR_MS, raw(NOW) - HOUR_MS),
              usdPerHour: Float64Array.of(0.07, 0.05),
            }
          : { atMs: Float64Array.of(0), usdPerHour: Float64Array.of(0.17) },
    },
    fleet: {
      logs: async (attempt, stream, offset, maxBytes) =>
        chunk(Buffer.from(logs.get(`${attempt}/${stream}`) ?? ''), offset, maxBytes),
      bill: async (_instance, until) => billAt(raw(until)),
    },
    admit: async (spec) => admit(spec, clock.now()),
    forecast: (asked) => forecastNow(backend, asked),
    wake: () => void wakes++,
    health: async () => ({
      status: 'ok',
      detail: null,
      version: '0.0.0-test',
      engineStartedMs: raw(NOW),
      lastCycleMs: null,
      market: { name: 'two pools', fromMs: 0, toMs: raw(NOW) + HOUR_MS, speed: 1 },
      preset: 'ebbtide',
      disk: null,
    }),
    ...over,
  };
  provideBackend(backend);
  const dispatch = dispatcher({ intake, api });
  return {
    dispatch,
    store,
    clock,
    pools,
    logs,
    wakes: () => wakes,
    get: (path, headers = {}) => dispatch({ method: 'GET', path, headers }),
    post: (path, body, headers = {}) =>
      dispatch({
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
  };
}

const chunk = (bytes: Buffer, offset: number, maxBytes: number): LogChunk => {
  const piece = bytes.subarray(offset, offset + maxBytes);
  return {
    text: piece.toString('utf8'),
    nextOffset: Math.min(offset, bytes.length) + piece.length,
    totalBytes: bytes.length,
  };
};

/** One price since an hour before NOW: 0.05 USD per hour, on-demand 0.17. */
function billAt(untilMs: number): Bill {
  const hours = (untilMs - (raw(NOW) - HOUR_MS)) / HOUR_MS;
  return {
    totalUsd: usd(hours * 0.05),
    pieces: [
      { fromMs: epochMs(raw(NOW) - HOUR_MS), toMs: epochMs(untilMs), usd: hours * 0.05, onDemandUsd: hours * 0.17 },
    ],
  };
}

/** A small job file as JSON. */
export const jobFile = (over: Record<string, unknown> = {}): Record<string, unknown> => ({
  name: 'render',
  owner: 'tester',
  class: 'best-effort',
  stages: [{ name: 'main', command: ['true'], workdir: '/tmp', resources: { cpu: 1, memory: '512MiB' } }],
  ...over,
});

/** From history, with nothing observed. */
const forecastNow = ({ market, clock }: Backend, asked: readonly Pool[]): ReturnType<Backend['forecast']> => {
  const config = schedulerConfig.parse({});
  const forecasting = new Forecasting({ chosen: FROM_HISTORY, config });
  const evidence = new CapacityEvidence();
  return poolForecasts({ forecasting, market, evidence, held: [], config, now: clock.now() }, asked);
};
