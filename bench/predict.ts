/**
 * Replays logs of jobs through both predictors and prints how fast and how well they predict.
 *
 *   node bench/predict.ts [--data DIR] [--logs NAME,...] [--jobs N] [--order end|submission] [--max-feature-values N]
 *                         [--no-rivals] [--json]
 *
 * Each job is predicted when it is submitted. Jobs that end by themselves are learned from when they end and are scored
 * (of google-2011: runtime = end - last schedule). Others are predicted but neither scored nor learned from: how long
 * they would have run is not known. `--order submission` teaches each runtime right after its prediction instead, as if
 * it had been known at once: the optimistic reading of the paper's replay.
 *
 * Scored are all jobs, and those of the second half by number: warm, after the first half, and cold, from nothing.
 * Constants of the new predictor were chosen on the first half of google-2011; the other logs were looked at when they
 * were final. `NAME=PATH` replays any other log that `ebb simulate` reads.
 *
 * No randomness: the same input gives the same predictions (seed: none).
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { quantile } from '../lib/domain/distribution.ts';
import type { RuntimeForecast } from '../lib/domain/forecast.ts';
import type { JobFeatures, RuntimeHistory } from '../lib/domain/forecasts.ts';
import { raw, seconds, type Seconds } from '../lib/kernel/units.ts';
import { HintedForecasts } from '../lib/stages/estimate/cold-start.ts';
import { JvuPredict } from '../lib/stages/estimate/predictor.ts';
import { RecurringRuns } from '../lib/stages/estimate/recurring-runs.ts';
import { eventsOf, googleLog, workloadLog, type Log } from './predict/log.ts';
import { Rivals, type RivalScore } from './predict/rivals.ts';
import { Scores } from './predict/scores.ts';

interface Predictor extends RuntimeHistory {
  readonly size: number;
  learn(features: JobFeatures, runtime: Seconds): void;
}

/** Files of the logs, below the data folder. */
const FILES: Readonly<Record<string, string>> = {
  'workflow-instances': 'workflow-instances/workflows.jsonl.gz',
  'alibaba-gpu-2023': 'alibaba-gpu-2023/openb_pod_list_default.csv.gz',
  'alibaba-2018-dags': 'alibaba-2018-dags/alibaba2018_random_6600_jobs.csv.gz',
  'tpch-spark-dags': 'tpch-spark-dags/tpch_dags.jsonl.gz',
};

/** JamaisVu sections 3.2 (table 1) and 6.2, on the same 385,582 jobs of google-2011. */
const PAPER = { within2x: 0.9, bestSinglePair: 'ljob-recent (here program:recent)', bestSinglePairWithin2x: 0.88 };

const { values: options } = parseArgs({
  options: {
    data: { type: 'string', default: process.env['EBB_DATA_DIR'] ?? '../shared/data' },
    logs: { type: 'string', default: ['google-2011', ...Object.keys(FILES)].join(',') },
    jobs: { type: 'string' },
    order: { type: 'string', default: 'end' },
    'max-feature-values': { type: 'string' },
    rivals: { type: 'boolean', default: true },
    json: { type: 'boolean', default: false },
  },
  allowNegative: true,
});
const bound = options['max-feature-values'];
const limits = bound === undefined ? {} : { maxFeatureValues: Number(bound) };

const PREDICTORS = {
  jvupredict: { make: (): Predictor => new JvuPredict(limits), isHintWeighed: false },
  recurring: { make: (): Predictor => new RecurringRuns(limits), isHintWeighed: true },
} as const;
type Name = keyof typeof PREDICTORS;
const NAMES = Object.keys(PREDICTORS) as Name[];

function openLog(name: string): Promise<Log> {
  const limit = options.jobs === undefined ? undefined : Number(options.jobs);
  if (name === 'google-2011') return googleLog(options.data, limit);
  const [given = name, path] = name.split('=');
  return workloadLog(given, path ?? join(options.data, FILES[given] ?? given));
}

/** The timed part: a full forecast (distribution and reason) per submission, learning per end. */
function timed(log: Log, name: Name) {
  const events = eventsOf(log, options.order);
  const predictor = PREDICTORS[name].make();
  const cpu = process.cpuUsage();
  const began = performance.now();
  for (const event of events) {
    if (event < 0) predictor.learn(log.features(~event), seconds(log.runtimeS[~event] as number));
    else predictor.predict(log.features(event));
  }
  const used = process.cpuUsage(cpu);
  const wallS = (performance.now() - began) / 1000;
  return {
    predictions: log.size,
    learned: events.length - log.size,
    wallS,
    cpuS: (used.user + used.system) / 1e6,
    predictionsPerWallS: log.size / wallS,
    featureValues: predictor.size,
    rssMiB: process.memoryUsage.rss() / 2 ** 20,
  };
}

/** Scores of the runs from `scoredFrom` on; learned from are those from `learnedFrom` on. */
interface Part {
  readonly learnedFrom: number;
  readonly scores: readonly {
    readonly name: string;
    readonly from: number;
    readonly to: number;
    readonly of: Scores;
  }[];
}

function replay(log: Log, name: Name, { learnedFrom, scores }: Part): ReadonlyMap<string, number> {
  const { make, isHintWeighed } = PREDICTORS[name];
  const predictor = make();
  const chosen = new Map<string, number>();
  const hinted = new HintedForecasts({ isHintWeighed });
  // Stages with checkpoints: no forecast is blended with the prior for caution.
  const checkpoint = { signal: 'SIGUSR1', graceS: seconds(20), everyS: null } as const;
  for (const event of eventsOf(log, options.order, learnedFrom)) {
    const i = event < 0 ? ~event : event;
    const truthS = log.runtimeS[i] as number;
    const features = log.features(i);
    if (event < 0) predictor.learn(features, seconds(truthS));
    else if (truthS >= 0) {
      const expectedRuntimeS = features.expectedRuntimeS ?? null;
      const forecast = hinted.of(predictor.predict(features), { expectedRuntimeS, timeoutS: null, checkpoint });
      const pointS = pointOf(forecast);
      for (const { from, to, of } of scores) if (i >= from && i < to) of.add(pointS, forecast.runtime, truthS);
      const pair = `${forecast.evidence?.feature ?? forecast.basis}:${forecast.evidence?.estimator ?? ''}`;
      chosen.set(pair, (chosen.get(pair) ?? 0) + 1);
    }
  }
  return chosen;
}

/** The prior is no prediction; a guess is one. */
const pointOf = ({ evidence, basis, runtime }: RuntimeForecast): number =>
  evidence !== undefined ? raw(evidence.pointS) : basis === 'hint' ? raw(quantile(runtime, 0.5)) : NaN;

function rivalsOf(
  log: Log,
  from: number,
): { readonly all: readonly RivalScore[]; readonly warm: readonly RivalScore[] } {
  const [all, warm] = [new Rivals(), new Rivals()];
  for (const event of eventsOf(log, options.order)) {
    const i = event < 0 ? ~event : event;
    const truthS = log.runtimeS[i] as number;
    if (event < 0) for (const r of [all, warm]) r.learn(log.features(i), truthS);
    else if (truthS >= 0) {
      all.score(log.features(i), truthS);
      if (i >= from) warm.score(log.features(i), truthS);
    }
  }
  return { all: all.scores(), warm: warm.scores() };
}

function report(log: Log) {
  const half = Math.floor(log.size / 2);
  const predictors = NAMES.map((name) => {
    const parts = { whole: new Scores(), first: new Scores(), warm: new Scores(), cold: new Scores() };
    const { size } = log;
    const chosen = replay(log, name, {
      learnedFrom: 0,
      scores: [
        { name: 'whole', from: 0, to: size, of: parts.whole },
        { name: 'first half', from: 0, to: half, of: parts.first },
        { name: 'second half, warm', from: half, to: size, of: parts.warm },
      ],
    });
    replay(log, name, { learnedFrom: half, scores: [{ name: 'cold', from: half, to: size, of: parts.cold }] });
    return { name, parts, chosen: [...chosen].sort(([, a], [, b]) => b - a).slice(0, 12), groups: groupsOf(log, name) };
  });
  return {
    log: log.name,
    runs: log.size,
    scored: predictors[0]?.parts.whole.runs ?? 0,
    learnAt: options.order,
    predictors,
    ...(options.rivals && { rivals: rivalsOf(log, half) }),
    // Last: it warms up on the replays before.
    speed: Object.fromEntries(NAMES.map((name) => [name, timed(log, name)])),
  };
}

/** Owners by how many finished runs they have: the more one runs, the more there is to learn from. */
const VOLUMES = [1, 10, 100, 1000, 10_000] as const;

function groupsOf(log: Log, name: Name): readonly { readonly from: number; readonly of: Scores }[] {
  if (log.name !== 'google-2011') return [];
  const runs = new Map<string, number>();
  for (let i = 0; i < log.size; i++) {
    const { owner } = log.features(i);
    if ((log.runtimeS[i] as number) >= 0) runs.set(owner, (runs.get(owner) ?? 0) + 1);
  }
  const groups = VOLUMES.map((from) => ({ from, of: new Scores() }));
  const predictor = PREDICTORS[name].make();
  for (const event of eventsOf(log, options.order)) {
    const i = event < 0 ? ~event : event;
    const truthS = log.runtimeS[i] as number;
    const features = log.features(i);
    if (event < 0) predictor.learn(features, seconds(truthS));
    else if (truthS >= 0) {
      const forecast = predictor.predict(features);
      const group = groups.findLast(({ from }) => (runs.get(features.owner) ?? 0) >= from);
      group?.of.add(forecast === null ? NaN : pointOf(forecast), null, truthS);
    }
  }
  return groups;
}

type Report = ReturnType<typeof report>;
const percent = (x: number): string => `${(x * 100).toFixed(1)} %`;
const line = (...cells: readonly (string | number)[]): void => {
  console.log(cells.map((c, i) => (i === 0 ? String(c).padEnd(40) : String(c).padStart(12))).join(''));
};

function print(r: Report): void {
  console.log(`\n${r.log}: ${r.runs} runs, ${r.scored} ended by themselves and scored; learning at ${r.learnAt}`);
  for (const [name, s] of Object.entries(r.speed)) {
    const rate = `${Math.round(s.predictionsPerWallS)} predictions/s with ${s.learned} runs learned between them`;
    const cost = `${s.wallS.toFixed(2)} s wall, ${s.cpuS.toFixed(2)} s CPU; ${s.featureValues} feature-values`;
    console.log(`${name}: ${rate} (${cost}, ${Math.round(s.rssMiB)} MiB)`);
  }
  line('', 'within 2x', 'median 10 %', 'pinball', '95 % covers', 'PIT 1st', 'PIT 10th');
  for (const { name, parts } of r.predictors) {
    for (const [part, s] of Object.entries(parts)) {
      const label = { whole: 'all', first: 'first half', warm: 'second half, warm', cold: 'second half, cold' }[part];
      const [low = 0, high = 0] = [s.pit[0], s.pit[9]];
      const cells = [percent(s.within2x), percent(s.within10Percent), s.pinball.toFixed(4), percent(s.covered)];
      line(`${name}, ${label}`, ...cells, percent(low), percent(high));
    }
  }
  if (r.log === 'google-2011') line('paper (section 6.2), all', percent(PAPER.within2x));
  for (const { name, groups } of r.predictors) {
    for (const [i, { from, of }] of groups.entries()) {
      const to = groups[i + 1] === undefined ? ' and more' : ` to ${(groups[i + 1]?.from ?? 0) - 1}`;
      line(`${name}, owners of ${from}${to} runs`, percent(of.within2x), `of ${of.runs}`);
    }
  }
  for (const { name, within2x, unknown } of r.rivals?.all ?? []) {
    const warm = r.rivals?.warm.find((w) => w.name === name)?.within2x ?? NaN;
    line(`rival: ${name}`, percent(within2x), `warm ${percent(warm)}`, `new ${percent(unknown)}`);
  }
  for (const { name, chosen } of r.predictors) {
    const shares = chosen.slice(0, 8).map(([pair, n]) => `${pair} ${percent(n / r.scored)}`);
    console.log(`${name} chose: ${shares.join(', ')}`);
  }
}

const reports: Report[] = [];
for (const name of options.logs.split(',')) {
  const done = report(await openLog(name));
  reports.push(done);
  if (!options.json) print(done);
}
if (options.json) {
  const plain = (s: Scores) => ({
    runs: s.runs,
    within2x: s.within2x,
    within10Percent: s.within10Percent,
    within10x: s.within10x,
    pinball: s.pinball,
    covered: s.covered,
    pit: s.pit,
  });
  const versions = { node: process.version, v8: process.versions.v8 };
  const replacer = (_: string, value: unknown): unknown => (value instanceof Scores ? plain(value) : value);
  console.log(JSON.stringify({ versions, paper: PAPER, logs: reports }, replacer, 2));
}
