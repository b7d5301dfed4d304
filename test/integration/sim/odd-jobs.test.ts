/** Jobs that break what schedulers assume of running times, on a small cluster, under the presets that order jobs. */
import { describe, expect, it } from '@jest/globals';
import { epochMs, plus, raw, seconds } from '../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../../lib/market/cluster.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const FROM = epochMs(Date.UTC(2026, 0, 1));
const DAY_S = 86_400;
const trace = marketWithCluster(null, '4x{cpu: 1, memory: 4GiB}');
const small = { resources: resources(1, 1) };

async function runOf(preset: string, jobs: Parameters<typeof simulated>[0]) {
  const result = await simulated(jobs, {
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: FROM,
    toMs: plus(FROM, seconds(60 * DAY_S)),
    config: schedulerConfig.parse({ ...settingsOfCluster(trace), preset, lookAheadSlots: 2, cyclePeriodS: 600 }),
    vcpus: ownVcpus(trace),
    deciders: () => ({ name: preset, stages: presetNamed(preset).stages }),
  });
  const { jobs: rows } = outcomeOf(result, { preset, seed: 1, fromMs: FROM });
  const of = (key: string) => {
    const i = rows.key.indexOf(key);
    return { state: rows.state[i], doneS: ((rows.finishedMs[i] ?? NaN) - raw(FROM)) / 1000 };
  };
  return { ended: result.ended, of };
}

describe.each(['greedy', 'hopper', 'srpt-copies', 'srpt-fused', 'slearn', '3sigma', 'las', 'fair-speculation'])(
  '%s',
  (preset) => {
    it('does tasks of no time and one of a month in one job, and other jobs meanwhile', async () => {
      const odd = simulatedJob('odd', 0, [0, 0, 30 * DAY_S, 0, 0, 0], { stage: small });
      const plain = simulatedJob('plain', DAY_S, [100, 100, 100], { stage: small });
      const { ended, of } = await runOf(preset, [odd, plain]);
      expect(ended).toBe('done');
      expect(of('odd').state).toBe('succeeded');
      expect(of('odd').doneS).toBeLessThan(31 * DAY_S);
      expect(of('plain').doneS).toBeLessThan(DAY_S + 1000);
    });

    it('ends a job of which every task fails, and does the others', async () => {
      const broken = simulatedJob('broken', 0, [50, 50, 50, 50, 50], {
        failures: [99, 99, 99, 99, 99],
        stage: { ...small, retries: 1 },
      });
      const plain = simulatedJob('plain', 10, [100, 100], { stage: small });
      const { ended, of } = await runOf(preset, [broken, plain]);
      expect(ended).toBe('done');
      expect(of('broken').state).toBe('failed');
      expect(of('plain')).toMatchObject({ state: 'succeeded' });
      expect(of('plain').doneS).toBeLessThan(2000);
    });

    it('does not wait for a first task that hangs', async () => {
      const hangs = simulatedJob('hangs', 0, [2 * DAY_S, ...Array.from({ length: 19 }, () => 10)], {
        stage: { ...small, timeoutS: seconds(DAY_S), retries: 0 },
      });
      const plain = simulatedJob('plain', 60, [100, 100], { stage: small });
      const { ended, of } = await runOf(preset, [hangs, plain]);
      expect(ended).toBe('done');
      expect(of('hangs').state).toBe('failed');
      expect(of('plain').doneS).toBeLessThan(2000);
    });
  },
);
