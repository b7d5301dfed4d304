import { expect, it } from '@jest/globals';
import { effectKey, instanceId, poolId } from '../../../lib/kernel/ids.ts';
import { usdPerHour } from '../../../lib/kernel/units.ts';
import type { StartRequest } from '../../../lib/ports/fleet.ts';
import type { AwsEvent } from '../../../scripts/aws-double/events.ts';
import { AwsWorld } from '../../support/aws-world.ts';
import { sleepOrder } from '../../support/sleep-order.ts';
import { until } from '../../support/until.ts';

/** Tasks that start together on one instance, and end together: what a queue's consumer gets at once. */
const TASKS = 8;
const HOST = instanceId('i-host');
const POOL = poolId('c5.large/calm/spot');

type PerTask = Readonly<Record<'calls' | 'writeUnits' | 'readUnits', number>>;

class Used {
  calls = 0;
  writeUnits = 0;
  readUnits = 0;

  readonly add = ({ operation, units }: { readonly operation: string; readonly units: number }): void => {
    this.calls += 1;
    if (/^(?:BatchGetItem|Query)$/.test(operation)) this.readUnits += units;
    else this.writeUnits += units;
  };

  perTask(): PerTask {
    const { calls, writeUnits, readUnits } = this;
    return { calls: calls / TASKS, writeUnits: writeUnits / TASKS, readUnits: readUnits / TASKS };
  }
}

const orderOf = (n: number): StartRequest => sleepOrder({ job: `j${n}`, index: 0, instance: HOST, sleepS: 1 });

it('the life of an instance and of the tasks on it takes few calls and units', async () => {
  const come: AwsEvent[] = [];
  let taken = 0;
  const world = await AwsWorld.begin({}, async (event) => {
    come.push(event);
  });
  try {
    const [acted, observed] = [new Used(), new Used()];
    const { fleet } = world.process(undefined, acted.add);
    const observer = world.process(undefined, observed.add);
    /** As the queue does: what has come meanwhile, together. */
    const takeIn = async (isMeant: (e: AwsEvent) => boolean, times: number): Promise<void> => {
      await until(() => come.filter(isMeant).length >= times);
      const [from, to] = [taken, come.length];
      taken = to;
      await observer.observe(...come.slice(from, to));
    };
    const ofTask = (lastStatus: string) => (e: AwsEvent) => e.detail['lastStatus'] === lastStatus;
    await fleet.launch([{ key: effectKey('launch'), instance: HOST, pool: POOL, bid: usdPerHour(0.05) }]);
    await takeIn((e) => e.detail['agentConnected'] === true, 1);
    const outcomes = await fleet.start(Array.from({ length: TASKS }, (_, n) => orderOf(n)));
    expect(outcomes.map((o) => o.status)).toEqual(Array.from({ length: TASKS }, () => 'done'));
    await takeIn(ofTask('RUNNING'), TASKS);
    await takeIn(ofTask('STOPPED'), TASKS);
    await fleet.release([{ key: effectKey('release'), instance: HOST }]);
    await takeIn((e) => e.detail['state'] === 'terminated', 1);
    const seen = await world.process().fleet.observe(new Map());
    expect(seen).toHaveLength(3 + 2 * TASKS);
    // As counted, with room for an event that comes a batch later. When each event was taken in alone and each order
    // was a transaction, the calls were 11.5 and 19.75, the write units 7.75 and 5.5, the read units 5.1 and 14.1.
    expectAtMost(acted.perTask(), { calls: 4.25, writeUnits: 2, readUnits: 1.5 });
    expectAtMost(observed.perTask(), { calls: 2.75, writeUnits: 1.25, readUnits: 3.25 });
  } finally {
    await world.close();
  }
}, 60_000);

function expectAtMost(used: PerTask, most: PerTask): void {
  for (const what of ['calls', 'writeUnits', 'readUnits'] as const) {
    expect(used[what]).toBeGreaterThan(0);
    expect(used[what]).toBeLessThanOrEqual(most[what]);
  }
}
