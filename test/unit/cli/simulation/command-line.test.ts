import { describe, expect, it } from '@jest/globals';
import { commandOf } from '../../../../lib/cli/simulation/command-line.ts';

const UNSAID = { windows: 1, seeds: 1, setup: 0, migrationRate: 160, dir: '.ebb' };

describe('the command line of a report', () => {
  it('has what decides, and nothing that was not said', () => {
    expect(commandOf({ ...UNSAID, report: 'r.html' })).toBe('ebb simulate');
    expect(
      commandOf({ ...UNSAID, seeds: 2, compare: ['ebbtide', 'oracle'], workload: 'jobs', from: Date.UTC(2016, 2, 1) }),
    ).toBe('ebb simulate --workload jobs --compare ebbtide,oracle --from 2016-03-01T00:00:00.000Z --seeds 2');
  });

  it('can be pasted into a shell, and settings mean what they meant', () => {
    const workloadOption = { deadlines: { share: 0.2 }, format: 'google-2011' };
    expect(commandOf({ ...UNSAID, workload: "my jobs/it's", workloadOption, set: { forecast: '1' } })).toBe(
      `ebb simulate --workload 'my jobs/it'\\''s' --workload-option 'deadlines={"share":0.2}' ` +
        `--workload-option format=google-2011 --set 'forecast="1"'`,
    );
  });
});
