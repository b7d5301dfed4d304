/**
 * What the whole machine does, by counters of the kernel (proc(5)), Linux alone. Imported by the supervisor: node:
 * imports and those of plain data only.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { soundLoad, type Load, type MostTransfers } from '../../../domain/load.ts';

/** Counters since the machine started. */
export interface Counters {
  /** Wall time of this process, ms. */
  readonly atMs: number;
  /** Clock ticks of all vCPUs together: all, busy, and idle while something waited for I/O. */
  readonly ticks: number;
  readonly busyTicks: number;
  readonly ioWaitTicks: number;
  /** Time in which some process was stalled by I/O (PSI), ms; null: the kernel does not tell. */
  readonly stalledMs: number | null;
  readonly diskRead: number;
  readonly diskWritten: number;
  readonly netReceived: number;
  readonly netSent: number;
}

/** Sectors of proc(5) are of this size, whatever the disk's are. */
const SECTOR_BYTES = 512;
/** Devices that are no disks of their own. */
const NO_DISK = /^(loop|ram|zram|dm-|md|sr|fd)/;
/** What disks transfer where nothing tells, bytes per second: spinning, solid state, NVMe. */
const DISK_RATES = { spinning: 160e6, solid: 500e6, nvme: 2e9 };
/** A network interface that does not tell its speed, Mbit/s. */
const USUAL_MBITS = 1000;

/** Null where there are no such counters. */
export function readCounters(root = ''): Counters | null {
  try {
    const [, ...fields] = (textOf(`${root}/proc/stat`).split('\n', 1)[0] ?? '').split(/\s+/);
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are within user.
    const ticks = fields.slice(0, 8).map(Number);
    const all = ticks.reduce((a, b) => a + b, 0);
    const [idle = NaN, ioWait = NaN] = ticks.slice(3);
    return {
      atMs: performance.now(),
      ticks: all,
      busyTicks: all - idle - ioWait,
      ioWaitTicks: ioWait,
      stalledMs: stalledMs(root),
      ...diskBytes(root),
      ...netBytes(root),
    };
  } catch {
    return null;
  }
}

/** Mean load between two readings; null where counters went back, or no time has passed. */
export function loadBetween(from: Counters, to: Counters): Load | null {
  const s = (to.atMs - from.atMs) / 1000;
  const ticks = to.ticks - from.ticks;
  if (!(s > 0) || !(ticks > 0)) return null;
  const stalled = from.stalledMs === null || to.stalledMs === null ? null : (to.stalledMs - from.stalledMs) / 1000 / s;
  return soundLoad({
    cpu: (to.busyTicks - from.busyTicks) / ticks,
    ioWait: stalled ?? (to.ioWaitTicks - from.ioWaitTicks) / ticks,
    diskRead: (to.diskRead - from.diskRead) / s,
    diskWritten: (to.diskWritten - from.diskWritten) / s,
    netReceived: (to.netReceived - from.netReceived) / s,
    netSent: (to.netSent - from.netSent) / s,
  });
}

/** Most that its disks and its network transfer, by what kind they are: no measurement that would itself disturb. */
export function mostTransfers(root = ''): MostTransfers {
  const disk = disksOf(root).reduce((sum, name) => {
    if (name.startsWith('nvme')) return sum + DISK_RATES.nvme;
    return (
      sum + (numberIn(`${root}/sys/block/${name}/queue/rotational`) === 1 ? DISK_RATES.spinning : DISK_RATES.solid)
    );
  }, 0);
  const mbits = interfacesOf(root).reduce((sum, name) => {
    const told = numberIn(`${root}/sys/class/net/${name}/speed`);
    return sum + (told !== null && told > 0 ? told : USUAL_MBITS);
  }, 0);
  const net = (mbits * 1e6) / 8;
  return { diskRead: disk, diskWritten: disk, netReceived: net, netSent: net };
}

function stalledMs(root: string): number | null {
  try {
    const micros = /^some .*total=(\d+)/m.exec(textOf(`${root}/proc/pressure/io`))?.[1];
    return micros === undefined ? null : Number(micros) / 1000;
  } catch {
    return null;
  }
}

function diskBytes(root: string): Pick<Counters, 'diskRead' | 'diskWritten'> {
  const disks = new Set(disksOf(root));
  const sums = { diskRead: 0, diskWritten: 0 };
  for (const line of textOf(`${root}/proc/diskstats`).split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (!disks.has(fields[2] ?? '')) continue;
    sums.diskRead += Number(fields[5]) * SECTOR_BYTES;
    sums.diskWritten += Number(fields[9]) * SECTOR_BYTES;
  }
  return sums;
}

function netBytes(root: string): Pick<Counters, 'netReceived' | 'netSent'> {
  const interfaces = new Set(interfacesOf(root));
  const sums = { netReceived: 0, netSent: 0 };
  for (const line of textOf(`${root}/proc/net/dev`).split('\n')) {
    const [name = '', rest = ''] = line.split(':');
    if (!interfaces.has(name.trim())) continue;
    const fields = rest.trim().split(/\s+/).map(Number);
    sums.netReceived += fields[0] ?? NaN;
    sums.netSent += fields[8] ?? NaN;
  }
  return sums;
}

const disksOf = (root: string): readonly string[] => namesIn(`${root}/sys/block`).filter((name) => !NO_DISK.test(name));

/** Devices; in a container, which sees none, all but loopback. */
function interfacesOf(root: string): readonly string[] {
  const all = namesIn(`${root}/sys/class/net`).filter((name) => name !== 'lo');
  const devices = all.filter((name) => namesIn(`${root}/sys/class/net/${name}/device`).length > 0);
  return devices.length > 0 ? devices : all;
}

function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function numberIn(path: string): number | null {
  try {
    const value = Number(textOf(path).trim());
    return Number.isFinite(value) ? value : null;
  } catch {
    return null;
  }
}

const textOf = (path: string): string => readFileSync(path, 'latin1');
