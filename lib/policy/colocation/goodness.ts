/** How well programs share a machine (Mary, Hugo and Hugo*, section 4.1.1). */
import type { Load, MostTransfers } from '../../domain/load.ts';

/** Decay of the worth of I/O with the time in which work waits for it. */
const WAIT_DECAY = 5;

/** Use of a device in both directions, in [0, 1): h of the paper. Two directions at once are worth less than twice. */
const h = (in_: number, out: number): number => Math.tanh(in_ + out);

/** Part of what a device can do; a device whose limit is not known counts as unused. */
const partOf = (bytes: number, most: number): number => (most > 0 && most < Infinity ? bytes / most : 0);

/**
 * Goodness of a co-location by the load of the machine meanwhile: eq. (1), G = f(cpu + (h(disk) + h(net)) l(wait)) with
 * f(x) = exp(1 + x) and l(x) = exp(-5 x). From e for an idle machine to exp(4). Null where the load is not a number.
 */
export function goodness(load: Load, most: MostTransfers): number | null {
  const disk = h(partOf(load.diskRead, most.diskRead), partOf(load.diskWritten, most.diskWritten));
  const net = h(partOf(load.netReceived, most.netReceived), partOf(load.netSent, most.netSent));
  const g = Math.exp(1 + load.cpu + (disk + net) * Math.exp(-WAIT_DECAY * load.ioWait));
  return Number.isFinite(g) ? g : null;
}
