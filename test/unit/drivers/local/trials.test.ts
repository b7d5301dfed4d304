import { Worker } from 'node:worker_threads';
import { describe, expect, it, jest } from '@jest/globals';
import { isolate, type Trials } from '../../../../lib/cycle/decide/isolate.ts';
import type { ObservedState } from '../../../../lib/cycle/decide/decision.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import type { Job } from '../../../../lib/domain/job.ts';
import { jobId, planId, type JobId } from '../../../../lib/kernel/ids.ts';
import { openTrials } from '../../../../lib/drivers/solver/trials.ts';
import { job, snapshot } from '../../../support/builders.ts';

const SPINNING = new URL('../../../fixtures/threads/spinning-trial.mjs', import.meta.url);
/** Long enough for a thread on a busy machine, far shorter than for ever. */
const LIMITS = { groupMs: 3000, jobMs: 3000, allMs: 30_000, budgetMs: 120_000 };

function trialsOf(names: readonly string[]): { readonly observed: ObservedState; readonly trials: Trials } {
  const jobs = new Map(names.map((name): [JobId, Job] => [jobId(name), job({ id: jobId(name) })]));
  const observed: ObservedState = {
    token: 1,
    plan: planId('p-1'),
    snapshot: snapshot({ jobs }),
    lastRanMs: new Map(),
    draining: false,
  };
  const market = { nowMs: observed.snapshot.nowMs, curves: new Map(), outlooks: new Map(), drivers: new Map() };
  const of = { observed, market, learned: new Map(), preset: 'greedy', config: schedulerConfig.parse({}) };
  return { observed, trials: openTrials(of, SPINNING) };
}

describe('trials in a thread', () => {
  it('end a decision that never ends, and one that takes the thread with it, and name the job behind each', async () => {
    const { observed, trials } = trialsOf(['j-a', 'j-b', 'j-dies', 'j-spins', 'j-throws', 'j-z']);
    const { trial, nowMs } = trials;
    const found = await isolate({ snapshot: observed.snapshot, trial, nowMs, limits: LIMITS });
    await trials.close();
    expect(new Map(found?.held.map((h) => [h.job, h.reason]))).toEqual(
      new Map([
        [jobId('j-throws'), 'a decision on it fails: no'],
        [jobId('j-spins'), 'a decision on it does not end within 3 s'],
        [jobId('j-dies'), 'a decision on it fails: the thread ended with 3'],
      ]),
    );
    expect(found?.undecided).toEqual([]);
  }, 120_000);

  it('leave no listeners behind, however many there are', async () => {
    const posted = jest.spyOn(Worker.prototype, 'postMessage');
    const faulty = ['j-dies', 'j-spins', 'j-throws'];
    const { trials } = trialsOf(faulty);
    const aside = new Map(faulty.map((name) => [jobId(name), { why: 'held', detail: '' } as const]));
    try {
      for (let i = 0; i < 12; i++) {
        expect(await trials.trial({ aside, probe: false }, 30_000)).toMatchObject({ status: 'decided' });
      }
      const threads = new Set(posted.mock.contexts as Worker[]);
      expect([...threads].map((thread) => thread.listenerCount('error'))).toEqual([1]);
    } finally {
      await trials.close();
      posted.mockRestore();
    }
  }, 120_000);
});
