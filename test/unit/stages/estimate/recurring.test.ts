import { describe, expect, it } from '@jest/globals';
import type { RuntimeForecast } from '../../../../lib/domain/forecast.ts';
import { featuresOf } from '../../../../lib/domain/job-features.ts';
import type { Job, StageProgress, StageSpec } from '../../../../lib/domain/job.ts';
import { withTime, type RunningTimes } from '../../../../lib/domain/running-times.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { raw, seconds } from '../../../../lib/kernel/units.ts';
import type { AttemptEnded } from '../../../../lib/policy/learner.ts';
import { LoggedHistory } from '../../../../lib/stages/estimate/logged-history.ts';
import { JvuPredict } from '../../../../lib/stages/estimate/predictor.ts';
import { recurring } from '../../../../lib/stages/estimate/recurring.ts';
import { runtimeLearner } from '../../../../lib/stages/estimate/runtime-learner.ts';
import { attempt, job, snapshot, spec, stage } from '../../../support/builders.ts';
import { knowing } from '../../../support/beliefs.ts';
import { quantileOf } from '../../../support/recurring-jobs.ts';

const SAVES = { signal: 'SIGTERM', graceS: seconds(30), everyS: null } as const;

function jobOf(name: string, over: Partial<StageSpec> = {}, progress: Partial<StageProgress> = {}): Job {
  const of = spec({ name, owner: 'ada', stages: [stage({ command: [name], checkpoint: SAVES, ...over })] });
  const counts = { nextFresh: 0, waiting: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 };
  return job({
    id: jobId(`j-${name}`),
    spec: of,
    stages: [{ name: 'main', tasks: over.tasks ?? 1, ...counts, ...progress }],
  });
}

const featuresIn = (of: Job) => featuresOf(of.spec, of.spec.stages[0] ?? stage(), of.submittedMs);

function learn(history: LoggedHistory, of: Job, runsS: readonly number[]): LoggedHistory {
  for (const s of runsS) history.learn(featuresIn(of), seconds(s));
  return history;
}

function forecastOf(
  of: Job,
  history = new LoggedHistory(),
  more: Parameters<typeof snapshot>[0] = {},
): RuntimeForecast {
  const there = snapshot({ jobs: new Map([[of.id, of]]), ...more });
  const forecast = recurring(knowing(there, history)).get(`${of.id}/main`);
  if (forecast === undefined) throw new Error('the stage has no forecast');
  return forecast;
}

const median = (f: RuntimeForecast): number => quantileOf(f.runtime, 0.5);

describe('a job of which nothing is known', () => {
  it('has a wide prior, and is told the remedy', () => {
    const forecast = forecastOf(jobOf('train', { expectedRuntimeS: null }));
    expect(forecast.basis).toBe('prior');
    expect(forecast.reason).toMatch(/cold start.*expectedRuntime/);
  });

  it('has the guess, as a spread around it', () => {
    const forecast = forecastOf(jobOf('train', { expectedRuntimeS: seconds(600) }));
    expect(forecast.basis).toBe('hint');
    expect(quantileOf(forecast.runtime, 0.4)).toBeLessThan(600);
    expect(quantileOf(forecast.runtime, 0.6)).toBeGreaterThan(600);
  });

  it('is no likelier to last than its timeout', () => {
    const { runtime, reason } = forecastOf(jobOf('train', { expectedRuntimeS: seconds(600), timeoutS: seconds(700) }));
    expect(runtime.atS.at(-1)).toBe(700);
    expect(reason).toContain('timeout');
  });
});

describe('a guess', () => {
  const guessed = (name: string, guessS: number): Job => jobOf(name, { expectedRuntimeS: seconds(guessS) });

  it('is corrected by what earlier guesses of the owner were worth, also for a job never seen', () => {
    const history = new LoggedHistory();
    const guesses = { a: 6000, b: 30_000, c: 1200, d: 90_000 };
    for (const [name, guessS] of Object.entries(guesses)) learn(history, guessed(name, guessS), [guessS / 100]);
    const forecast = forecastOf(guessed('never-seen', 12_000), history);
    expect(median(forecast)).toBeGreaterThan(80);
    expect(median(forecast)).toBeLessThan(180);
    expect(forecast.evidence?.feature).toBe('guesses:owner');
  });

  it('becomes as sharp as the owner guesses', () => {
    const history = new LoggedHistory();
    for (let i = 0; i < 20; i++)
      learn(history, guessed(`job-${String.fromCharCode(97 + i)}`, 100 * (i + 1)), [
        100 * (i + 1) * (1 + (i % 3) / 10),
      ]);
    const { runtime } = forecastOf(guessed('never-seen', 5000), history);
    expect(quantileOf(runtime, 0.5)).toBeGreaterThan(5000);
    expect(quantileOf(runtime, 0.95)).toBeLessThan(9000);
  });

  it('does not replace the history of the job', () => {
    const history = learn(new LoggedHistory(), jobOf('train', { expectedRuntimeS: null }), Array<number>(10).fill(60));
    const forecast = forecastOf(guessed('train', 6000), history);
    expect(median(forecast)).toBeLessThan(70);
    expect(forecast.basis).toBe('history');
  });

  it('of a first time is weighed against what is known of the owner', () => {
    const history = new LoggedHistory();
    for (const name of ['a', 'b', 'c']) learn(history, jobOf(name, { expectedRuntimeS: null }), [60, 62, 61]);
    const forecast = forecastOf(guessed('never-seen', 6000), history);
    expect(quantileOf(forecast.runtime, 0.02)).toBeLessThan(100);
    expect(median(forecast)).toBeGreaterThan(60);
    expect(forecast.reason).toMatch(/expectedRuntime.*weighs \d+ % beside/);
  });

  it('of a first time counts less where the guesses of others were wrong', () => {
    const others = new LoggedHistory();
    for (let i = 0; i < 60; i++) {
      const bob = jobOf('bobs', { expectedRuntimeS: seconds(60 * 2 ** ((i * 5) % 12)) });
      others.learn({ ...featuresIn(bob), owner: `bob-${i}` }, seconds(7000));
    }
    learn(others, jobOf('a', { expectedRuntimeS: null }), [60, 62, 61]);
    expect(forecastOf(guessed('never-seen', 6000), others).basis).toBe('history');
  });
});

describe('tasks of the job itself', () => {
  const times = (runsS: readonly number[]): RunningTimes => {
    const of = runsS.reduce<RunningTimes | undefined>((t, s) => withTime(t, seconds(s)), undefined);
    if (of === undefined) throw new Error('no times');
    return of;
  };
  const running = (runsS: readonly number[]): Job =>
    jobOf('train', { tasks: 50, expectedRuntimeS: null }, { succeeded: runsS.length, times: times(runsS) });

  it('count at once', () => {
    const history = learn(new LoggedHistory(), jobOf('train', { expectedRuntimeS: null }), Array<number>(20).fill(60));
    const [one, eight] = [
      forecastOf(running([900]), history),
      forecastOf(running(Array<number>(8).fill(900)), history),
    ];
    expect(quantileOf(one.runtime, 0.6)).toBeGreaterThan(500);
    expect(median(eight)).toBeGreaterThan(800);
    expect(eight.reason).toMatch(/^8 tasks of this job have ended.*89 %/);
  });

  it('make an unknown job a known one', () => {
    const forecast = forecastOf(running([900, 950]));
    expect(forecast.basis).toBe('history');
    expect(forecast.evidence?.broad).toBe(false);
  });

  it('leave the very same forecast until another one ends', () => {
    const of = running([900]);
    const context = knowing(snapshot({ jobs: new Map([[of.id, of]]) }), new LoggedHistory());
    expect(recurring(context).get(`${of.id}/main`)).toBe(recurring(context).get(`${of.id}/main`));
  });
});

describe('what is learned of one submission', () => {
  const ended = (of: Job, index: number): AttemptEnded =>
    ({
      kind: 'attempt-ended',
      job: of,
      stage: of.spec.stages[0],
      attempt: attempt({ job: of.id, index }),
      runtimeS: seconds(100 + index),
    }) as unknown as AttemptEnded;
  const samples = (of: Job): { readonly paper: number; readonly recent: number } => {
    const learner = runtimeLearner({ isKept: true });
    for (let i = 0; i < (of.spec.stages[0]?.tasks ?? 0); i++) learner.observe(ended(of, i));
    const belief = learner.belief();
    return {
      paper: belief.predict(featuresIn(of))?.evidence?.samples ?? 0,
      recent: belief.recurring.predict(featuresIn(of))?.evidence?.samples ?? 0,
    };
  };

  it('is one run of a gang, however large', () => {
    expect(samples(jobOf('mpi', { tasks: 128, gang: true }))).toEqual({ paper: 128, recent: 1 });
  });

  it('is at most eight runs of an array, and each run of a small one', () => {
    expect(samples(jobOf('sweep', { tasks: 1000 }))).toEqual({ paper: 1000, recent: 8 });
    expect(samples(jobOf('few', { tasks: 5 }))).toEqual({ paper: 5, recent: 5 });
  });
});

describe('stored rows', () => {
  const many = (of: Job): LoggedHistory => learn(new LoggedHistory(undefined, 1), of, Array<number>(40).fill(300));

  it('of a version that knew JVuPredict alone are adopted, and stored from then on', () => {
    const of = jobOf('train', { expectedRuntimeS: null });
    const old = new JvuPredict();
    for (let i = 0; i < 40; i++) old.learn(featuresIn(of), seconds(300 + i));
    const history = new LoggedHistory(undefined, 1);
    history.restore(old.takeDirty());
    expect(history.predict(featuresIn(of))).toEqual(old.predict(featuresIn(of)));
    const forecast = history.recurring.predict(featuresIn(of));
    expect(forecast?.evidence).toMatchObject({ feature: 'owner+job', samples: 20 });
    expect(raw(forecast?.evidence?.pointS ?? seconds(0))).toBeGreaterThan(300);
    history.learn(featuresIn(of), seconds(330));
    expect([...history.takeDirty().keys()]).toContain('history/recent/owner/ada');
  });

  it('are written for both predictors, so that a preset finds what another learned', () => {
    const of = jobOf('train', { expectedRuntimeS: null });
    const rows = many(of).takeDirty();
    const restored = new LoggedHistory();
    restored.restore(rows);
    expect(restored.predict(featuresIn(of))?.evidence?.samples).toBe(40);
    expect(restored.recurring.predict(featuresIn(of))?.evidence?.samples).toBe(40);
  });

  it.each([
    ['history/recent/owner/ada', '{"v":1}'],
    ['history/recent/owner/ada', '{"v":2,"n":1,"j":0,"e":0,"h":[0,0],"r":[1]}'],
    ['history/recent/owner/ada', '{"v":1,"n":3,"j":0,"e":0,"h":[0,0],"r":[1]}'],
    ['history/recent/nothing/ada', '{"v":1,"n":1,"j":0,"e":0,"h":[0,0],"r":[1]}'],
    ['history/recent/tallies', '{"v":1,"g":[1]}'],
    ['history/recent/tallies', '['],
  ])('that are damaged are refused: %s %s', (key, text) => {
    expect(() => new LoggedHistory().restore(new Map([[key, text]]))).toThrow(/cannot be read/);
  });
});
