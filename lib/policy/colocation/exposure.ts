/**
 * Exposure of a program to its neighbours: what they take of the device of which they take most, as a part of what the
 * machine has. vCPUs count as asked for; disk and network as measured, so that it is known of a machine of another size
 * how much less of it they take. The sum over the neighbours of one group counts by its logarithm: where a device is
 * shared out in proportion, log(1 + sum) is the logarithm of the slow-down.
 */
import type { Load, MostTransfers } from '../../domain/load.ts';
import type { Beside } from './slowdowns.ts';

/** What a program moves where nothing is in its way, bytes per second. */
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

/** One neighbour, in [0, infinity). `part`: of the machine that it asked for. */
export function exposureOf(part: number, { disk, net }: Moved, most: MostTransfers): number {
  const device = (moved: number, of: number): number => (of > 0 && of < Infinity ? moved / of : 0);
  return Math.max(
    part,
    device(disk, Math.min(most.diskRead, most.diskWritten)),
    device(net, Math.min(most.netReceived, most.netSent)),
  );
}

/** Groups that a template has met least are forgotten beyond so many. */
const LEAST_USUAL = 1e-4;

/** Mean exposure to each group with one more attempt. */
export function usualAfter(
  usual: Readonly<Record<string, number>>,
  beside: readonly Beside[],
  step: number,
): Readonly<Record<string, number>> {
  const now = new Map(beside.map(({ group, exposure }) => [group, exposure]));
  const groups = new Set([...Object.keys(usual), ...now.keys()]);
  return Object.fromEntries(
    [...groups]
      .map((group) => [group, (1 - step) * (usual[group] ?? 0) + step * (now.get(group) ?? 0)] as const)
      .filter(([, mean]) => mean >= LEAST_USUAL)
      .map(([group, mean]) => [group, Math.round(1e6 * mean) / 1e6]),
  );
}
