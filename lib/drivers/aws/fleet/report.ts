import { soundLoad, type Load } from '../../../domain/load.ts';

/**
 * Report of an attempt's entrypoint at its end (entrypoint.ts): one line of the log, `MARK [max-rss-bytes N
 * cpu-microseconds N [load N,N,...]] [why ...]`. Readers of the log do not see it. A log line costs by its bytes, and
 * its reading nothing. An S3 object cost a fifth of everything else per job.
 *
 * The load has 13 numbers, differences of counters but for the second, `-` for one that the kernel does not tell:
 * - time, s/100; vCPUs of the machine;
 * - of the machine: all ticks of all vCPUs, busy ones, idle ones while something waited for I/O; sectors read and
 *   written; time stalled by I/O, us (PSI);
 * - of the container: bytes read and written, received and sent; time stalled by I/O, us.
 */
export interface TaskReport {
  /** Usage; null if the image or the machine could not tell. */
  readonly usage: { readonly maxRssMiB: number; readonly cpuS: number; readonly load?: ReportedLoad } | null;
  /** Reason of a failure, for people. */
  readonly why: string | null;
}

/** Means over the attempt's time. */
export interface ReportedLoad {
  /** vCPUs of the machine. */
  readonly vcpus: number;
  /** `cpu` of the container is in vCPUs. */
  readonly own: Load;
  /** Network bytes are those of the container: the machine's are not to be seen from there. */
  readonly machine: Load;
}

/** Sectors of proc(5) are of this size, whatever the disk's are. */
const SECTOR_BYTES = 512;
/** Longest reason, characters. A task's program could write anything here. */
const MAX_WHY = 500;

/** True for the report of the attempt with this mark (request-names.ts). */
export const isReport = (line: string, mark: string): boolean => line.startsWith(`${mark} `);

/** Report in a line. Never throws: unreadable parts become unknown. */
export function parseReport(line: string): TaskReport {
  const [, rssBytes, cpuMicros, counted, reason = ''] =
    /^\S+(?: max-rss-bytes (\S+) cpu-microseconds (\S+)(?: load (\S*))?)?(?: why (.*))?$/s.exec(line) ?? [];
  const rss = amount(rssBytes);
  const cpu = amount(cpuMicros);
  const why = reason.trim();
  return {
    usage: rss === null || cpu === null ? null : { maxRssMiB: rss / 2 ** 20, cpuS: cpu / 1e6, ...loadOf(counted, cpu) },
    why: why === '' ? null : why.slice(0, MAX_WHY),
  };
}

/** Empty where the image or the kernel could not tell, or the clock went back. */
function loadOf(text: string | undefined, cpuMicros: number): { readonly load?: ReportedLoad } {
  const counts = (text ?? '').split(',').map((count) => amount(count) ?? NaN);
  if (counts.length !== 13) return {};
  const [hundredths = 0, vcpus = 0, ticks = 0, busy = NaN, idleWaits = NaN, ...rest] = counts;
  const [sectorsRead = NaN, sectorsWritten = NaN, machineStall = NaN, ...own] = rest;
  const [read = NaN, written = NaN, received = NaN, sent = NaN, ownStall = NaN] = own;
  if (!(hundredths > 0) || !(vcpus > 0) || !(ticks > 0)) return {};
  const s = hundredths / 100;
  const net = { netReceived: received / s, netSent: sent / s };
  const stalled = machineStall / 1e6 / s;
  const machine = soundLoad({
    cpu: busy / ticks,
    ioWait: Number.isNaN(stalled) ? idleWaits / ticks : stalled,
    diskRead: (sectorsRead * SECTOR_BYTES) / s,
    diskWritten: (sectorsWritten * SECTOR_BYTES) / s,
    ...net,
  });
  const ownStalled = ownStall / 1e6 / s;
  const used = soundLoad({
    cpu: cpuMicros / 1e6 / s / vcpus,
    // Where the container is not told apart, it waits for what the machine waits for.
    ioWait: Number.isNaN(ownStalled) ? (machine?.ioWait ?? NaN) : ownStalled,
    diskRead: read / s,
    diskWritten: written / s,
    ...net,
  });
  if (used === null || machine === null) return {};
  return { load: { vcpus, own: { ...used, cpu: used.cpu * vcpus }, machine } };
}

function amount(text: string | undefined): number | null {
  const value = text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  return Number.isFinite(value) ? value : null;
}
