/** What programs ask of a machine while they run, as far as programs beside one another may be in each other's way. */

/** Kinds of transfer, bytes per second. */
export const TRANSFERS = ['diskRead', 'diskWritten', 'netReceived', 'netSent'] as const;
export type Transfer = (typeof TRANSFERS)[number];
export type Transfers = Readonly<Record<Transfer, number>>;

/** Means over a time. */
export interface Load extends Transfers {
  /** Part of all vCPUs of the machine that is busy, in [0, 1]. */
  readonly cpu: number;
  /**
   * Part of the time in which work waited for the disk or the network while a vCPU had nothing to do, in [0, 1]: I/O
   * wait, or the stall time of the kernel (PSI) where it tells that.
   */
  readonly ioWait: number;
}

/** Most that a machine transfers, bytes per second; Infinity: not known. */
export type MostTransfers = Transfers;

export const NO_LOAD: Load = { cpu: 0, ioWait: 0, diskRead: 0, diskWritten: 0, netReceived: 0, netSent: 0 };

const KEYS = ['cpu', 'ioWait', ...TRANSFERS] as const;

/** A load of each key. */
const byKey = (of: (key: (typeof KEYS)[number]) => number): Load =>
  Object.fromEntries(KEYS.map((key) => [key, of(key)])) as unknown as Load;

/** Both at once. */
export const plusLoad = (a: Load, b: Load): Load => byKey((key) => a[key] + b[key]);

export const timesLoad = (a: Load, factor: number): Load => byKey((key) => a[key] * factor);

/**
 * A load of measured values. A counter that went back gives a negative value, a machine that cannot tell gives none:
 * both count as 0. Parts end at 1. Null without a valid `cpu`.
 */
export function soundLoad(of: Partial<Load>): Load | null {
  const isSound = (key: (typeof KEYS)[number]): boolean => Number.isFinite(of[key]) && (of[key] ?? -1) >= 0;
  if (!isSound('cpu')) return null;
  return byKey((key) => {
    const value = isSound(key) ? (of[key] ?? 0) : 0;
    return key === 'cpu' || key === 'ioWait' ? Math.min(1, value) : value;
  });
}
