import { describe, expect, it } from '@jest/globals';
import { Stack } from 'aws-cdk-lib';
import { EbbError } from '../../lib/kernel/errors.ts';
import { architectureOf, checkedDeployment } from '../../lib/infra/config-rules.ts';
import { Ebbtide } from '../../lib/infra/ebbtide.ts';
import { readDeployment, type ConfigSources } from '../../lib/infra/read-config.ts';
import { newApp } from './synthesis.ts';

const findings = (input: unknown): Record<string, string> => {
  try {
    checkedDeployment(input, 'ebbtide.config.yaml');
  } catch (error) {
    if (!(error instanceof EbbError)) throw error;
    return Object.fromEntries((error.facts.issues ?? []).map((i) => [i.at, i.message]));
  }
  return {};
};

const sources = (
  files: Record<string, string>,
  context: Record<string, unknown> = {},
): ConfigSources & { read: (path: string) => string | null } => ({
  read: (path) => files[path] ?? null,
  context,
});

const refusal = (run: () => unknown): EbbError => {
  try {
    run();
  } catch (error) {
    if (error instanceof EbbError) return error;
    throw error;
  }
  throw new Error('was not refused');
};

describe('the configuration of a deployment', () => {
  it('needs nothing: the defaults are a deployment', () => {
    const config = checkedDeployment({}, 'x');
    expect(config).toMatchObject({ name: 'ebbtide', vpc: 'new', auth: 'iam', keepData: true, preset: 'ebbtide' });
    expect(architectureOf(config)).toBe('x86_64');
    expect(architectureOf(checkedDeployment({ families: ['c7g', 'm7g'] }, 'x'))).toBe('arm64');
  });

  it('reports everything that is wrong at once, with the key and what to do', () => {
    const found = findings({
      families: ['c6i', 'c7g', 'm99'],
      zone: 3,
      retentionDays: 31,
      auth: 'jwt',
      budgetUsdPerDay: -1,
      settings: { solverSecond: 1, lookAheadSlots: 0 },
      preset: 'ebtide',
    });
    expect(Object.keys(found).sort()).toEqual([
      'budgetUsdPerDay',
      'families',
      'families[2]',
      'preset',
      'retentionDays',
      'settings.lookAheadSlots',
      'settings.solverSecond',
      'userPoolArn',
      'zone',
    ]);
    expect(found['zone']).toMatch(/did you mean zones/);
    expect(found['families']).toMatch(/c6i are x86_64; c7g are arm64; leave one kind out/);
    expect(found['settings.solverSecond']).toMatch(/did you mean solverSeconds/);
    expect(found['userPoolArn']).toMatch(/set auth to iam/);
  });

  it.each([
    [{ region: 'eu-central' }, 'region', /eu-central-1/],
    [{ zones: 7 }, 'zones', /<=6/],
    [{ account: '123' }, 'account', /12 digits/],
    [{ name: 'Ebb_Tide' }, 'name', /a-z/],
    [{ vpc: 'defualt' }, 'vpc', /new, default, or an object/],
    [{ vpc: 'default' }, 'vpc', /set account and region.*or set vpc to new/],
    [
      { vpc: { id: 'vpc-0a1b2c3d', subnet: {}, subnets: { 'eu-central-1a': 'subnet-0a1b2c3d' } } },
      'vpc.subnet',
      /did you mean subnets/,
    ],
    [{ vpc: { id: 'vpc-0a1b2c3d', subnets: {} } }, 'vpc.subnets', /at least one/],
    [{ vpc: { id: 'vpc-0a1b2c3d' } }, 'vpc.subnets', /must name a subnet of each zone, `eu-central-1a: subnet-/],
    [
      { vpc: { id: 'vpc-0a1b2c3d', subnets: { 'eu-central': 'subnet-0a1b2c3d' } } },
      'vpc.subnets.eu-central',
      /no availability zone such as eu-central-1a/,
    ],
    [
      { region: 'eu-west-1', vpc: { id: 'vpc-0a1b2c3d', subnets: { 'eu-central-1a': 'subnet-0a1b2c3d' } } },
      'vpc.subnets.eu-central-1a',
      /not in the region eu-west-1/,
    ],
    [{ userPoolArn: 'arn:aws:cognito-idp:eu-west-1:123456789012:userpool/eu-west-1_a' }, 'userPoolArn', /auth: iam/],
    [{ admins: ['arn:aws:iam::111122223333:role/Ops'] }, 'admins', /set ownerIsCaller to true/],
    [{ ownerIsCaller: true, admins: ['*'] }, 'admins.0', /no caller such as arn:/],
    [{ ownerIsCaller: true, admins: ['arn:aws:iam::*'] }, 'admins.0', /no caller such as arn:/],
    [{ ownerIsCaller: true, admins: ['arn:aws:iam::111122223333:role/*/Ops'] }, 'admins.0', /only the end/],
    [{ ownerIsCaller: true, admins: ['arn:aws:iam::111122223333:role/'] }, 'admins.0', /no caller such as arn:/],
    [{ ownerIsCaller: true, admins: ['cognito:ana'] }, 'admins[0]', /never calls with auth: iam/],
    [
      {
        ownerIsCaller: true,
        admins: Array.from({ length: 20 }, (_, n) => `arn:aws:iam::111122223333:user/${'u'.repeat(40)}${n}`),
      },
      'admins',
      /longer than 1000 characters/,
    ],
    [
      { auth: 'jwt', region: 'eu-west-2', userPoolArn: 'arn:aws:cognito-idp:eu-west-1:123456789012:userpool/p' },
      'userPoolArn',
      /eu-west-2/,
    ],
    [{ reservations: ['cr-1'] }, 'reservations.0', /no id of a capacity reservation such as cr-0a1b/],
    [
      { reservations: Array.from({ length: 2 }, () => `cr-${'0'.repeat(17)}`) },
      'reservations',
      /names a reservation twice/,
    ],
    [{ settings: { preset: 'greedy' } }, 'settings.preset', /set preset itself/],
    [{ settings: { policyModules: ['./mine.ts'] } }, 'settings.policyModules', /local mode and in the simulator only/],
    [{ alarmEmail: 'nobody' }, 'alarmEmail', /e-mail/],
    [{ families: ['c6i', 'm6i', 'c6i'] }, 'families[2]', /twice/],
    [{ families: ['c6i', 'p5'] }, 'families[1]', /GPUs/],
    [
      { maxVcpus: 10_001 },
      'maxVcpus',
      /one ECS cluster.*5000 instances, of 2 vCPUs where they are smallest, are 10000; lower it to 10000, .*several deployments/,
    ],
    [{ maxVcpus: 6000, families: ['c7g'] }, 'maxVcpus', /5000 instances, of 1 vCPUs/],
    [{ maxVcpus: 9000, zones: 1 }, 'maxVcpus', /the \/20 subnets of 1 zone .*4091 instances.*are 8182.*more `zones`/],
  ])('%j is refused at %s', (input, key, message) => {
    const found = findings(input);
    expect(Object.keys(found)).toEqual([key]);
    expect(found[key]).toMatch(message);
  });

  it('comes from a file, and context values are put over it', () => {
    const config = readDeployment(
      sources(
        { 'ebbtide.config.yaml': 'budgetUsdPerDay: 10\nfamilies: [c6i]\naccount: "012345678901"\n' },
        {
          'ebbtide:budgetUsdPerDay': '25',
          'ebbtide:families': 'm6i, r6i',
          'ebbtide:reservations': 'cr-0a1b2c3d4e5f60718',
          'ebbtide:keepData': 'false',
        },
      ),
    );
    expect(config).toMatchObject({
      account: '012345678901',
      budgetUsdPerDay: 25,
      families: ['m6i', 'r6i'],
      reservations: ['cr-0a1b2c3d4e5f60718'],
      keepData: false,
    });
  });

  it('refuses context values of a key that there is none of, as in the file', () => {
    const misspelt = refusal(() => readDeployment(sources({}, { 'ebbtide:maxVcpu': '64', 'aws-cdk:other': 'x' })));
    expect(misspelt.facts.issues).toMatchObject([{ message: expect.stringContaining('maxVcpu') as unknown }]);
  });

  it('takes account and region from the credentials where nobody set them', () => {
    const of = {
      ...sources({ 'ebbtide.config.yaml': 'region: eu-west-1\n' }),
      account: '012345678901',
      region: 'us-east-1',
    };
    expect(readDeployment(of)).toMatchObject({ account: '012345678901', region: 'eu-west-1' });
  });

  it('says where a file is not YAML, no mapping, or not there', () => {
    const broken = refusal(() => readDeployment(sources({ 'ebbtide.config.yaml': 'zones: [1\nx' })));
    expect(broken.facts.got).toMatch(/ebbtide\.config\.yaml: .*line 2/s);
    const list = refusal(() => readDeployment(sources({ 'ebbtide.config.yaml': '- zones' })));
    expect(list.facts.got).toBe('ebbtide.config.yaml: a list');
    const text = refusal(() => readDeployment(sources({ 'ebbtide.config.yaml': 'new' })));
    expect(text.facts.got).toBe('ebbtide.config.yaml: string');
    const absent = refusal(() => readDeployment(sources({}, { 'ebbtide:config': 'prod.yaml' })));
    expect(absent.facts.got).toBe('prod.yaml: no such file');
    expect(readDeployment(sources({})).name).toBe('ebbtide');
  });
  it.each([
    ['a list', ['c5', 'm5'], 'a list'],
    ['text', 'families', 'string'],
    ['what an empty file holds', null, 'nothing'],
  ])('names the construct that is given %s', (_, props, got) => {
    const stack = new Stack(newApp(), 'Mine');
    const { facts } = refusal(() => new Ebbtide(stack, 'Ebb', props as object));
    expect(facts).toMatchObject({ got: `Ebbtide at Mine/Ebb: ${got}`, allowed: expect.stringContaining('{ ') });
    expect(refusal(() => checkedDeployment(props, 'mine.yaml')).facts.got).toBe(`mine.yaml: ${got}`);
  });
});
