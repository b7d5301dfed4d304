import { afterAll, describe, expect, it } from '@jest/globals';
import type { PresetSpec } from '../../../lib/domain/preset-spec.ts';
import { seconds, usd } from '../../../lib/kernel/units.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { deterministic } from '../../../lib/policy/solver.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { resources } from '../../support/builders.ts';
import { SAVES } from '../../support/mixed-workload.ts';
import { runOf, staysOf, zones, type Run, type Setting } from '../../support/observed-run.ts';
import { simulatedJob } from '../../support/simulated.ts';

/**
 * What settings change, each in a scenario of its own. That every setting of every policy changes some decision:
 * test/unit/stages/settings.test.ts.
 */

const highs = highsSolver();
const solver = deterministic(highs, 10);
afterAll(() => highs.close());

const HOUR_S = 3600;

const gang = (name: string, tasks: number, worthUsd: number, submittedS: number): WorkloadJob => {
  const made = simulatedJob(name, submittedS, new Array<number>(tasks).fill(3000), {
    stage: { gang: true, resources: resources(4), expectedRuntimeS: seconds(3000), command: [name] },
  });
  return { ...made, spec: { ...made.spec, value: { onTimeUsd: usd(worthUsd), worthlessAfterS: null } } };
};

/** Room for six instances: the two smaller gangs together are worth more than the large one. */
const gangs: Setting = {
  jobs: [gang('large', 4, 6, 0), gang('one', 3, 4, 10), gang('two', 3, 4, 10)],
  trace: zones({}),
  vcpus: 24,
  config: { solverGap: 0, lookAheadSlots: 1 },
  solver,
};
const firstGang = ({ stays }: Run): string => (stays[0]?.job === 'large' ? 'large' : 'the other two');

const short: Setting = {
  jobs: [
    simulatedJob('short', 0, new Array<number>(30).fill(5), {
      stage: { resources: resources(4), expectedRuntimeS: seconds(5) },
    }),
  ],
  trace: zones({}),
  vcpus: 1000,
};
const severalEach = ({ bought }: Run): boolean => 4 * bought.length < 30;

const dated: Setting = {
  jobs: [
    simulatedJob('dated', 0, [6 * HOUR_S], {
      deadlineS: 9 * HOUR_S,
      stage: { resources: resources(4), expectedRuntimeS: seconds(4 * HOUR_S), checkpoint: SAVES },
    }),
  ],
  trace: zones({}),
  config: { hazardPriorPerHour: 0.1, lateBudget: 0 },
};
const beganOn = (run: Run): string | undefined => staysOf(run, 'dated')[0]?.option;

interface Case {
  readonly preset: (value: unknown) => PresetSpec;
  readonly setting: Setting;
  readonly sees: (run: Run) => unknown;
  /** What is seen, by value. */
  readonly expected: readonly (readonly [unknown, unknown])[];
}

const common =
  (key: string, more: Partial<PresetSpec> = {}) =>
  (value: unknown): PresetSpec => ({ extends: 'ebbtide', ...more, settings: { [key]: value } });

const milp = (key: string, expected: Case['expected']): Case => ({
  preset: (value) => ({ extends: 'ebbtide', plan: { policy: 'milp', [key]: value } }),
  setting: gangs,
  sees: firstGang,
  expected,
});
const safety = (policy: string): Case => ({
  preset: common('safetyQuantile', { value: policy }),
  setting: dated,
  sees: beganOn,
  expected: [
    [0.5, 'spot'],
    [0.9999, 'on-demand'],
  ],
});

const CASES: Readonly<Record<string, Case>> = {
  'solverGap: a fill that is good enough is not improved': milp('solverGap', [
    [0, 'the other two'],
    [100, 'large'],
  ]),
  'solverMaxOptions: above it no solver is asked': milp('solverMaxOptions', [
    [20_000, 'the other two'],
    [1, 'large'],
  ]),
  'lookAheadSlots: with a window the others follow later': {
    ...milp('solverGap', [
      [1, 'the other two'],
      [6, 'large'],
    ]),
    preset: common('lookAheadSlots'),
  },
  'turnoverS: tasks share places where they follow one another soon': {
    preset: common('turnoverS'),
    setting: short,
    sees: severalEach,
    expected: [
      [5, true],
      [200, false],
    ],
  },
  'safetyQuantile: what is likely done in time begins on spot (jvusched)': safety('jvusched'),
  'safetyQuantile: the same with per-job': safety('per-job'),
  'safetyQuantile: the same with per-job-sharp': safety('per-job-sharp'),
  'safetyQuantile: the same with strict-priority': safety('strict-priority'),
};

describe('a setting of a policy or of a preset', () => {
  it.each(Object.entries(CASES))('%s', async (_, { preset, setting, sees, expected }) => {
    for (const [value, wanted] of expected) {
      const presets = { mine: preset(value) };
      const { stages, asks, common: config } = presetNamed('mine', presets);
      const under = { ...setting, config: { ...setting.config, ...config } };
      expect([value, sees(await runOf(under, { name: 'mine', stages, asks }))]).toEqual([value, wanted]);
    }
  });
});
