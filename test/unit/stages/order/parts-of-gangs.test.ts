import { describe, expect, it } from '@jest/globals';
import { anywhere } from '../../../../lib/stages/order/anywhere.ts';
import { orderBy } from '../../../../lib/stages/order/starts.ts';
import { binpack } from '../../../../lib/stages/place/binpack.ts';
import { group, instance, pool } from '../../../support/decision-world.ts';
import { orderInput } from '../../../support/order-input.ts';
import { nameOf } from '../../../support/tasks-to-place.ts';
import { resources } from '../../../support/builders.ts';

const here = pool({ vcpus: 4, gib: 16 });
const urgentFirst = orderBy({ urgentFirst: true, keepsOption: true, keepsStages: true, sharesPools: true });
const gangOf = (count: number) =>
  group({ id: 'gang', count, stage: { gang: true, tasks: count }, need: resources(3, 1) });
const small = (count: number) => group({ id: 'small', count, need: resources(1, 1), members: { freshFrom: 0 } });

describe.each([
  ['urgent-first', urgentFirst],
  ['anywhere', anywhere],
])('a gang with room for some of its tasks, under %s', (_, order) => {
  const start = (groups: ReturnType<typeof group>[], machines: number) => {
    const instances = Array.from({ length: machines }, (__, i) => instance(`i-${i + 1}`, here));
    const { placements, reserved, leftovers } = order(
      orderInput({ groups, instances, planned: here, place: binpack('cpu') }),
    );
    const shown = (of: typeof placements) => of.map((p) => `${p.group}/${p.task.index} ${nameOf(p.on)}`).sort();
    return {
      placements: shown(placements),
      reserved: shown(reserved),
      leftovers: leftovers.map((l) => [l.group.id, l.count]),
    };
  };

  it('keeps that room, and buys the rest alone', () => {
    expect(start([gangOf(3)], 2)).toEqual({
      placements: [],
      reserved: ['gang/0 i-1', 'gang/1 i-2'],
      leftovers: [['gang', 1]],
    });
  });

  it('starts where all of it has room, and waits for nothing', () => {
    const { placements, reserved, leftovers } = start([gangOf(2)], 2);
    expect(placements).toHaveLength(2);
    expect([reserved, leftovers]).toEqual([[], []]);
  });

  it('leaves to others what it cannot use, and takes nothing of theirs', () => {
    const { placements, reserved, leftovers } = start([gangOf(2), small(2)], 1);
    expect(placements).toEqual(['small/0 i-1', 'small/1 i-1']);
    expect(reserved).toEqual([]);
    expect(leftovers).toEqual([['gang', 2]]);
  });
});
