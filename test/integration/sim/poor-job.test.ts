import { expect, it } from '@jest/globals';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { seconds, usd } from '../../../lib/kernel/units.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

it.each([true, false])(
  'gives no place to a job that cannot pay for it, where others need it (gang: %s)',
  async (gang) => {
    const poor = simulatedJob('poor', 1508, [9000], {
      stage: { command: ['poor'], resources: resources(1), expectedRuntimeS: seconds(9000) },
    });
    const other = simulatedJob('other', 2604, [600, 650], {
      stage: { command: ['other'], gang, resources: resources(1), expectedRuntimeS: seconds(600) },
    });
    const { collected, events } = await simulated([{ ...poor, spec: { ...poor.spec, maxCostUsd: usd(0.05) } }, other], {
      deciders: () => ({ name: 'fleet', stages: presetNamed('fleet').stages }),
      config: schedulerConfig.parse({ refundRule: 'none' }),
      vcpus: 12,
    });
    expect([...collected.rows.columns().state]).toContain('succeeded');
    expect(events.filter((e) => e.type === 'instance-requested').length).toBeLessThanOrEqual(6);
  },
  120_000,
);
