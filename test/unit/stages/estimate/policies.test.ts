import { knowing } from '../../../support/beliefs.ts';
import { describe, expect, it } from '@jest/globals';
import { quantile, type Distribution } from '../../../../lib/domain/distribution.ts';
import type { Job, StageSpec } from '../../../../lib/domain/job.ts';
import type { Snapshot } from '../../../../lib/domain/snapshot.ts';
import { userHint } from '../../../../lib/stages/estimate/hint.ts';
import { jvuPredict } from '../../../../lib/stages/estimate/jvupredict.ts';
import { JvuPredict } from '../../../../lib/stages/estimate/predictor.ts';
import { featuresOf } from '../../../../lib/domain/job-features.ts';
import { raw, seconds } from '../../../../lib/kernel/units.ts';
import { job, snapshot, spec, stage } from '../../../support/builders.ts';

const snapshotOf = (...jobs: Job[]): Snapshot => snapshot({ jobs: new Map(jobs.map((j) => [j.id, j])) });

function jobWith(over: Partial<StageSpec>): Job {
  return job({ spec: spec({ name: 'train-1', owner: 'ada', stages: [stage(over)] }) });
}

function learned(of: Job, runs: readonly number[]): JvuPredict {
  const history = new JvuPredict();
  const [first] = of.spec.stages;
  if (first !== undefined) for (const s of runs) history.learn(featuresOf(of.spec, first, of.submittedMs), seconds(s));
  return history;
}

function forecastOf(of: Job, history: JvuPredict) {
  const forecast = jvuPredict(knowing(snapshotOf(of), history)).get(`${of.id}/main`);
  if (forecast === undefined) throw new Error('the stage has no forecast');
  return forecast;
}

const at = (d: Distribution, p: number): number => raw(quantile(d, p));

describe('jvupredict', () => {
  it('says plainly that it is a cold start and what to do', () => {
    const forecast = forecastOf(jobWith({ expectedRuntimeS: null }), new JvuPredict());
    expect(forecast.basis).toBe('prior');
    expect(forecast.reason).toMatch(/cold start.*expectedRuntime/);
    expect(at(forecast.runtime, 0.05)).toBeLessThan(20);
    expect(at(forecast.runtime, 0.95)).toBeGreaterThan(1000);
  });

  it("takes the user's guess where there is no history, as a spread around it", () => {
    const forecast = forecastOf(jobWith({ expectedRuntimeS: seconds(600) }), new JvuPredict());
    expect(forecast.basis).toBe('hint');
    expect(forecast.reason).toContain('10 min');
    expect(at(forecast.runtime, 0.4)).toBeLessThan(600);
    expect(at(forecast.runtime, 0.6)).toBeGreaterThan(600);
    expect(at(forecast.runtime, 0.95)).toBeGreaterThan(1100);
  });

  it('leaves the guess behind as runs come in', () => {
    const guessed = jobWith({ expectedRuntimeS: seconds(6000) });
    const medians = [0, 1, 3, 10, 40].map((n) => {
      const history = learned(guessed, Array<number>(n).fill(60));
      return { n, forecast: forecastOf(guessed, history) };
    });
    expect(medians.map(({ forecast }) => forecast.basis)).toEqual(['hint', 'hint', 'history', 'history', 'history']);
    const [none, one, , ten, forty] = medians.map(({ forecast }) => forecast.runtime);
    expect(at(none as Distribution, 0.5)).toBeGreaterThan(3000);
    expect(at(one as Distribution, 0.95)).toBeGreaterThan(6000);
    expect(at(ten as Distribution, 0.5)).toBe(60);
    expect(at(forty as Distribution, 0.999)).toBeLessThanOrEqual(120);
  });

  it('does not let runs of other jobs speak louder than the guess', () => {
    const guessed = jobWith({ expectedRuntimeS: seconds(60) });
    const history = new JvuPredict();
    const other = spec({ name: 'other', owner: 'bob', stages: [stage({ command: ['elsewhere'] })] });
    const [first] = other.stages;
    for (let i = 0; i < 50 && first !== undefined; i++) {
      history.learn(featuresOf(other, first, guessed.submittedMs), seconds(9000));
    }
    const forecast = forecastOf(guessed, history);
    expect(forecast.basis).toBe('hint');
    expect(at(forecast.runtime, 0.5)).toBeLessThan(200);
    const unguessed = forecastOf(jobWith({ expectedRuntimeS: null }), history);
    expect(unguessed.basis).toBe('prior');
    expect(unguessed.reason).toMatch(/cold start/);
  });

  it('keeps within the timeout and says so', () => {
    const capped = jobWith({ expectedRuntimeS: seconds(600), timeoutS: seconds(700) });
    const { runtime, reason } = forecastOf(capped, new JvuPredict());
    expect(at(runtime, 1)).toBe(700);
    expect(runtime.weight.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
    expect(reason).toContain('timeout');
  });

  it('answers for each stage that is not finished, waiting ones included', () => {
    const two = job({
      spec: spec({ stages: [stage({ name: 'a' }), stage({ name: 'b', dependsOn: ['a'] })] }),
      stages: [
        { name: 'a', tasks: 1, nextFresh: 1, waiting: 0, running: 0, succeeded: 1, failed: 0, cancelled: 0 },
        { name: 'b', tasks: 1, nextFresh: 0, waiting: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 },
      ],
    });
    expect([...jvuPredict(knowing(snapshotOf(two), new JvuPredict()))].map(([key]) => key)).toEqual([`${two.id}/b`]);
  });
});

it('the hint baseline does not look at history', () => {
  const guessed = jobWith({ expectedRuntimeS: seconds(600) });
  const history = learned(guessed, [1, 1, 1, 1]);
  expect([...userHint(knowing(snapshotOf(guessed), history))]).toEqual([
    ...userHint(knowing(snapshotOf(guessed), new JvuPredict())),
  ]);
});
