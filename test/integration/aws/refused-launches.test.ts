import { expect, it } from '@jest/globals';
import { effectKey, instanceId, poolId } from '../../../lib/kernel/ids.ts';
import { usdPerHour } from '../../../lib/kernel/units.ts';
import { AwsWorld } from '../../support/aws-world.ts';

const POOL = poolId('c5.large/calm/spot');
const launch = (name: string) => ({
  key: effectKey(`launch ${name}`),
  instance: instanceId(`i-${name}`),
  pool: POOL,
  bid: usdPerHour(0.05),
});

it('a launch that CreateFleet answers with an error is over, whatever the error', async () => {
  const world = await AwsWorld.begin({ agents: false }, (event, on) => on.process().observe(event));
  try {
    const { fleet } = world.process();
    const expected = {
      UnauthorizedOperation: 'denied',
      'AuthFailure.ServiceLinkedRoleCreationNotPermitted': 'denied',
      'InvalidLaunchTemplateId.NotFound': 'denied',
      RequestLimitExceeded: 'insufficient-capacity',
      InternalError: 'insufficient-capacity',
      SomethingNobodyKnows: 'insufficient-capacity',
      InsufficientInstanceCapacity: 'insufficient-capacity',
      MaxSpotInstanceCountExceeded: 'quota',
      VcpuLimitExceeded: 'quota',
      VolumeLimitExceeded: 'limit',
      SpotMaxPriceTooLow: 'bid-below-price',
      Unsupported: 'unsupported',
      InvalidParameterValue: 'invalid',
    };
    const codes = Object.keys(expected);
    world.double.knobs.set({ fleetErrors: codes.map((code) => ({ code, message: `${code}, says EC2` })) });
    for (const [n, [code, why]] of Object.entries(expected).entries()) {
      const [outcome] = await fleet.launch([launch(String(n))]);
      expect(outcome).toMatchObject({ status: 'refused', why });
      expect(outcome).toHaveProperty('detail', expect.stringContaining(`${code}, says EC2`));
      // Asked again it is the same, and nothing is bought.
      expect(await fleet.launch([launch(String(n))])).toEqual([outcome]);
    }
    expect((await world.instances()).size).toBe(0);
    expect(await fleet.launch([launch('after')])).toEqual([{ status: 'done' }]);
  } finally {
    await world.close();
  }
}, 60_000);

it('a launch that is turned away at the door is over; one without an answer is asked for again', async () => {
  const world = await AwsWorld.begin({ agents: false }, (event, on) => on.process().observe(event));
  try {
    const { fleet } = world.process();
    const turnsAway = (code: string, status: number) =>
      world.double.knobs.set({ faults: [{ action: 'CreateFleet', code, status, times: 3 }] });
    turnsAway('UnauthorizedOperation', 403);
    expect(await fleet.launch([launch('denied')])).toMatchObject([{ status: 'refused', why: 'denied' }]);
    turnsAway('ServiceUnavailable', 503);
    const [failed] = await fleet.launch([launch('unanswered')]);
    expect(failed).toMatchObject({ status: 'failed' });
    expect(failed).not.toHaveProperty('why');
    world.double.knobs.set({ faults: [] });
    expect(await fleet.launch([launch('unanswered')])).toEqual([{ status: 'done' }]);
    expect([...(await world.instances()).keys()]).toEqual(['i-unanswered']);
  } finally {
    await world.close();
  }
}, 60_000);
