import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { invariant } from '../../../../../lib/kernel/errors.ts';
import {
  loadBetween,
  mostTransfers,
  readCounters,
  type Counters,
} from '../../../../../lib/drivers/local/fleet/machine-load.ts';
import { TaskLoad } from '../../../../../lib/drivers/local/fleet/task-load.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ebb-machine-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};

/** A machine with a spinning disk of two partitions, one NVMe disk, and a network card of 10 Gbit/s. */
function machine({ ticks = '100 0 100 700 100 0 0 0', sectors = 1000, bytes = 5000, psi = true } = {}): void {
  write('proc/stat', `cpu  ${ticks} 0 0\ncpu0 1 2 3\n`);
  write(
    'proc/diskstats',
    [
      `   8  0 sda 1 0 ${sectors} 0 1 0 ${2 * sectors} 0 0 0 0`,
      `   8  1 sda1 1 0 ${sectors} 0 1 0 ${2 * sectors} 0 0 0 0`,
      '   7  0 loop0 1 0 999 0 1 0 999 0 0 0 0',
      ` 259  0 nvme0n1 1 0 ${sectors} 0 1 0 0 0 0 0 0`,
    ].join('\n'),
  );
  write(
    'proc/net/dev',
    [
      'Inter-|   Receive  |  Transmit',
      ' face |bytes packets errs',
      '    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0',
      `  eth0: ${bytes} 1 0 0 0 0 0 0 ${3 * bytes} 1 0 0 0 0 0 0`,
      '  veth1: 777 1 0 0 0 0 0 0 777 1 0 0 0 0 0 0',
    ].join('\n'),
  );
  if (psi) write('proc/pressure/io', 'some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\nfull avg10=0 total=0\n');
  for (const name of ['sda', 'loop0', 'nvme0n1'])
    mkdirSync(join(root, 'sys/block', name, 'queue'), { recursive: true });
  write('sys/block/sda/queue/rotational', '1\n');
  write('sys/class/net/lo/speed', '0');
  write('sys/class/net/eth0/speed', '10000\n');
  write('sys/class/net/eth0/device/vendor', '0x1');
  write('sys/class/net/veth1/speed', '10000\n');
}

const read = (): Counters => invariant(readCounters(root), 'the machine has counters');
/** A reading so many seconds later. */
const later = (from: Counters, s: number): Counters => ({ ...read(), atMs: from.atMs + 1000 * s });

describe('load of a machine', () => {
  it('is what its disks, its network and its vCPUs did between two readings', () => {
    machine();
    const from = read();
    machine({ ticks: '200 0 200 900 200 0 0 0', sectors: 3000, bytes: 6000 });
    expect(loadBetween(from, later(from, 2))).toEqual({
      cpu: 200 / 500,
      // Stalled for no time, says PSI, which counts before I/O wait.
      ioWait: 0,
      diskRead: (2 * 2000 * 512) / 2,
      diskWritten: (2 * 2000 * 512) / 2,
      netReceived: 500,
      netSent: 1500,
    });
  });

  it('has I/O wait where there is no PSI', () => {
    machine({ psi: false });
    const from = read();
    machine({ ticks: '200 0 200 900 200 0 0 0', psi: false });
    expect(loadBetween(from, later(from, 2))?.ioWait).toBe(100 / 500);
  });

  it('is not known where counters go back or stand still', () => {
    machine();
    const from = read();
    expect(loadBetween(from, later(from, 0))).toBeNull();
    machine({ ticks: '1 0 1 1 1 0 0 0' });
    expect(loadBetween(from, later(from, 2))).toBeNull();
    // A disk that was taken out: its bytes are none.
    machine({ ticks: '200 0 200 900 200 0 0 0', sectors: 1 });
    expect(loadBetween(from, later(from, 2))).toMatchObject({ diskRead: 0, diskWritten: 0 });
  });

  it('is not known where the kernel tells nothing', () => {
    expect(readCounters(root)).toBeNull();
    machine();
    rmSync(join(root, 'proc/diskstats'));
    expect(readCounters(root)).toBeNull();
  });
});

describe('the most that a machine transfers', () => {
  it('follows from the kinds of its disks and the speed of its network', () => {
    machine();
    expect(mostTransfers(root)).toEqual({
      diskRead: 2.16e9,
      diskWritten: 2.16e9,
      netReceived: 1.25e9,
      netSent: 1.25e9,
    });
  });

  it('is nothing where there is none', () => {
    expect(mostTransfers(root)).toEqual({ diskRead: 0, diskWritten: 0, netReceived: 0, netSent: 0 });
  });
});

describe('load of a task', () => {
  it('is not known of a run that was too short, or whose processes tell nothing', () => {
    expect(new TaskLoad(1000).until(10)).toBeNull();
    const load = new TaskLoad(1000);
    load.add({ rssBytes: 1, cpuMs: 1 });
    expect(load.until(10)).toBeNull();
  });
});
