import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CreateFleetCommand, CreateLaunchTemplateCommand, EC2Client } from '@aws-sdk/client-ec2';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { processesOf } from '../../support/local-fleet.ts';

const SCRIPT = fileURLToPath(new URL('../../../scripts/aws-double/main.ts', import.meta.url));
let dir: string;

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'ebb-aws-double-test-')));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const started = (args: readonly string[]) => {
  const env = { ...process.env };
  delete env['NODE_OPTIONS'];
  return spawn(process.execPath, [SCRIPT, '--port', '0', '--dir', dir, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
};

it('starts by hand, says how to reach it, and takes its instances with it', async () => {
  const double = started(['--speed', '100', '--subnets', 'us-east-1a=subnet-1']);
  const [line] = (await once(createInterface({ input: double.stdout }), 'line')) as [string];
  const endpoint = /http:\/\/127\.0\.0\.1:\d+/.exec(line)![0];
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const ec2 = new EC2Client({ endpoint, region: 'us-east-1', credentials, maxAttempts: 1 });
  const LaunchTemplateName = 'workers';
  await ec2.send(new CreateLaunchTemplateCommand({ LaunchTemplateName, LaunchTemplateData: { ImageId: 'ami-1' } }));
  const Overrides = [{ InstanceType: 'c5.large' as const, SubnetId: 'subnet-1' }];
  const { Instances } = await ec2.send(
    new CreateFleetCommand({
      Type: 'instant',
      LaunchTemplateConfigs: [{ LaunchTemplateSpecification: { LaunchTemplateName, Version: '1' }, Overrides }],
      TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: 'on-demand' },
    }),
  );
  expect(Instances).toHaveLength(1);
  const supervisors = () => processesOf(dir).filter(({ pid }) => pid !== double.pid);
  expect(supervisors()).toHaveLength(1);
  double.kill('SIGTERM');
  expect(await once(double, 'exit')).toEqual([0, null]);
  // One that was only just coming up sees that it is not wanted, and goes.
  for (let looks = 0; looks < 200 && supervisors().length > 0; looks++)
    await new Promise((done) => setTimeout(done, 50));
  expect(supervisors()).toEqual([]);
  ec2.destroy();
});

it('refuses what it cannot use, and says what it can', async () => {
  const double = started(['--from', '2019-01-01']);
  let said = '';
  double.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  expect(await once(double, 'close')).toEqual([2, null]);
  expect(said).toMatch(/--from is not a time within the market.*allowed: 2026-01-05/);
});
