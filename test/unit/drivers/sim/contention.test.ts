import { describe, expect, it } from '@jest/globals';
import { contended, type Machine, type TaskLoad } from '../../../../lib/drivers/sim/interference/contention.ts';

const NODE: Machine = {
  vcpus: 4,
  most: { diskRead: 100, diskWritten: 100, netReceived: 10, netSent: 10 },
  seek: 0.3,
};
const NOTHING = { diskRead: 0, diskWritten: 0, netReceived: 0, netSent: 0 };
const task = (of: Partial<TaskLoad>): TaskLoad => ({
  vcpus: 0,
  transfers: NOTHING,
  memory: 0,
  ...of,
  bound: { cpu: 0, disk: 0, net: 0, memory: 0, ...of.bound },
});
const cruncher = task({ vcpus: 2, bound: { cpu: 1, disk: 0, net: 0, memory: 0 } });
const reader = task({
  vcpus: 0.5,
  transfers: { ...NOTHING, diskRead: 80 },
  bound: { cpu: 0.1, disk: 0.8, net: 0, memory: 0 },
});

describe('contention on a machine', () => {
  it('is none where there is enough of everything', () => {
    const { paces, load } = contended([cruncher, reader], NODE);
    expect(paces).toEqual([1, 1]);
    expect(load.cpu).toBeCloseTo(2.5 / 4, 9);
    expect(load.diskRead).toBeCloseTo(80, 9);
  });

  it('shares vCPUs in proportion', () => {
    const { paces, load } = contended([cruncher, cruncher, cruncher], NODE);
    for (const pace of paces) expect(pace).toBeCloseTo(2 / 3, 6);
    expect(load.cpu).toBeCloseTo(1, 6);
  });

  it('gives readers of one disk no more than it reads, less for its seeks', () => {
    const { paces, load } = contended([reader, reader], NODE);
    expect(paces[0]).toBeLessThan(0.7);
    expect(load.diskRead).toBeCloseTo(100 / 1.3, 3);
    // Those on solid state seek nothing.
    expect(contended([reader, reader], { ...NODE, seek: 0 }).load.diskRead).toBeCloseTo(100, 3);
  });

  it('makes idle vCPUs wait while programs wait for the disk', () => {
    const alone = contended([reader], NODE).load.ioWait;
    const both = contended([reader, reader], NODE).load.ioWait;
    expect(alone).toBeGreaterThan(0);
    expect(both).toBeGreaterThan(2 * alone);
    expect(contended([cruncher, cruncher], NODE).load.ioWait).toBeLessThan(1e-9);
  });

  it('does not depend on the order of the programs, and nobody gains by company', () => {
    const all = [cruncher, reader, reader, cruncher];
    const { paces } = contended(all, NODE);
    expect(contended(all.toReversed(), NODE).paces).toEqual(paces.toReversed());
    for (const pace of paces) expect(pace).toBeLessThanOrEqual(1);
    expect(contended([], NODE)).toMatchObject({ paces: [], load: { cpu: 0 } });
  });
});
