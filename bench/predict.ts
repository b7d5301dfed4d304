/**
 * Replay of the Google 2011 trace through JVuPredict: speed and quality of its predictions.
 *
 *   node bench/predict.ts [--data DIR] [--jobs N] [--order end|submission] [--max-feature-values N]
 *                         [--no-baselines] [--json]
 *
 * Each of the 672,074 jobs is predicted at its submission. Jobs that end in FINISH are learned at their end and scored:
 * runtime = end - last schedule. Other jobs (KILL, FAIL, still running at the end) are predicted, but neither scored
 * nor learned, as their full running time is unknown. `--order submission` learns each runtime right after its
 * prediction instead: the optimistic reading of the paper's replay.
 *
 * No randomness: equal input gives equal predictions (seed: none).
 */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { createGunzip } from 'node:zlib';
import { NO_RESOURCES } from '../lib/domain/resources.ts';
import type { JobFeatures } from '../lib/domain/forecasts.ts';
import { FEATURES } from '../lib/stages/estimate/features.ts';
import { ESTIMATORS } from '../lib/stages/estimate/histories.ts';
import { JvuPredict } from '../lib/stages/estimate/predictor.ts';
import { epochMs, raw, seconds } from '../lib/kernel/units.ts';

interface Trace {
  readonly jobs: number;
  readonly user: Int32Array;
  readonly program: Int32Array;
  readonly name: Int32Array;
  readonly submitS: Float64Array;
  readonly endS: Float64Array;
  /** Running time; -1 for ends other than FINISH. */
  readonly runtimeS: Float64Array;
}

const columns = { user: 1, program: 2, name: 3, submit: 5, lastSchedule: 7, end: 8, endEvent: 9 } as const;
const MOST_JOBS = 700_000;

async function readTrace(file: string, limit: number): Promise<Trace> {
  const size = Math.min(limit, MOST_JOBS);
  const int = (): Int32Array => new Int32Array(size);
  const real = (): Float64Array => new Float64Array(size);
  const t = { user: int(), program: int(), name: int(), submitS: real(), endS: real(), runtimeS: real().fill(-1) };
  let jobs = -1;
  // The table is numbers only (SOURCE.txt): no quoting to parse.
  for await (const line of createInterface({ input: createReadStream(file).pipe(createGunzip()) })) {
    const i = jobs++;
    if (i === -1) continue;
    if (i >= size) break;
    const cells = line.split(',');
    const number = (c: number): number => Number(cells[c]);
    t.user[i] = number(columns.user);
    t.program[i] = number(columns.program);
    t.name[i] = number(columns.name);
    t.submitS[i] = number(columns.submit);
    if (cells[columns.endEvent] !== 'FINISH') continue;
    t.endS[i] = number(columns.end);
    t.runtimeS[i] = number(columns.end) - number(columns.lastSchedule);
  }
  return { jobs: Math.min(jobs, size), ...t };
}

/** Submissions (job number) and ends (~job number) in order of time; at one instant ends come first. */
function eventsOf(trace: Trace, order: string): Int32Array {
  const finished = trace.runtimeS.subarray(0, trace.jobs).reduce((n, r) => n + (r >= 0 ? 1 : 0), 0);
  const events = new Int32Array(trace.jobs + finished);
  if (order === 'submission') {
    let at = 0;
    for (let i = 0; i < trace.jobs; i++) {
      events[at++] = i;
      if ((trace.runtimeS[i] as number) >= 0) events[at++] = ~i;
    }
    return events;
  }
  const ends = [...Array(trace.jobs).keys()].filter((i) => (trace.runtimeS[i] as number) >= 0);
  ends.sort((a, b) => (trace.endS[a] as number) - (trace.endS[b] as number) || a - b);
  let at = 0;
  let next = 0;
  for (let i = 0; i < trace.jobs; i++) {
    while (next < ends.length && (trace.endS[ends[next] as number] as number) <= (trace.submitS[i] as number)) {
      events[at++] = ~(ends[next++] as number);
    }
    events[at++] = i;
  }
  while (next < ends.length) events[at++] = ~(ends[next++] as number);
  return events;
}

/** Texts for a column's numbers, made once, as an API would receive them. */
const textsOf = (prefix: string, column: Int32Array): string[] =>
  Array.from({ length: column.reduce((a, b) => Math.max(a, b), 0) + 1 }, (_, i) => `${prefix}${i}`);

function featuresBy(trace: Trace): (i: number) => JobFeatures {
  const users = textsOf('user-', trace.user);
  const programs = textsOf('program-', trace.program);
  const names = textsOf('job-', trace.name);
  return (i) => ({
    owner: users[trace.user[i] as number] as string,
    program: programs[trace.program[i] as number] as string,
    jobName: names[trace.name[i] as number] as string,
    stage: 'main',
    // The table has no resource requests, so features with them are left out.
    resources: NO_RESOURCES,
    submittedMs: epochMs((trace.submitS[i] as number) * 1000),
  });
}

interface Replay {
  readonly pointS: Float64Array;
  /** Number of choices of each feature:estimator pair. */
  readonly chosen: Map<string, number>;
  readonly wallS: number;
  readonly cpuS: number;
  readonly featureValues: number;
}

/** The timed part: a full forecast (distribution and reason) per submission, learning per end. */
function replay(trace: Trace, events: Int32Array, maxFeatureValues: number | undefined): Replay {
  const features = featuresBy(trace);
  const predictor = new JvuPredict(maxFeatureValues === undefined ? {} : { maxFeatureValues });
  const pointS = new Float64Array(trace.jobs).fill(NaN);
  const pairs = new Int16Array(trace.jobs).fill(-1);
  const featureAt = new Map(FEATURES.map((f, i) => [f.name, i]));
  const estimatorAt = new Map<string, number>(ESTIMATORS.map((e, i) => [e, i]));
  const cpu = process.cpuUsage();
  const began = performance.now();
  for (const event of events) {
    if (event < 0) {
      predictor.learn(features(~event), seconds(trace.runtimeS[~event] as number));
      continue;
    }
    const forecast = predictor.predict(features(event));
    if (forecast === null) continue;
    pointS[event] = raw(forecast.evidence.pointS);
    const { feature, estimator } = forecast.evidence;
    pairs[event] = (featureAt.get(feature) ?? 0) * ESTIMATORS.length + (estimatorAt.get(estimator) ?? 0);
  }
  const used = process.cpuUsage(cpu);
  const wallS = (performance.now() - began) / 1000;
  const chosen = new Map<string, number>();
  pairs.forEach((code, i) => {
    if (code === -1 || (trace.runtimeS[i] as number) < 0) return;
    const pair = `${FEATURES[Math.floor(code / ESTIMATORS.length)]?.name}:${ESTIMATORS[code % ESTIMATORS.length]}`;
    chosen.set(pair, (chosen.get(pair) ?? 0) + 1);
  });
  return {
    pointS,
    chosen,
    wallS,
    cpuS: (used.user + used.system) / 1e6,
    featureValues: predictor.size,
  };
}

/** Untimed: predictions of each single pair, and the share of truths at or below the 95 % quantile. */
function baselines(trace: Trace, events: Int32Array) {
  const features = featuresBy(trace);
  const predictor = new JvuPredict();
  const tracked = ['job', 'program', 'owner', 'owner+program', 'all'].map((name) => ({
    name,
    index: FEATURES.findIndex((f) => f.name === name),
    unique: 0,
    within2x: new Float64Array(ESTIMATORS.length),
  }));
  const last = new Map<number, number>();
  let lastWithin2x = 0;
  let lastUnknown = 0;
  let belowP95 = 0;
  let scored = 0;
  const key = (i: number): number => (trace.user[i] as number) * 1_000_000 + (trace.program[i] as number);
  for (const event of events) {
    const i = event < 0 ? ~event : event;
    const truthS = trace.runtimeS[i] as number;
    if (event < 0) {
      predictor.learn(features(i), seconds(truthS));
      last.set(key(i), truthS);
    } else if (truthS >= 0) {
      scored++;
      const before = last.get(key(i));
      if (before === undefined) lastUnknown++;
      else if (within(before, truthS, 2)) lastWithin2x++;
      for (const f of tracked) {
        const candidates = predictor.candidates(features(i), f.index);
        if (candidates === null) f.unique++;
        else candidates.forEach((s, e) => (f.within2x[e] = (f.within2x[e] as number) + (within(s, truthS, 2) ? 1 : 0)));
      }
      const d = predictor.predict(features(i))?.runtime;
      if (d !== undefined) belowP95 += truthS <= p95(d.atS, d.weight) ? 1 : 0;
    }
  }
  return {
    sameAsLastTime: { within2x: lastWithin2x / scored, noHistory: lastUnknown / scored },
    truthAtOrBelowP95: belowP95 / scored,
    pairs: tracked.flatMap((f) =>
      ESTIMATORS.map((estimator, e) => ({
        pair: `${f.name}:${estimator}`,
        within2x: (f.within2x[e] as number) / scored,
        // As in the paper: among jobs whose feature value had a history.
        within2xOfKnown: (f.within2x[e] as number) / Math.max(1, scored - f.unique),
        noHistory: f.unique / scored,
      })),
    ),
  };
}

function p95(atS: Float64Array, weight: Float64Array): number {
  let mass = 0;
  for (let i = 0; i < atS.length; i++) {
    mass += weight[i] as number;
    if (mass >= 0.95) return atS[i] as number;
  }
  return atS.at(-1) as number;
}

/**
 * JamaisVu section 6.2: between -50 % and +100 % of the truth is within a factor of two. Runtimes of 0 s count as 1 ms.
 */
function within(predictedS: number, truthS: number, factor: number): boolean {
  const truth = Math.max(truthS, 0.001);
  return predictedS >= truth / factor && predictedS <= truth * factor;
}

interface Share {
  readonly group: string;
  readonly users: number;
  readonly jobs: number;
  readonly within2x: number;
  readonly within10Percent: number;
  readonly within10x: number;
}

function score(trace: Trace, pointS: Float64Array, jobs: readonly number[], group: string): Share {
  const share = (ok: (p: number, t: number) => boolean): number =>
    jobs.filter((i) => ok(pointS[i] as number, trace.runtimeS[i] as number)).length / Math.max(1, jobs.length);
  return {
    group,
    users: new Set(jobs.map((i) => trace.user[i])).size,
    jobs: jobs.length,
    within2x: share((p, t) => within(p, t, 2)),
    within10Percent: share((p, t) => Math.abs(p - t) <= 0.1 * t),
    within10x: share((p, t) => within(p, t, 10)),
  };
}

/** Classes of users by finished jobs: those with more runs have a longer history. */
const VOLUMES = [
  ['1 to 9 jobs', 1, 10],
  ['10 to 99 jobs', 10, 100],
  ['100 to 999 jobs', 100, 1000],
  ['1,000 to 9,999 jobs', 1000, 10_000],
  ['10,000 jobs and more', 10_000, Infinity],
] as const;

function perGroup(trace: Trace, pointS: Float64Array): Share[] {
  const byUser = new Map<number, number[]>();
  for (let i = 0; i < trace.jobs; i++) {
    if ((trace.runtimeS[i] as number) < 0) continue;
    const user = trace.user[i] as number;
    const jobs = byUser.get(user);
    if (jobs === undefined) byUser.set(user, [i]);
    else jobs.push(i);
  }
  const all = [...byUser.values()];
  return [
    score(trace, pointS, all.flat(), 'all users'),
    ...VOLUMES.map(([name, from, to]) =>
      score(trace, pointS, all.filter((jobs) => jobs.length >= from && jobs.length < to).flat(), name),
    ),
  ];
}

/** JamaisVu sections 3.2 (table 1) and 6.2 (figure 12), on the same 385,582 jobs. */
const PAPER = {
  within2x: 0.9,
  bestSinglePair: { pair: 'ljob-recent (here program:recent)', outside2x: 0.12 },
  table1: [
    { feature: 'job', outside2x: 0.24, unique: 0.3825 },
    { feature: 'ljob (here program)', outside2x: 0.12, unique: 0.0837 },
    { feature: 'user (here owner)', outside2x: 0.33, unique: 0.0004 },
  ],
};

const { values: options } = parseArgs({
  options: {
    data: { type: 'string', default: process.env['EBB_DATA_DIR'] ?? '../shared/data' },
    jobs: { type: 'string', default: String(MOST_JOBS) },
    order: { type: 'string', default: 'end' },
    'max-feature-values': { type: 'string' },
    baselines: { type: 'boolean', default: true },
    json: { type: 'boolean', default: false },
  },
  allowNegative: true,
});
const file = join(options.data, 'google-2011', 'jobs.csv.gz');
const trace = await readTrace(file, Number(options.jobs));
const events = eventsOf(trace, options.order);
const bound = options['max-feature-values'];
const run = replay(trace, events, bound === undefined ? undefined : Number(bound));
const groups = perGroup(trace, run.pointS);
const base = options.baselines ? baselines(trace, events) : null;
const report = {
  inputs: {
    file,
    jobs: trace.jobs,
    scored: groups[0]?.jobs ?? 0,
    learnAt: options.order,
    seed: 'none (no randomness)',
  },
  versions: { node: process.version, v8: process.versions.v8 },
  speed: {
    predictions: trace.jobs,
    learned: events.length - trace.jobs,
    wallS: run.wallS,
    cpuS: run.cpuS,
    predictionsPerWallS: trace.jobs / run.wallS,
    featureValues: run.featureValues,
    rssMiB: process.memoryUsage.rss() / 2 ** 20,
  },
  groups,
  chosen: Object.fromEntries([...run.chosen].sort((a, b) => b[1] - a[1])),
  ...base,
  paper: PAPER,
};

const percent = (x: number): string => `${(x * 100).toFixed(1)} %`;
if (options.json) console.log(JSON.stringify(report, null, 2));
else {
  const { inputs, versions, speed } = report;
  const line = (...cells: (string | number)[]): void => {
    console.log(cells.map((c, i) => (i === 0 ? String(c).padEnd(28) : String(c).padStart(12))).join(''));
  };
  console.log(
    `${inputs.file}: ${inputs.jobs} jobs, ${inputs.scored} finished and scored; learning at ${inputs.learnAt}`,
  );
  console.log(`node ${versions.node}; seed: ${inputs.seed}`);
  console.log(
    `${Math.round(speed.predictionsPerWallS)} predictions/s with ${speed.learned} runs learned between them ` +
      `(${speed.wallS.toFixed(2)} s wall, ${speed.cpuS.toFixed(2)} s CPU; ${speed.featureValues} feature-values, ${Math.round(speed.rssMiB)} MiB)\n`,
  );
  line('user group', 'users', 'jobs', 'within 2x', 'within 10 %', 'within 10x');
  for (const g of groups) {
    line(g.group, g.users, g.jobs, percent(g.within2x), percent(g.within10Percent), percent(g.within10x));
  }
  line('paper (section 6.2)', '', '', percent(PAPER.within2x));
  if (base !== null) {
    console.log('');
    line('baseline', '', 'no history', 'within 2x', 'of known');
    const s = base.sameAsLastTime;
    line('same as last time', '', percent(s.noHistory), percent(s.within2x), percent(s.within2x / (1 - s.noHistory)));
    for (const p of base.pairs) {
      if (!p.pair.includes('filtered')) {
        line(p.pair, '', percent(p.noHistory), percent(p.within2x), percent(p.within2xOfKnown));
      }
    }
    for (const t of PAPER.table1) line(`paper: ${t.feature}`, '', percent(t.unique), '', percent(1 - t.outside2x));
    console.log(`\ntruth at or below the forecast's 95 % quantile: ${percent(base.truthAtOrBelowP95)}`);
  }
  console.log('\nchosen most often (of scored jobs)');
  for (const [pair, n] of Object.entries(report.chosen).slice(0, 12)) line(pair, '', percent(n / inputs.scored));
}
