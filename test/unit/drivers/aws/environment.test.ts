import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { readEnvironment } from '../../../../lib/drivers/aws/compose/environment.ts';
import { lambdaEnvironment } from '../../../support/lambda-environment.ts';

const GOOD = lambdaEnvironment({ EBB_SUBNETS: 'eu-central-1a=subnet-1, eu-central-1b=subnet-2' });

const findings = (env: Record<string, string | undefined>): string[] => {
  try {
    readEnvironment(env);
    return [];
  } catch (error) {
    return (error as { facts: { issues: { at: string }[] } }).facts.issues.map((i) => i.at).sort();
  }
};

describe('the environment of a Lambda', () => {
  it('reads zones, configuration and defaults, and leaves what is not its own alone', () => {
    const env = readEnvironment({ ...GOOD, PATH: '/bin', AWS_REGION: 'eu-central-1' });
    expect([...env.EBB_SUBNETS]).toEqual([
      ['eu-central-1a', 'subnet-1'],
      ['eu-central-1b', 'subnet-2'],
    ]);
    expect(env.EBB_CONFIG).toEqual({
      name: 'test',
      families: ['c5'],
      vcpus: 8,
      image: 'debian:stable-slim',
      settings: schedulerConfig.parse({}),
      draining: false,
      ownerIsCaller: false,
      admins: [],
      reservations: [],
    });
    expect(env.EBB_CLOCK).toBeUndefined();
    expect(env).not.toHaveProperty('PATH');
  });

  it('reads settings with those of the preset, for every function alike', () => {
    const settings = { preset: 'mine', presets: { mine: { extends: 'ebbtide', settings: { maxLateProbability: 1 } } } };
    const config = { name: 'e', families: ['c6i'], vcpus: 1, image: 'i', settings };
    const read = readEnvironment({ ...GOOD, EBB_CONFIG: JSON.stringify(config) }).EBB_CONFIG.settings;
    expect(read).toEqual({ ...schedulerConfig.parse(settings), maxLateProbability: 1 });
  });

  it('says all that is wrong at once', () => {
    const { EBB_TABLE: _, ...rest } = GOOD;
    expect(findings({ ...rest, EBB_SUBNETS: 'nowhere', EBB_CONFIG: '{', EBB_CLOCK: '{"speed":0}' })).toEqual(
      expect.arrayContaining(['EBB_CONFIG', 'EBB_SUBNETS', 'EBB_TABLE']),
    );
  });

  it('refuses a name that it does not know, and settings that are none', () => {
    expect(findings({ ...GOOD, EBB_TABEL: 'x' })).toEqual(['environment']);
    const config = JSON.stringify({ name: 'e', families: ['c6i'], vcpus: 1, image: 'i', settings: { slots: 1 } });
    expect(findings({ ...GOOD, EBB_CONFIG: config })).toEqual(['EBB_CONFIG.settings']);
  });
});
