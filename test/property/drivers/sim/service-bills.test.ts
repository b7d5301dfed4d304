/**
 * Bills of simulated services: footprints x loads x constraints x billing x markets, through the whole scheduler. A
 * bill of twice the on-demand list price of its work is a defect, as is an instance that no replica may use, or one
 * bought again and again for replicas that do not come to it.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { isBoughtAs } from '../../../../lib/domain/pool.ts';
import { normaliseService } from '../../../../lib/domain/service-file/service-file.ts';
import { replayMarket } from '../../../../lib/drivers/local/market/replay.ts';
import { decidersNamed } from '../../../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../../../lib/drivers/sim/outcome-of-run.ts';
import { simulate } from '../../../../lib/drivers/sim/simulation.ts';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { poolId } from '../../../../lib/kernel/ids.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { epochMs, plus, raw, seconds, ZERO_S } from '../../../../lib/kernel/units.ts';
import { traceOf, type SpotMarket } from '../../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../../lib/market/trace.ts';
import { pool } from '../../../support/builders.ts';
import { defaultMarket, defaultMarketStartMs } from '../../../../lib/market/default-market.ts';
import { deterministic, type Solver } from '../../../../lib/policy/solver.ts';
import { FROM_HISTORY } from '../../../../lib/domain/forecast.ts';
import { FOOTPRINTS } from '../../../../lib/stages/services/footprints.ts';

const MINUTES = 90;
const VCPU_USD_PER_HOUR = 0.05;
const FOOTPRINT_NAMES = Object.keys(FOOTPRINTS);
const RATES = [5, 60, 200];
const CONSTRAINTS = [{}, { zones: ['us-east-1a'] }, { purchaseOptions: ['spot'] }, { purchaseOptions: ['on-demand'] }];
const BILLINGS = ['per-second', 'per-hour'] as const;
const PRESETS = ['ebbtide', 'greedy', 'supercloud-online'];

interface Combination {
  readonly serviceFootprint: string;
  readonly rate: number;
  readonly constraints: (typeof CONSTRAINTS)[number];
  readonly billing: (typeof BILLINGS)[number];
  readonly preset: string;
  readonly market: keyof typeof MARKETS;
  readonly seed: number;
}

const START_MS = raw(defaultMarketStartMs);
const STEP_MS = 300_000;
const HISTORY_MS = 8 * 86_400_000;

/** Prices that move by some per cent every few minutes: a bid just above the price is lost within the hour. */
function restless(seed: number): MarketTrace {
  const steps = (HISTORY_MS + 86_400_000) / STEP_MS;
  const markets = ['a', 'b', 'c'].flatMap((zone) =>
    [pool({ type: 'm5.large', cpus: 2 }), pool({ type: 'm5.xlarge', cpus: 4 })].map(({ type }): SpotMarket => {
      const random = randomStream(seed, `${type.name}/${zone}`);
      const onDemandUsdPerHour = VCPU_USD_PER_HOUR * (raw(type.capacity.cpu) / 1000);
      return {
        type,
        zone: `us-east-1${zone}`,
        onDemandUsdPerHour,
        availability: null,
        prices: {
          atMs: Float64Array.from({ length: steps }, (_, i) => START_MS - HISTORY_MS + i * STEP_MS),
          usdPerHour: Float64Array.from({ length: steps }, () => onDemandUsdPerHour * (0.3 + 0.05 * random())),
        },
      };
    }),
  );
  const span = { startMs: epochMs(START_MS - HISTORY_MS), endMs: epochMs(START_MS + 86_400_000) };
  return traceOf({ name: `restless ${seed}`, ...span }, markets);
}

const MARKETS = { generated: defaultMarket, restless } as const;

const nth = <T>(all: readonly T[], i: number): T => all[i % all.length] as T;
/** Each footprint with each constraint, the rest in turn. */
const COMBINATIONS = FOOTPRINT_NAMES.flatMap((serviceFootprint, f) =>
  CONSTRAINTS.map((constraints, c): Combination => {
    const i = f * CONSTRAINTS.length + c;
    const of = { rate: nth(RATES, i), billing: nth(BILLINGS, f + c), preset: nth(PRESETS, f + 2 * c) };
    const market = nth(['restless', 'generated'] as const, f + c);
    return { serviceFootprint, constraints, ...of, market, seed: 1 + (i % 4) };
  }),
);

/** A load that rises and falls by half within the hour. */
const loadOf = (rate: number): Float64Array =>
  Float64Array.from({ length: MINUTES }, (_, m) => 60 * rate * (1 + 0.5 * Math.sin((2 * Math.PI * m) / 60)));

let solver: Solver;
beforeAll(() => {
  solver = deterministic(highsSolver(), 50);
});
afterAll(() => solver.close());

async function run({ serviceFootprint, rate, constraints, billing, preset, market, seed }: Combination) {
  const trace = MARKETS[market](seed);
  const spec = normaliseService(
    {
      name: 'web',
      command: './serve',
      resources: { cpu: 1, memory: '1GiB' },
      target: { latency: '1s' },
      capacity: { perReplica: '10 rps' },
      min: 2,
      max: 60,
      constraints,
    },
    { baseDir: '/srv', defaultOwner: 'test', scalings: ['reactive'] },
  );
  const bought: string[] = [];
  const result = await simulate({
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: defaultMarketStartMs,
    toMs: plus(defaultMarketStartMs, seconds(MINUTES * 60 + 7200)),
    jobs: [],
    services: [{ spec, perMinute: loadOf(rate), serviceS: 0.1, queuePerVcpu: 10 }],
    namesJobs: false,
    deciders: decidersNamed(preset),
    forecast: FROM_HISTORY,
    solver,
    config: schedulerConfig.parse({ billing, serviceFootprint }),
    vcpus: 1000,
    seed,
    minGapS: seconds(5),
    setupS: ZERO_S,
    onEvent: ({ type, data }) => {
      if (type === 'instance-requested') bought.push(String(data['pool']));
    },
  });
  const { totals, services = [] } = outcomeOf(result, { preset, seed, fromMs: defaultMarketStartMs });
  return { totals, service: services[0], bought };
}

const isAllowed = (pool: string, { zones, purchaseOptions }: Combination['constraints'] & Record<string, unknown>) =>
  (!Array.isArray(zones) || zones.some((zone) => pool.includes(`/${String(zone)}/`))) &&
  (!Array.isArray(purchaseOptions) || purchaseOptions.some((o) => isBoughtAs(poolId(pool), o as 'spot')));

describe('bills of services', () => {
  it.each(COMBINATIONS.map((c) => [JSON.stringify(c), c] as const))(
    'are less than twice the list price: %s',
    async (_, combination) => {
      const { totals, service, bought } = await run(combination);
      expect(service?.requests).toBeGreaterThan(0);
      expect(bought.filter((pool) => !isAllowed(pool, combination.constraints))).toEqual([]);
      // An hour in full of what is needed for minutes is dear where it is billed so.
      const factor = combination.billing === 'per-hour' ? 3 : 2;
      // Two replicas at least are on two instances, one of which may be half empty: a replica's price more.
      const apartUsd = (MINUTES / 60) * VCPU_USD_PER_HOUR;
      expect(service?.billedUsd).toBeLessThan(factor * (service?.onDemandUsd ?? 0) + apartUsd);
      const replicas = Math.ceil((1.5 * combination.rate) / 10) + 10;
      expect(totals.launches).toBeLessThan(10 + 3 * replicas + 2 * totals.interruptions);
    },
    300_000,
  );
});
