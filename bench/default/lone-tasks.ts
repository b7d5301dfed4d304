/** Lone tasks of every size and slack: drawn sizes, running times, slacks and options, on markets of each kind. */
import type { Uniform } from '../../lib/kernel/random.ts';
import { randomStream } from '../../lib/kernel/random.ts';
import { epochMs, mib, milliCpu, plus, raw, seconds, ZERO_S } from '../../lib/kernel/units.ts';
import { billingAt } from '../../lib/market/billing.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { Asked, Ground, Scene } from './ground.ts';
import { loneJob } from './jobs.ts';
import { generatedMarket, HOUR_MS, priceFolders, priceMarket, WEEK_MS, yearsOf } from './markets.ts';

const DRAWN = { quick: 24, full: 500 } as const;
const CPUS = [0.5, 1, 2, 4, 8] as const;
const GIB_PER_CPU = [1, 1.75, 3] as const;
const SLACKS = [1.2, 1.5, 2, 4, 8] as const;
const OPTIONS = ['saves', 'restarts', 'on-demand'] as const;
const RUNTIME_S = { least: 120, most: 12 * 3600 } as const;
/** Honest guesses are off by no more than a quarter. */
const GUESS = 0.25;
/** Time for a start, beside the slack. */
const START_S = 300;
/** Days before the end of a market that the longest window and what is late fit into. */
const LAST_DAYS = 8;
/** Seeds of generated markets by part. */
const SEEDS = { tune: 100, report: 1100 } as const;

interface LoneTask {
  readonly market: string;
  /** Position of the submission in the market after its first week. */
  readonly at: number;
  readonly cpus: number;
  readonly gib: number;
  readonly runtimeS: number;
  readonly slack: number;
  readonly option: (typeof OPTIONS)[number];
  readonly guess: number;
}

const oneOf = <T>(items: readonly T[], random: Uniform): T => items[Math.floor(random() * items.length)] as T;

function drawn(random: Uniform, markets: readonly string[]): LoneTask {
  const cpus = oneOf(CPUS, random);
  return {
    market: oneOf(markets, random),
    at: random(),
    cpus,
    gib: cpus * oneOf(GIB_PER_CPU, random),
    runtimeS: Math.round(RUNTIME_S.least * (RUNTIME_S.most / RUNTIME_S.least) ** random()),
    slack: oneOf(SLACKS, random),
    option: oneOf(OPTIONS, random),
    guess: 1 + GUESS * (2 * random() - 1),
  };
}

const GENERATED = 'generated';

async function scene(of: LoneTask, { data, part, seed }: Asked): Promise<Scene> {
  const trace: MarketTrace =
    of.market === GENERATED
      ? generatedMarket(SEEDS[part] + Math.floor(of.at * 10))
      : await priceMarket(data, of.market);
  const firstMs = raw(trace.startMs) + WEEK_MS;
  const fromMs = epochMs(Math.round(firstMs + of.at * (raw(trace.endMs) - LAST_DAYS * 24 * HOUR_MS - firstMs)));
  const windowS = of.slack * of.runtimeS + START_S;
  const job = loneJob({
    runtimeS: of.runtimeS,
    windowS,
    resources: { cpu: milliCpu(of.cpus * 1000), memory: mib(Math.round(of.gib * 1024)), gpus: 0, disk: mib(0) },
    saves: of.option === 'saves',
    spot: of.option !== 'on-demand',
    toldS: of.runtimeS * of.guess,
  });
  return {
    trace,
    fromMs,
    toMs: plus(fromMs, seconds(2 * windowS + 86_400)),
    jobs: [job],
    config: { billing: billingAt(trace.endMs) },
    setupS: ZERO_S,
    minGapS: seconds(5),
    vcpus: 100_000,
    seed,
    known: false,
    earlier: [],
  };
}

export const loneTasks: Ground<LoneTask> = {
  name: 'lone-tasks',
  about:
    'one task of 0.5 to 8 vCPUs and 2 min to 12 h, slack 1.2 to 8, told within 25 %, on prices by the hour and by the second',
  needs: priceFolders,
  cases: async ({ data, part, quick, seed }) => {
    // Converted here, so that processes find them done.
    for (const year of yearsOf(part)) await priceMarket(data, year);
    const random = randomStream(seed, `lone tasks ${part}`);
    const markets = [...yearsOf(part), GENERATED];
    return Array.from({ length: quick ? DRAWN.quick : DRAWN.full }, (_, n) => {
      const of = drawn(random, markets);
      const group =
        of.option === 'on-demand' ? 'on-demand only' : of.slack >= 4 ? 'slack of 4 or more' : 'slack below 4';
      return { unit: String(n), group, of };
    });
  },
  scene,
};
