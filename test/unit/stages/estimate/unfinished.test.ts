import { knowing } from '../../../support/beliefs.ts';
import { describe, expect, it } from '@jest/globals';
import { Doubles, quantile, type Distribution } from '../../../../lib/domain/distribution.ts';
import type { Job, StageSpec, Task } from '../../../../lib/domain/job.ts';
import type { RunningTask, Snapshot } from '../../../../lib/domain/snapshot.ts';
import { DecisionMemory } from '../../../../lib/policy/memory.ts';
import { jvuPredict } from '../../../../lib/stages/estimate/jvupredict.ts';
import { JvuPredict } from '../../../../lib/stages/estimate/predictor.ts';
import { featuresOf } from '../../../../lib/domain/job-features.ts';
import { productLimit } from '../../../../lib/stages/estimate/with-unfinished.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { epochMs, minus, raw, seconds, ZERO_S } from '../../../../lib/kernel/units.ts';
import { attempt, job, snapshot, spec, stage } from '../../../support/builders.ts';

const NOW = epochMs(1_700_000_000_000);
const SAVES = { signal: 'SIGTERM', graceS: seconds(30), everyS: null } as const;

describe('the product-limit estimate', () => {
  // Remission of leukaemia under 6-MP, weeks: Freireich et al., Blood 21, 1963, as in Kalbfleisch and Prentice, "The
  // Statistical Analysis of Failure Time Data", 2002, table 1.2.
  const ended = [
    [6, 3],
    [7, 1],
    [10, 1],
    [13, 1],
    [16, 1],
    [22, 1],
    [23, 1],
  ] as const;
  const going = [
    [6, 1],
    [9, 1],
    [10, 1],
    [11, 1],
    [17, 1],
    [19, 1],
    [20, 1],
    [25, 1],
    [32, 2],
    [34, 1],
    [35, 1],
  ] as const;

  const lastedOf = (points: readonly (readonly [seconds: number, runs: number])[]) => ({
    atS: Float64Array.from(points, ([s]) => s),
    runs: Uint32Array.from(points, ([, n]) => n),
    from: 0,
  });

  it('is that of the textbook', () => {
    const atS = Float64Array.from([...ended.map(([s]) => s), 1000]);
    const masses = Float64Array.from([...ended.map(([, n]) => n), 0]);
    const { atS: points, weight } = productLimit(atS, masses, lastedOf(going), new Doubles());
    const survival = (s: number): number => weight.reduce((sum, w, i) => (points[i]! > s ? sum + w : sum), 0);
    const table = [0.857, 0.807, 0.753, 0.69, 0.627, 0.538, 0.448];
    for (const [i, [s]] of ended.entries()) expect(survival(s)).toBeCloseTo(table[i] ?? NaN, 3);
    expect(weight.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
    // What is beyond: as likely as not within as long again as the longest has lasted.
    expect(survival(35)).toBeCloseTo(0.448, 3);
    expect(survival(70) / survival(35)).toBeCloseTo(1 / 3, 6);
  });

  it('is what ended where nothing goes on', () => {
    const atS = Float64Array.of(10, 20, 40);
    expect(productLimit(atS, Float64Array.of(1, 2, 1), lastedOf([]), new Doubles())).toEqual({
      atS,
      weight: Float64Array.of(0.25, 0.5, 0.25),
    });
  });
});

describe('runs that have not ended', () => {
  const jobOf = (name: string, over: Partial<StageSpec> = {}): Job =>
    job({
      id: jobId(`j-${name}`),
      spec: spec({ name, owner: 'ada', stages: [stage({ expectedRuntimeS: null, command: [name], ...over })] }),
    });
  const runningFor = (of: Job, s: number): RunningTask => ({
    attempt: attempt({ job: of.id, state: 'running', startedMs: minus(NOW, seconds(s)) }),
    class: 'deadline',
    stage: of.spec.stages[0]!,
    deadlineMs: null,
    readS: ZERO_S,
    savedS: ZERO_S,
  });
  const forecastOf = (
    of: Job,
    history: JvuPredict,
    { memory, ...more }: Partial<Snapshot> & { with?: readonly Job[]; memory?: DecisionMemory } = {},
  ) => {
    const jobs = [of, ...(more.with ?? [])];
    const there = snapshot({ nowMs: NOW, jobs: new Map(jobs.map((j) => [j.id, j])), ...more });
    const forecast = jvuPredict(knowing(there, history, memory)).get(`${of.id}/main`);
    if (forecast === undefined) throw new Error('the stage has no forecast');
    return forecast;
  };
  const learned = (of: Job, runs: readonly number[]): JvuPredict => {
    const history = new JvuPredict();
    for (const s of runs) history.learn(featuresOf(of.spec, of.spec.stages[0]!, of.submittedMs), seconds(s));
    return history;
  };
  const at = (d: Distribution, p: number): number => raw(quantile(d, p));
  const SHORT = Array<number>(12).fill(60);

  it('count: of a job whose short runs ended first the others are not thought short', () => {
    const train = jobOf('train-1');
    const others = Array.from({ length: 12 }, (_, i) => jobOf(`train-${i + 2}`));
    const history = learned(train, SHORT);
    expect(at(forecastOf(train, history).runtime, 0.95)).toBeLessThanOrEqual(120);
    const running = others.map((o) => runningFor(o, 900));
    const { runtime, reason } = forecastOf(train, history, { with: others, running });
    expect(at(runtime, 0.4)).toBe(60);
    expect(at(runtime, 0.6)).toBeGreaterThan(900);
    expect(reason).toMatch(/12 unfinished, the longest for 1\d\.\d min so far/);
  });

  it('count also where they were interrupted and wait', () => {
    const train = jobOf('train-1');
    const other = jobOf('train-2');
    const waits: Task = {
      job: other.id,
      stage: 'main',
      index: 0,
      state: 'waiting',
      attempts: 1,
      failures: 0,
      keptS: ZERO_S,
      ranS: seconds(5000),
      notBeforeMs: null,
    };
    const history = learned(train, [60, 60]);
    const before = at(forecastOf(train, history).runtime, 0.95);
    expect(at(forecastOf(train, history, { with: [other], tasks: [waits] }).runtime, 0.95)).toBeGreaterThan(before);
  });

  it('count as what they ran before, where they run again', () => {
    const train = jobOf('train-1');
    const history = learned(train, [60, 60]);
    const again = { ...runningFor(train, 40), ranS: seconds(5000) };
    expect(at(forecastOf(train, history, { running: [again] }).runtime, 0.95)).toBeGreaterThan(5000 * 0.8);
  });

  it('say the most of a job that no run has ended of, whose owner is known by other programs', () => {
    const history = learned(jobOf('hello'), SHORT);
    const train = jobOf('train-1');
    const unknown = forecastOf(train, history);
    expect(unknown.basis).toBe('prior');
    expect(unknown.reason).toMatch(/cold start.*like others of its owner/);
    const other = jobOf('train-2');
    const { runtime } = forecastOf(train, history, { with: [other], running: [runningFor(other, 1800)] });
    expect(1 - cdf(runtime, 1800)).toBeGreaterThan(10 * (1 - cdf(unknown.runtime, 1800)));
  });

  it('change nothing for what saves its state', () => {
    const train = jobOf('train-1', { checkpoint: SAVES });
    const other = jobOf('train-2', { checkpoint: SAVES });
    const history = learned(train, SHORT);
    const running = Array.from({ length: 12 }, () => runningFor(other, 900));
    expect(forecastOf(train, history, { with: [other], running })).toEqual(forecastOf(train, history));
    const elsewhere = learned(jobOf('hello'), SHORT);
    expect(forecastOf(train, elsewhere).basis).toBe('history');
  });

  it('leave the timeout the longest that anything takes', () => {
    const train = jobOf('train-1', { timeoutS: seconds(1000) });
    const running = [runningFor(train, 900), runningFor(train, 950)];
    expect(at(forecastOf(train, new JvuPredict(), { running }).runtime, 1)).toBe(1000);
  });

  it('leave a forecast the very same until one of them lasts longer by a step', () => {
    const train = jobOf('train-1');
    const history = learned(train, SHORT);
    const memory = new DecisionMemory();
    const after = (s: number) =>
      forecastOf(train, history, { running: [runningFor(train, s), runningFor(train, s)], memory });
    expect(after(905)).toBe(after(900));
    expect(after(1200)).not.toBe(after(900));
  });
});

const cdf = ({ atS, weight }: Distribution, s: number): number =>
  atS.reduce((sum, x, i) => (x <= s ? sum + (weight[i] ?? 0) : sum), 0);
