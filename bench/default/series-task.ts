/**
 * A task that fills a machine, on markets with capacity as measured in 2022 and 2023, spot at 0.3 of on-demand: three
 * grounds in the setting of "Can't Be Late" (Wu et al., NSDI 2024). The running time is known, and plans count the
 * set-up of each start (`restoreS`). The program saves when it is told to stop.
 */
import { invariant } from '../../lib/kernel/errors.ts';
import { epochMs, plus, seconds } from '../../lib/kernel/units.ts';
import { spread, type Asked, type Ground, type GroundCase, type Scene } from './ground.ts';
import { loneJob } from './jobs.ts';
import { HOUR_MS, SERIES, seriesFiles, seriesMarket, windowsIn } from './markets.ts';

interface SeriesTask {
  /** A series, or a folder of them as one market of several zones. */
  readonly file: string;
  readonly startMs: number;
  readonly windowHours: number;
  readonly workHours: number;
  readonly setupHours: number;
}

type Cases = readonly Omit<GroundCase<SeriesTask>, 'ground' | 'key'>[];

async function scene(of: SeriesTask, { data, seed }: Asked): Promise<Scene> {
  const trace = await seriesMarket(data, of.file);
  const [pool] = trace.pools;
  const setupS = of.setupHours * 3600;
  const workS = of.workHours * 3600;
  const fromMs = epochMs(of.startMs);
  const job = loneJob({
    runtimeS: workS,
    windowS: of.windowHours * 3600,
    resources: invariant(pool, 'a series has a pool').type.capacity,
    saves: true,
    spot: true,
    toldS: workS + setupS,
  });
  return {
    trace,
    fromMs,
    toMs: plus(fromMs, seconds(2 * of.windowHours * 3600)),
    jobs: [job],
    // Two cycles an hour would be too few to see a pool come back, sixty more than it takes.
    config: { cyclePeriodS: 120, restoreS: setupS, refundRule: 'none' },
    setupS: seconds(setupS),
    minGapS: seconds(1),
    vcpus: 100_000,
    seed,
    known: true,
    earlier: [],
  };
}

/** Windows of the files, one file after the other, so that long series do not outweigh the others. */
async function windows(
  { data }: Asked,
  files: readonly string[],
  of: { readonly hours: number; readonly most: number },
): Promise<readonly { readonly file: string; readonly startMs: number }[]> {
  const each = Math.max(1, Math.floor(of.most / files.length));
  const found: { readonly file: string; readonly startMs: number }[] = [];
  for (const file of files) {
    const starts = windowsIn(await seriesMarket(data, file), of.hours * HOUR_MS);
    found.push(...spread(starts, each).map((startMs) => ({ file, startMs })));
  }
  return found;
}

const SETUP_HOURS = { quick: [0.2], grid: [0.02, 0.2, 0.4], day: [0.05, 0.2, 0.4] } as const;
const needs = (): readonly string[] => [SERIES];

const GRID_WORK_HOURS = 48;

/** The grid of the paper: 48 hours of work. */
export const lateGrid: Ground<SeriesTask> = {
  name: 'late-grid',
  about:
    'the grid of Can’t Be Late: 48 h of work in 52, 70 and 92 h, change-over 0.02, 0.2 and 0.4 h, one pool of 2022 and 2023',
  needs,
  cases: async (asked) => {
    const cases: Cases[number][] = [];
    for (const windowHours of asked.quick ? [70] : [52, 70, 92]) {
      const most = asked.quick ? 4 : 24;
      for (const w of await windows(asked, seriesFiles(asked.data, asked.part), { hours: windowHours, most })) {
        for (const setupHours of asked.quick ? SETUP_HOURS.quick : SETUP_HOURS.grid) {
          const of = { ...w, windowHours, workHours: GRID_WORK_HOURS, setupHours };
          cases.push({ unit: `${w.file} ${windowHours} ${w.startMs}`, group: `${windowHours} h`, of });
        }
      }
    }
    return cases;
  },
  scene,
};

const DAY_HOURS = 24;

function dayCases(
  found: readonly { readonly file: string; readonly startMs: number }[],
  { quick }: Asked,
  fractions: readonly number[],
): Cases {
  return found.flatMap((w) =>
    fractions.flatMap((fraction) =>
      (quick ? SETUP_HOURS.quick : SETUP_HOURS.day).map((setupHours) => ({
        unit: `${w.file} ${w.startMs}`,
        group: `work ${fraction}`,
        of: { ...w, windowHours: DAY_HOURS, workHours: fraction * DAY_HOURS, setupHours },
      })),
    ),
  );
}

export const dayWindows: Ground<SeriesTask> = {
  name: 'day-windows',
  about: 'work of 0.2 to 0.8 of 24 h, change-over 0.05, 0.2 and 0.4 h, one pool of 2022 and 2023',
  needs,
  cases: async (asked) => {
    const most = asked.quick ? 4 : 24;
    const found = await windows(asked, seriesFiles(asked.data, asked.part), { hours: DAY_HOURS, most });
    return dayCases(found, asked, asked.quick ? [0.6] : [0.2, 0.4, 0.6, 0.8]);
  },
  scene,
};

/** Folders whose series are zones of one provider at one time and of one type. */
const ZONES = {
  tune: ['preemption/1-node/aws-04-19-2023'],
  report: ['preemption/1-node/aws-04-22-2023', 'preemption/1-node/gcp-04-30-2023', 'preemption/4-node/aws-08-03-2023'],
} as const;

export const severalZones: Ground<SeriesTask> = {
  name: 'several-zones',
  about: 'work of 0.4 to 0.8 of 24 h in three or four zones as one market, change-over 0.05, 0.2 and 0.4 h',
  needs,
  cases: async (asked) => {
    const found = await windows(asked, ZONES[asked.part], { hours: DAY_HOURS, most: asked.quick ? 3 : 18 });
    return dayCases(found, asked, asked.quick ? [0.6] : [0.4, 0.6, 0.8]);
  },
  scene,
};
