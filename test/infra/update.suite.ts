/**
 * A stack update reaches launches: CloudFormation makes a new version of the launch template and leaves the default at
 * 1.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CreateLaunchTemplateCommand,
  CreateLaunchTemplateVersionCommand,
  DescribeInstancesCommand,
  DescribeLaunchTemplateVersionsCommand,
  EC2Client,
  type RequestLaunchTemplateData,
} from '@aws-sdk/client-ec2';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readEnvironment, type Environment } from '../../lib/drivers/aws/compose/environment.ts';
import { Ec2 } from '../../lib/drivers/aws/fleet/ec2.ts';
import { poolKey } from '../../lib/domain/pool.ts';
import type { DeploymentConfigInput } from '../../lib/infra/config.ts';
import { epochMs, plus, seconds } from '../../lib/kernel/units.ts';
import { builtInCatalogue } from '../../lib/market/catalogue.ts';
import { generateMarket } from '../../lib/market/generate.ts';
import { startAwsDouble, type AwsDouble } from '../../scripts/aws-double/double.ts';
import { launchTemplateData, type Template as Rehearsed } from '../../scripts/rehearsal/template.ts';
import { lambdaEnvironment } from '../support/lambda-environment.ts';
import { resourceNamed, synthesis } from './synthesis.ts';

const ZONE = 'us-east-1a';
const START_MS = epochMs(Date.UTC(2026, 0, 5));
const NAME = 'hosts';

/** One type of each architecture. */
function market() {
  const markets = ['c6i.large', 'c7g.large'].map((name) => ({
    entry: builtInCatalogue().entry(name, START_MS)!,
    zone: ZONE,
    regime: 'smooth' as const,
  }));
  return generateMarket({ name: 'update', seed: 1, startMs: START_MS, days: 2, markets, temper: 'natural' });
}

describe('an update of the stack', () => {
  let double: AwsDouble;
  let client: EC2Client;
  const dir = mkdtempSync(join(tmpdir(), 'ebb-update-'));

  beforeEach(async () => {
    double = await startAwsDouble({
      trace: market(),
      from: plus(START_MS, seconds(86_400)),
      speed: 100,
      region: 'us-east-1',
      dir,
      deliver: async () => undefined,
    });
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    client = new EC2Client({ endpoint: double.url, region: 'us-east-1', credentials });
  });
  afterEach(async () => {
    client.destroy();
    await double.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  });

  /** The part of CloudFormation: data of a changed template become its next version, and no more. */
  async function deployed(config: DeploymentConfigInput): Promise<Environment> {
    const { main } = synthesis(config);
    const template = main.toJSON() as Rehearsed;
    const elsewhere = { 'AWS::ECS::Cluster': { Ref: 'ebb', Arn: 'arn:aws:ecs:us-east-1:000000000000:cluster/ebb' } };
    const data = { LaunchTemplateData: launchTemplateData(template, elsewhere) as RequestLaunchTemplateData };
    const versions = () =>
      client.send(new DescribeLaunchTemplateVersionsCommand({ LaunchTemplateName: NAME })).catch(() => null);
    await ((await versions()) === null
      ? client.send(new CreateLaunchTemplateCommand({ LaunchTemplateName: NAME, ...data }))
      : client.send(new CreateLaunchTemplateVersionCommand({ LaunchTemplateName: NAME, ...data })));
    const { LaunchTemplateVersions: made = [] } = (await versions()) ?? {};
    const answers: Record<string, string> = {
      Ref: made[0]?.LaunchTemplateId ?? '',
      LatestVersionNumber: String(made.length),
      DefaultVersionNumber: String(made.find((v) => v.DefaultVersion === true)?.VersionNumber),
    };
    const { Environment: environment } = resourceNamed(main, 'AWS::Lambda::Function', 'EbbtideFunctionsAct').Properties;
    const { Variables } = environment as { Variables: Record<string, unknown> };
    const [id] = Object.entries(template.Resources).find(([, { Type }]) => Type === 'AWS::EC2::LaunchTemplate') ?? [];
    const ofTemplate = Object.entries(Variables).flatMap(([name, value]) => {
      const { Ref, 'Fn::GetAtt': attribute } = value as { Ref?: string; 'Fn::GetAtt'?: [string, string] };
      if ((Ref ?? attribute?.[0]) !== id) return [];
      return [[name, answers[attribute?.[1] ?? 'Ref']] as const];
    });
    return readEnvironment({ ...lambdaEnvironment(), ...Object.fromEntries(ofTemplate) });
  }

  const invalid: string[] = [];
  const fleetOf = (environment: Environment): Ec2 =>
    new Ec2({
      onInvalid: (pool, detail) => invalid.push(`${pool}: ${detail}`),
      client,
      stack: environment.EBB_CONFIG.name,
      launchTemplate: environment.EBB_LAUNCH_TEMPLATE,
      launchTemplateVersion: environment.EBB_LAUNCH_TEMPLATE_VERSION,
      subnets: new Map(double.subnets.map((s) => [s.zone, s.id])),
    });
  const bought = (fleet: Ec2, type: string) =>
    fleet.buy({
      token: `launch ${type}`,
      pool: poolKey(type, ZONE, 'on-demand'),
      bid: 'uncapped',
      count: 1,
      tags: {},
      template: fleet.template,
    });

  it('launches with the version of the deployment: the image fits the architecture of changed families', async () => {
    const before = fleetOf(await deployed({ families: ['c6i'] }));
    expect(await bought(before, 'c6i.large')).toMatchObject({ lacking: null });
    const after = fleetOf(await deployed({ families: ['c7g'] }));
    expect(await bought(after, 'c7g.large')).toMatchObject({ lacking: null });
    const { Reservations = [] } = await client.send(new DescribeInstancesCommand({}));
    const versions = Reservations.flatMap((r) => r.Instances ?? []).map((i) => [
      i.InstanceType,
      i.Tags?.find((t) => t.Key === 'aws:ec2launchtemplate:version')?.Value,
    ]);
    expect(versions.sort()).toEqual([
      ['c6i.large', '1'],
      ['c7g.large', '2'],
    ]);
    expect(invalid).toEqual([]);
  });

  it('says of a launch that is invalid that it is', async () => {
    const fleet = fleetOf(await deployed({ families: ['c6i'] }));
    expect(await bought(fleet, 'c7g.large')).toMatchObject({ lacking: { status: 'refused', why: 'invalid' } });
    expect(invalid).toEqual([expect.stringMatching(/^c7g\.large.*InvalidParameterValue.*architecture/)]);
  });
});
