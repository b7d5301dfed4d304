import { readdirSync, readFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from '@jest/globals';
import { raw } from '../../../lib/kernel/units.ts';
import { importMarket } from '../../../lib/drivers/local/market/import.ts';
import { readMarket } from '../../../lib/drivers/local/market/file.ts';
import { openWorkload } from '../../../lib/workload/open.ts';
import type { WorkloadOptions } from '../../../lib/workload/options.ts';

/*
 * A second reading of the same real files: unpacked at once, split by hand, summed. It shares no code with the readers,
 * so that a line they lose or a column they mistake shows as another count or another sum.
 */

const data = process.env['EBB_DATA_DIR'] ?? join(import.meta.dirname, '../../../../shared/data');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-naive-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function onFile(path: string, name: string, test: (path: string) => Promise<void>): void {
  const full = join(data, path);
  const present = existsSync(full);
  if (!present) console.warn(`skipped: no ${full} (set EBB_DATA_DIR)`);
  (present ? it : it.skip)(`${path}: ${name}`, () => test(full), 600_000);
}

type Row = Readonly<Record<string, string>>;

const textOf = (path: string): string => {
  const bytes = readFileSync(path);
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
};
const linesIn = (path: string): string[] => textOf(path).split('\n').filter(Boolean);
/** Rows of a table whose first line names the columns; nothing in these files is quoted. */
function rowsIn(path: string): Row[] {
  const [header = '', ...lines] = linesIn(path);
  const names = header.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, i) => [names[i] ?? '', cell])));
}
const total = (numbers: Iterable<number>): number => {
  let sum = 0;
  for (const n of numbers) sum += n;
  return sum;
};
/** What a reader makes of a running time of 0. */
const seconds = (s: number): number => (s === 0 ? 0.001 : s);

interface Totals {
  jobs: number;
  tasks: number;
  runtimeS: number;
  submittedS: number;
  /** vCPUs asked for by all tasks, in thousandths. */
  milliCpu: number;
  dependencies: number;
}
const NOTHING: Totals = { jobs: 0, tasks: 0, runtimeS: 0, submittedS: 0, milliCpu: 0, dependencies: 0 };

async function readByReader(path: string, options: WorkloadOptions = {}): Promise<Totals & { bad: number }> {
  const workload = await openWorkload(path, { deadlines: 'none', fromS: 0, ...options });
  const sums = { ...NOTHING };
  for await (const { submittedS, spec, truth } of workload.jobs()) {
    sums.jobs++;
    sums.submittedS += submittedS;
    for (const stage of spec.stages) {
      sums.tasks += stage.tasks;
      sums.milliCpu += stage.tasks * raw(stage.resources.cpu);
      sums.dependencies += stage.dependsOn.length;
      sums.runtimeS += total(truth.get(stage.name)?.runtimeS ?? []);
    }
  }
  return { ...sums, bad: workload.report().bad.count };
}

/** Sums of many fractions differ by their order. */
function expectClose(got: Partial<Totals>, want: Partial<Totals>): void {
  for (const [name, value] of Object.entries(want)) {
    const other = got[name as keyof Totals] ?? NaN;
    expect({ [name]: Math.abs(other - value) <= 1e-9 * Math.max(1, Math.abs(value)) ? value : other }).toEqual({
      [name]: value,
    });
  }
}

describe('workloads, read a second time by hand', () => {
  onFile('google-2011/jobs.csv.gz', 'jobs, submissions and running times', async (path) => {
    const rows = rowsIn(path).filter((r) => r['end_event'] === 'FINISH' && Number(r['submit_s']) > 0);
    const got = await readByReader(path);
    expect(got.bad).toBe(0);
    expectClose(got, {
      jobs: rows.length,
      tasks: rows.length,
      submittedS: total(rows.map((r) => Number(r['submit_s']))),
      runtimeS: total(rows.map((r) => seconds(Number(r['end_s']) - Number(r['last_schedule_s'])))),
    });
  });

  onFile('google-2011/task_attempts.csv.gz', 'tasks, running times and requests', async (path) => {
    const finished = new Map<string, { runtimeS: number; milliCpu: number }>();
    const firstS = new Map<string, number>();
    const done = new Set<string>();
    for (const r of rowsIn(path)) {
      const job = r['job_id'] ?? '';
      firstS.set(job, Math.min(firstS.get(job) ?? Infinity, Number(r['submit_s'])));
      const task = `${job}/${r['task_index']}`;
      if (r['end_event'] !== 'FINISH' || finished.has(task)) continue;
      done.add(job);
      // Requests are fractions of a machine of 64 vCPUs, and at least a hundredth of a vCPU.
      const milliCpu = Math.max(10, Math.ceil(Number(r['cpu_req']) * 64_000 - 1e-9));
      finished.set(task, { runtimeS: seconds(Number(r['end_s']) - Number(r['schedule_s'])), milliCpu });
    }
    const got = await readByReader(path);
    expect(got.bad).toBe(0);
    expectClose(got, {
      jobs: done.size,
      tasks: finished.size,
      runtimeS: total([...finished.values()].map((t) => t.runtimeS)),
      milliCpu: total([...finished.values()].map((t) => t.milliCpu)),
      submittedS: total([...done].map((job) => firstS.get(job) ?? NaN)),
    });
  });

  onFile('facebook-2010/FB-2010_samples_24_times_1hr_0.tsv.gz', 'jobs, submissions and tasks', async (path) => {
    const rows = linesIn(path).map((line) => line.split('\t').slice(1).map(Number));
    const maps = rows.map(([, , bytes = 0]) => Math.max(1, Math.ceil(bytes / 2 ** 28)));
    const reduces = rows.map(([, , , shuffle = 0, output = 0]) =>
      shuffle === 0 ? 0 : Math.max(1, Math.ceil(Math.max(shuffle, output) / 2 ** 30)),
    );
    const got = await readByReader(path);
    expect(got.bad).toBe(0);
    expectClose(got, {
      jobs: rows.length,
      submittedS: total(rows.map(([atS = NaN]) => atS)),
      tasks: total(maps) + total(reduces),
    });
  });

  onFile('alibaba-gpu-2023/openb_pod_list_default.csv.gz', 'pods, running times and requests', async (path) => {
    const rows = rowsIn(path).filter(
      (r) =>
        r['scheduled_time'] !== '' &&
        Number(r['creation_time']) > 0 &&
        r['pod_phase'] !== 'Failed' &&
        Number(r['deletion_time']) < 12_902_960,
    );
    const got = await readByReader(path);
    expect(got.bad).toBe(0);
    expectClose(got, {
      jobs: rows.length,
      submittedS: total(rows.map((r) => Number(r['creation_time']))),
      runtimeS: total(rows.map((r) => seconds(Number(r['deletion_time']) - Number(r['scheduled_time'])))),
      milliCpu: total(rows.map((r) => Number(r['cpu_milli']))),
    });
  });

  onFile('alibaba-2018-dags/alibaba2018_random_6600_jobs.csv.gz', 'jobs and instances', async (path) => {
    const jobs = Map.groupBy(rowsIn(path), (r) => r['job_name'] ?? '');
    const whole = [...jobs.values()].filter((rows) => rows.every((r) => r['status'] === 'Terminated'));
    const got = await readByReader(path);
    expect(got.bad).toBe(0);
    expectClose(got, {
      jobs: whole.length,
      tasks: total(whole.flat().map((r) => Number(r['instance_num']))),
      submittedS: total(whole.map((rows) => Math.min(...rows.map((r) => Number(r['start_s']))))),
    });
    // Running times of a stage's tasks are drawn about its mean.
    const meant = total(whole.flat().map((r) => Number(r['instance_num']) * Number(r['mean_instance_s'])));
    expect(Math.abs(got.runtimeS / meant - 1)).toBeLessThan(0.01);
  });

  onFile('tpch-spark-dags/tpch_dags.jsonl.gz', 'queries, tasks, dependencies and measured times', async (path) => {
    interface Dag {
      readonly edges: readonly (readonly number[])[];
      readonly stages: readonly {
        readonly n_tasks: number;
        readonly first_wave_ms: Readonly<Record<string, readonly number[]>>;
        readonly rest_wave_ms: Readonly<Record<string, readonly number[]>>;
      }[];
    }
    const dags = linesIn(path).map((line) => JSON.parse(line) as Dag);
    const stages = dags.flatMap((d) => d.stages);
    /** Means of the times on the fewest executors, so that stages whose times are cut or drawn again count as well. */
    const meanS = (s: (typeof stages)[number]): number => {
      const fewest = Math.min(
        ...Object.entries(s.first_wave_ms).flatMap(([n, times]) => (times.length > 0 ? [Number(n)] : [])),
      );
      const times = [...(s.first_wave_ms[fewest] ?? []), ...(s.rest_wave_ms[fewest] ?? [])];
      return total(times) / times.length / 1000;
    };
    const got = await readByReader(path, { fromS: undefined });
    expect(got.bad).toBe(0);
    expectClose(got, {
      jobs: dags.length,
      tasks: total(stages.map((s) => s.n_tasks)),
      dependencies: total(dags.map((d) => new Set(d.edges.map(String)).size)),
    });
    const meant = total(stages.map((s) => s.n_tasks * meanS(s)));
    expect(Math.abs(got.runtimeS / meant - 1)).toBeLessThan(0.01);
  });

  onFile('workflow-instances/workflows.jsonl.gz', 'workflows, tasks and running times', async (path) => {
    interface Flow {
      readonly tasks: readonly { readonly rt: number }[];
    }
    const flows = linesIn(path).map((line) => JSON.parse(line) as Flow);
    const tasks = flows.flatMap((f) => f.tasks);
    const got = await readByReader(path, { fromS: undefined });
    expect(got.bad).toBe(0);
    expectClose(got, { jobs: flows.length, tasks: tasks.length, runtimeS: total(tasks.map((t) => seconds(t.rt))) });
  });

  // The archive's logs where the data folder has some; the fixture is in their layout.
  const logs = existsSync(data)
    ? readdirSync(data, { recursive: true, encoding: 'utf8' }).filter((f) => /\.swf(\.gz)?$/.test(f))
    : [];
  const fixture = join(import.meta.dirname, '../../fixtures/workloads/archive.swf');
  it.each([fixture, ...logs.map((log) => join(data, log))])('Standard Workload Format: %s', async (path) => {
    const jobs = linesIn(path)
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith(';'))
      .map((line) => line.split(/\s+/).map(Number))
      .filter(([, , , runS = -1, ran, , , asked, , , status]) => {
        const processors = Math.max(ran ?? -1, asked ?? -1);
        return runS >= 0 && processors > 0 && processors <= 10_000 && ![0, 2, 3, 4, 5].includes(status ?? -1);
      });
    const size = ([, , , , ran = -1, , , asked = -1]: readonly number[]): number => (ran > 0 ? ran : asked);
    const got = await readByReader(path);
    expect(got.bad).toBe(0);
    expectClose(got, {
      jobs: jobs.length,
      tasks: total(jobs.map(size)),
      runtimeS: total(jobs.map((j) => size(j) * seconds(j[3] ?? NaN))),
      submittedS: total(jobs.map((j) => j[1] ?? NaN)),
    });
  });
});

describe('markets, read a second time by hand', () => {
  /** Prices by market and time, the last of two rows of one instant. */
  type Prices = ReadonlyMap<string, number>;
  const naive = (rows: readonly Row[]): Prices =>
    new Map(
      rows.map((r) => [
        `${r['instance_type']}/${r['az']}/${Date.parse(r['timestamp_utc'] ?? '')}`,
        Number(r['price_usd_hr']),
      ]),
    );
  async function imported(source: string): Promise<{ prices: Prices; rows: number; badLines: number }> {
    const target = join(scratch, `${basename(source)}-${Date.now()}.ebbmarket`);
    const { rows, badLines } = await importMarket(source, target);
    const { trace } = readMarket(target);
    const prices = new Map<string, number>();
    for (const pool of trace.pools) {
      if (pool.option !== 'spot') continue;
      const { atMs, usdPerHour } = trace.prices(pool.id);
      atMs.forEach((at, i) => prices.set(`${pool.type.name}/${pool.zone}/${at}`, usdPerHour[i] ?? NaN));
    }
    return { prices, rows, badLines };
  }
  function expectSame(got: Prices, want: Prices): void {
    expect(got.size).toBe(want.size);
    let [different, sum] = [0, 0];
    for (const [key, usd] of want) {
      if (got.get(key) !== usd) different++;
      sum += usd;
    }
    expect(different).toBe(0);
    expect(Math.abs(total(got.values()) - sum)).toBeLessThan(1e-6 * sum);
  }

  for (const year of [2015, 2016, 2021]) {
    onFile(`spot-prices-us-east-1-${year}`, 'every price of every market', async (folder) => {
      const rows = rowsIn(join(folder, 'spot_price_changes.csv.gz'));
      const got = await imported(folder);
      expect([got.rows, got.badLines]).toEqual([rows.length, 0]);
      expectSame(got.prices, naive(rows));
    });
  }

  onFile('spot-prices-us-east-1-2016', "a part of it as AWS's own JSON", async (folder) => {
    const rows = rowsIn(join(folder, 'spot_price_changes.csv.gz')).filter((r) => r['az'] === 'us-east-1a');
    const records = rows.map((r) => ({
      AvailabilityZone: r['az'],
      InstanceType: r['instance_type'],
      ProductDescription: 'Linux/UNIX',
      SpotPrice: r['price_usd_hr'],
      Timestamp: r['timestamp_utc'],
    }));
    const source = join(scratch, 'history.json');
    writeFileSync(source, JSON.stringify({ SpotPriceHistory: records.toReversed() }, null, 1));
    const got = await imported(source);
    expect([got.rows, got.badLines]).toEqual([rows.length, 0]);
    expectSame(got.prices, naive(rows));
  });

  onFile('spot-availability-2022-2023', 'ticks with capacity in each series', async (folder) => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.json'));
    expect(files.length).toBeGreaterThan(10);
    for (const file of files) {
      const path = join(folder, file);
      interface Series {
        readonly metadata: { readonly gap_seconds: number };
        readonly data: readonly number[];
      }
      const { metadata, data: counts } = JSON.parse(textOf(path)) as Series;
      const nodes = Number(/^(\d+)-node$/.exec(basename(dirname(dirname(path))))?.[1] ?? Math.max(...counts));
      const target = join(scratch, `${file.replaceAll('/', '-')}.ebbmarket`);
      const { badLines } = await importMarket(path, target);
      const { trace } = readMarket(target);
      const [pool] = trace.pools.filter((p) => p.option === 'spot');
      const steps = pool === undefined ? null : trace.availability(pool.id);
      const upMs = total(
        [...(steps?.atMs ?? [])].map((at, i) =>
          steps?.available[i] === 1 ? (steps.atMs[i + 1] ?? raw(trace.endMs)) - at : 0,
        ),
      );
      const wantMs = counts.filter((n) => n >= nodes).length * metadata.gap_seconds * 1000;
      expect([file, badLines, Math.round(upMs)]).toEqual([file, 0, Math.round(wantMs)]);
    }
  });
});
