import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { trace, START_MS } from '../../../contract/fleet.ts';
import { startAwsDouble, type AwsDouble } from '../../../../scripts/aws-double/double.ts';
import { askedByCloudFormation } from '../../../support/cloudformation.ts';
import { invoke } from './lambda.ts';

/** The market of the contract: c5.large, in four zones. */
const ZONES = ['calm', 'spiky'];

describe('the check of the region, as CloudFormation asks for it', () => {
  let double: AwsDouble;
  let handler: unknown;
  const before = { ...process.env };

  beforeAll(async () => {
    for (const stream of [process.stdout, process.stderr]) jest.spyOn(stream, 'write').mockImplementation(() => true);
    double = await startAwsDouble({ trace, from: START_MS, speed: 1, region: 'us-east-1' });
    Object.assign(process.env, {
      AWS_ENDPOINT_URL_EC2: double.url,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_REGION: 'us-east-1',
    });
    ({ handler } = await import('../../../../lambdas/check/handler.ts'));
  });
  afterAll(async () => {
    await double.close();
    process.env = before;
    jest.restoreAllMocks();
  });

  const ask = async (properties: object, more: { kind?: 'Delete'; status?: number } = {}) => {
    const [answer, ...rest] = await askedByCloudFormation((event) => invoke(handler, event), { properties, ...more });
    expect(rest).toEqual([]);
    return answer;
  };
  const subnetOf = (zone: string): string => double.subnets.find((s) => s.zone === zone)?.id ?? '';

  it('says yes, under the request’s ids', async () => {
    expect(await ask({ Families: ['c5'], Zones: ZONES })).toMatchObject({
      Status: 'SUCCESS',
      RequestId: '5f1d7a9e',
      PhysicalResourceId: 'ebbtide-EbbtideDeployingRegion',
    });
  });

  it('names the family that no zone has, the key, and what to do', async () => {
    const answer = await ask({ Families: ['c5', 'c9x'], Zones: ZONES });
    expect(answer?.Status).toBe('FAILED');
    expect(answer?.Reason).toMatch(
      /families: c9x is offered in none of calm, spiky; leave it out, or deploy to another/,
    );
  });

  it('names zones that have none of them', async () => {
    const answer = await ask({ Families: ['c5', 'm5'], Zones: ['moon-1a'] });
    expect(answer?.Reason).toMatch(/families: none of c5, m5 is offered in moon-1a/);
  });

  it('lets a family be that only one of the zones has', async () => {
    expect(await ask({ Families: ['c5'], Zones: ['calm', 'moon-1a'] })).toMatchObject({ Status: 'SUCCESS' });
  });

  it('finds subnets that are elsewhere, all of them', async () => {
    const Subnets = [`calm=${subnetOf('spiky')}`, `spiky=${subnetOf('spiky')}`];
    const answer = await ask({ Families: ['c5'], Zones: ZONES, Vpc: 'vpc-1', Subnets });
    expect(answer?.Reason).toMatch(/vpc\.subnets\.calm: subnet-\w+ is in spiky; give a subnet of calm/);
    expect(answer?.Reason).toMatch(/vpc\.subnets\.spiky: subnet-\w+ is not in vpc-1/);
    const absent = await ask({ Families: ['c5'], Zones: ZONES, Subnets: ['calm=subnet-0a1b2c3d'] });
    expect(absent?.Reason).toMatch(/vpc\.subnets: The subnet ID 'subnet-0a1b2c3d' does not exist/);
  });

  it('finds capacity reservations that are not there, or of what is not bought', async () => {
    const [[pool = '', id = ''] = []] = double.reservations;
    expect(pool).toBe('c5.large/calm/reserved');
    expect(await ask({ Families: ['c5'], Zones: ZONES, Reservations: [id] })).toMatchObject({ Status: 'SUCCESS' });
    const elsewhere = await ask({ Families: ['c5'], Zones: ['spiky'], Reservations: [id, 'cr-00000000000000000'] });
    expect(elsewhere?.Status).toBe('FAILED');
    expect(elsewhere?.Reason).toMatch(`reservations: ${id} is in calm, and there are subnets in spiky`);
    expect(elsewhere?.Reason).toMatch('reservations: cr-00000000000000000 is not in this account and region');
  });

  it('says when the account may not ask', async () => {
    double.knobs.set({
      faults: [
        { action: 'DescribeInstanceTypeOfferings', code: 'UnauthorizedOperation', message: 'not you', status: 403 },
      ],
    });
    const answer = await ask({ Families: ['c5'], Zones: ZONES });
    expect(answer?.Status).toBe('FAILED');
    expect(answer?.Reason).toMatch(/account: EC2 refuses .* not you .*service control policies/);
  });

  it('fails no deployment for a fault that passes', async () => {
    double.knobs.set({
      faults: [{ action: 'DescribeInstanceTypeOfferings', code: 'ServiceUnavailable', status: 503, times: 6 }],
    });
    expect(await ask({ Families: ['c5'], Zones: ZONES })).toMatchObject({ Status: 'SUCCESS' });
    expect(double.knobs.now.faults).toEqual([]);
  }, 30_000);

  it('answers when it was asked nonsense, and lets everything be deleted', async () => {
    expect((await ask({ Families: [] }))?.Status).toBe('FAILED');
    expect((await ask({ Families: [] }, { kind: 'Delete' }))?.Status).toBe('SUCCESS');
  });

  it('fails itself when its answer is not taken, so that it is asked again', async () => {
    await expect(ask({ Families: ['c5'], Zones: ZONES }, { status: 403 })).rejects.toThrow(/refuses an answer/);
  });
});
