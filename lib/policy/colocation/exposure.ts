/**
 * Exposure of a program to its neighbours: what they take of the device of which they take most, as a part of what the
 * machine has. vCPUs count as asked for; disk and network as measured, so that it is known of a machine of another size
 * how much less of it they take. The sum over the neighbours of one group counts by its logarithm: where a device is
 * shared out in proportion, log(1 + sum) is the logarithm of the slow-down.
 */
import { TRANSFERS, type Load, type MostTransfers } from '../../domain/load.ts';

/** Transfer rates of a program without contention, bytes per second. */
export interface Moved {
  readonly disk: number;
  readonly net: number;
}

/** Weight of a new measurement below what was known: a program that is slowed down moves less. */
const FALL = 0.02;

export function movedAfter(known: Moved | undefined, { diskRead, diskWritten, netReceived, netSent }: Load): Moved {
  const after = (was: number | undefined, now: number): number =>
    Math.round(was === undefined || now >= was ? now : was + FALL * (now - was));
  return { disk: after(known?.disk, diskRead + diskWritten), net: after(known?.net, Math.max(netReceived, netSent)) };
}

/** Sum of all transfer rates, bytes per second. */
export const movedBy = (load: Load): number => TRANSFERS.reduce((sum, k) => sum + load[k], 0);

/** One neighbour, in [0, infinity). `part`: of the machine that it asked for. */
export function exposureOf(part: number, { disk, net }: Moved, most: MostTransfers): number {
  const device = (moved: number, of: number): number => (of > 0 && of < Infinity ? moved / of : 0);
  return Math.max(
    part,
    device(disk, Math.min(most.diskRead, most.diskWritten)),
    device(net, Math.min(most.netReceived, most.netSent)),
  );
}
