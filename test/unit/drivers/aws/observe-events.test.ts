import { describe, expect, it } from '@jest/globals';
import { observeEvents } from '../../../../lib/drivers/aws/compose/compose-observing.ts';
import { fleetEvent } from '../../../../lib/drivers/aws/fleet/event-notices.ts';
import type { Observation } from '../../../../lib/domain/observation.ts';

const event = fleetEvent.parse({
  id: 'one',
  source: 'aws.ec2',
  'detail-type': 'EC2 Spot Instance Interruption Warning',
  time: '2026-01-05T12:00:00Z',
  detail: { 'instance-id': 'i-0123456789abcdef0', 'instance-action': 'terminate' },
});

/** What is learned of an event when the records say that these kinds of observations are new. */
async function learned(...kinds: readonly Observation['kind'][]) {
  let told: (news: readonly Observation[]) => void = () => undefined;
  let stopped = false;
  const parts = {
    inbox: {
      onNews: (listener: typeof told) => {
        told = listener;
        return () => void (stopped = true);
      },
    },
    watch: {
      notices: async () => {
        if (kinds.length > 0) told(kinds.map((kind) => ({ kind }) as Observation));
        return new Map();
      },
    },
  } as unknown as Parameters<typeof observeEvents>[0];
  const { isNews, isDue } = await observeEvents(parts, [event]);
  expect(stopped).toBe(true);
  return { isNews, isDue };
}

describe('events of instances and tasks', () => {
  it.each<Observation['kind']>([
    'instance-ready',
    'instance-rebalance',
    'instance-warned',
    'instance-ended',
    'attempt-ended',
  ])('wake the cycle by %s: something can be decided', async (kind) => {
    expect(await learned(kind)).toEqual({ isNews: true, isDue: true });
    expect(await learned('attempt-started', kind)).toEqual({ isNews: true, isDue: true });
  });

  it('wake nothing by what was foreseen and lets nothing begin, or when they are told again', async () => {
    for (const kind of ['instance-launched', 'attempt-started', 'attempt-checkpointed'] as const) {
      expect(await learned(kind)).toEqual({ isNews: true, isDue: false });
    }
    expect(await learned()).toEqual({ isNews: false, isDue: false });
  });
});
