/**
 * Workloads of many jobs on price histories: cold and warm, of the Google trace, short tasks, dense tasks, and the
 * default workload billed by the hour. Windows lie in the middle of equal stretches of a market.
 */
import { join } from 'node:path';
import { epochMs, plus, seconds, ZERO_S } from '../../lib/kernel/units.ts';
import type { SchedulerConfig } from '../../lib/domain/config.ts';
import { billingAt } from '../../lib/market/billing.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { WorkloadOptions } from '../../lib/workload/options.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import type { Asked, Ground, Scene } from './ground.ts';
import { divided, guessed, jobsOf } from './jobs.ts';
import { generatedMarket, middlesIn, priceFolders, priceMarket } from './markets.ts';

interface Window {
  readonly startMs: number;
  readonly window: number;
}

interface Work {
  readonly jobs: readonly WorkloadJob[];
  readonly earlier: readonly WorkloadJob[];
}

interface ManyJobs {
  readonly name: string;
  readonly about: string;
  /** Of the report; the part to tune on has 2015 in place of 2016, and a generated market in place of 2021. */
  readonly year: '2016' | '2021';
  readonly allTypes?: boolean;
  readonly windows: number;
  readonly config?: Partial<SchedulerConfig>;
  readonly more?: readonly string[];
  readonly work: (asked: Asked, window: number) => Promise<Work>;
}

/** Seeds of workloads and generated markets by part. */
const SEEDS = { tune: 0, report: 1000 } as const;
/** For what is late. */
const AFTER_S = 86_400;
const VCPUS = 2000;

const marketFor = async ({ data, part }: Asked, { year, allTypes }: ManyJobs): Promise<MarketTrace> => {
  if (part === 'tune' && year === '2021') return generatedMarket(SEEDS.tune + 1);
  return priceMarket(data, part === 'tune' ? '2015' : year, allTypes);
};

function manyJobs(of: ManyJobs): Ground<Window> {
  return {
    name: of.name,
    about: of.about,
    needs: (part) => [...priceFolders(part), ...(of.more ?? [])],
    cases: async (asked) => {
      const starts = middlesIn(await marketFor(asked, of), asked.quick ? 1 : of.windows);
      return starts.map((startMs, window) => ({ unit: String(window), group: 'all', of: { startMs, window } }));
    },
    scene: async ({ startMs, window }, asked): Promise<Scene> => {
      const trace = await marketFor(asked, of);
      const { jobs, earlier } = await of.work(asked, window);
      const fromMs = epochMs(startMs);
      const lastS = jobs.at(-1)?.submittedS ?? 0;
      return {
        trace,
        fromMs,
        toMs: plus(fromMs, seconds(lastS + AFTER_S)),
        jobs,
        config: { billing: billingAt(fromMs), cyclePeriodS: 60, ...of.config },
        setupS: ZERO_S,
        minGapS: seconds(5),
        vcpus: VCPUS,
        seed: asked.seed,
        known: false,
        earlier,
      };
    },
  };
}

/** Half of the tasks below 20 minutes, one in six above an hour. */
const MIXED = 'perHour=20,medianRuntimeS=1200,runtimeSigma=1,maxTasks=20,dailyCycle=0';
const JOBS = { quick: 8, full: 32 } as const;
/** Earlier jobs of the same workload. */
const EARLIER = { quick: 60, full: 600 } as const;
const sized = <T>({ quick }: Asked, sizes: { readonly quick: T; readonly full: T }): T =>
  quick ? sizes.quick : sizes.full;

const synthetic = (asked: Asked, window: number, text: string, options: WorkloadOptions = {}) =>
  jobsOf(`synthetic:${text}`, { seed: SEEDS[asked.part] + asked.seed + window, ...options });

/** Knowledge of running times, by ground. */
const KNOWN = {
  cold: 'no running time known',
  guessed: 'running times told within 25 %, else none known',
  warm: 'running times of 600 earlier jobs known',
} as const;

/** The same jobs in each way; slack as in JamaisVu's EXP1, 20 to 80 % (table 3), state saved every ten minutes. */
const mixed = (year: '2016' | '2021', known: keyof typeof KNOWN): Ground<Window> =>
  manyJobs({
    name: `many-${year}-${known}`,
    about: `32 jobs of up to 20 tasks, slack 20 to 80 %, ${KNOWN[known]}`,
    year,
    windows: 16,
    work: async (asked, window) => {
      const last = sized(asked, JOBS);
      const all = sized(asked, EARLIER) + last;
      const options: WorkloadOptions = { checkpointEveryS: 600, deadlines: { share: 1 } };
      const work = divided(await synthetic(asked, window, `jobs=${all},${MIXED}`, options), last);
      if (known === 'warm') return work;
      const jobs = known === 'cold' ? work.jobs : guessed(work.jobs, 0.25, asked.seed + window);
      return { jobs, earlier: [] };
    },
  });

const GOOGLE = 'google-2011';
const DAY_S = 86_400;
/** Days of the trace: tuned on and reported parts are weeks apart. */
const GOOGLE_DAYS = { tune: 2, report: 16 } as const;

const google: Ground<Window> = manyJobs({
  name: 'google-2011',
  about: '80 jobs of the trace with deadlines, running times of 400 earlier ones known, prices of 2021',
  year: '2021',
  windows: 6,
  more: [GOOGLE],
  work: async (asked, window) => {
    const last = sized(asked, { quick: 20, full: 80 });
    const earlier = sized(asked, { quick: 100, full: 400 });
    const jobs = await jobsOf(join(asked.data, GOOGLE, 'jobs.csv.gz'), {
      fromS: (GOOGLE_DAYS[asked.part] + 2 * window) * DAY_S,
      jobsLimit: earlier + last,
      seed: asked.seed,
      deadlines: { share: 1 },
    });
    return divided(jobs, last);
  },
});

const shortTasks: Ground<Window> = manyJobs({
  name: 'short-tasks',
  about: '40 jobs of up to 40 tasks of 20 s in the median, half with deadlines, prices of 2021',
  year: '2021',
  windows: 16,
  work: async (asked, window) => ({
    jobs: await synthetic(
      asked,
      window,
      `jobs=${sized(asked, { quick: 10, full: 40 })},perHour=240,medianRuntimeS=20,runtimeSigma=0.7,maxTasks=40,dailyCycle=0`,
    ),
    earlier: [],
  }),
});

const denseTasks = (year: '2016' | '2021'): Ground<Window> =>
  manyJobs({
    name: `dense-${year}`,
    about: '24 jobs of up to 20 tasks within twelve minutes, all with deadlines, nothing saved',
    year,
    windows: 16,
    work: async (asked, window) => ({
      jobs: await synthetic(
        asked,
        window,
        `jobs=${sized(asked, { quick: 6, full: 24 })},perHour=120,medianRuntimeS=1200,runtimeSigma=1,maxTasks=20,dailyCycle=0`,
        { deadlines: { share: 1 } },
      ),
      earlier: [],
    }),
  });

const byTheHour: Ground<Window> = manyJobs({
  name: 'by-the-hour',
  about: 'the default workload (40 jobs, half with deadlines, nothing saved) on all types of 2016, billed by the hour',
  year: '2016',
  allTypes: true,
  windows: 16,
  config: { billing: 'per-hour' },
  work: async (asked, window) => ({
    jobs: await synthetic(asked, window, `jobs=${sized(asked, { quick: 12, full: 40 })}`),
    earlier: [],
  }),
});

export const manyJobGrounds: readonly Ground<Window>[] = [
  mixed('2016', 'cold'),
  mixed('2016', 'guessed'),
  mixed('2016', 'warm'),
  mixed('2021', 'cold'),
  mixed('2021', 'guessed'),
  mixed('2021', 'warm'),
  google,
  shortTasks,
  denseTasks('2016'),
  denseTasks('2021'),
  byTheHour,
];
