/**
 * Parts of a simulation's cost: kept work by purchase option, lost work, and idle time. The parts sum to the bill.
 *
 * An instance's ledger has one row for all of its idle time. Here it is divided by moment, in proportion to the unused
 * share. So with prices that change every hour the division within one instance is an average; sums are exact.
 */
import { raw, type EpochMs } from '../lib/kernel/units.ts';
import type { Attempt } from '../lib/domain/job.ts';
import { dominantShare, milliCpuIn } from '../lib/domain/resources.ts';
import type { Settled } from '../lib/drivers/sim/collector.ts';

/**
 * Kinds of idle time. start-up: before the first task; room: beside tasks; empty: between and after tasks, to the end
 * of a paid hour.
 */
const IDLE = ['start-up', 'room', 'empty'] as const;
type Idle = (typeof IDLE)[number];

export interface CostParts {
  /** Bills of the instances by purchase option, which the other parts divide. */
  readonly billedUsd: Readonly<Record<'spot' | 'on-demand', number>>;
  /** Kept work, in USD and in vCPU-hours as requested by tasks. */
  readonly work: Readonly<Record<'spot' | 'on-demand', { readonly usd: number; readonly vcpuHours: number }>>;
  readonly lostUsd: number;
  readonly idleUsd: Readonly<Record<Idle, number>>;
  readonly launches: Readonly<Record<'spot' | 'on-demand', number>>;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] extends object ? Writable<T[K]> : T[K] };

export class PartsTally {
  readonly #sums: Writable<CostParts> = {
    billedUsd: { spot: 0, 'on-demand': 0 },
    work: { spot: { usd: 0, vcpuHours: 0 }, 'on-demand': { usd: 0, vcpuHours: 0 } },
    lostUsd: 0,
    idleUsd: { 'start-up': 0, room: 0, empty: 0 },
    launches: { spot: 0, 'on-demand': 0 },
  };

  get parts(): CostParts {
    return this.#sums;
  }

  readonly add = (settled: Settled): void => {
    const { instance, pool, rows, attempts } = settled;
    if (instance.launchedMs === null) return;
    const option = pool.option === 'spot' ? 'spot' : 'on-demand';
    this.#sums.launches[option]++;
    const work = this.#sums.work[option];
    for (const a of attempts) work.vcpuHours += (milliCpuIn(a.resources) / 1000) * (raw(a.keptS) / 3600);
    let idleUsd = 0;
    for (const { kind, usd } of rows) {
      this.#sums.billedUsd[option] += usd;
      if (kind === 'work') work.usd += usd;
      else if (kind === 'wasted' || kind === 'speculative') this.#sums.lostUsd += usd;
      else idleUsd += usd;
    }
    const times = idleTimes(settled, instance.launchedMs);
    const all = IDLE.reduce((sum, when) => sum + times[when], 0);
    // Charges beyond the life of an instance without measurable idle time: after its last task.
    if (!(all > 0)) this.#sums.idleUsd.empty += idleUsd;
    else for (const when of IDLE) this.#sums.idleUsd[when] += (idleUsd * times[when]) / all;
  };
}

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly share: number;
}

/** Unused share times time, by kind. O(attempts^2) of an instance. */
function idleTimes({ instance, pool, rows, attempts }: Settled, launchedMs: EpochMs): Record<Idle, number> {
  const times = { 'start-up': 0, room: 0, empty: 0 };
  const endMs = rows.reduce((most, r) => Math.max(most, raw(r.toMs)), raw(instance.endedMs ?? launchedMs));
  const spans = attempts.flatMap((a) => spanOf(a, pool.type.capacity, endMs));
  const firstMs = spans.reduce((least, s) => Math.min(least, s.fromMs), endMs);
  const cuts = [raw(launchedMs), endMs, ...spans.flatMap((s) => [s.fromMs, s.toMs])].sort((a, b) => a - b);
  for (const [i, atMs] of cuts.entries()) {
    const toMs = cuts[i + 1] ?? atMs;
    const there = spans.filter((s) => s.fromMs <= atMs && s.toMs > atMs);
    const unused = Math.max(0, 1 - there.reduce((sum, s) => sum + s.share, 0)) * (toMs - atMs);
    times[there.length > 0 ? 'room' : atMs < firstMs ? 'start-up' : 'empty'] += unused;
  }
  return times;
}

function spanOf(
  { startedMs, endedMs, resources }: Attempt,
  capacity: Settled['pool']['type']['capacity'],
  endMs: number,
): Span[] {
  if (startedMs === null) return [];
  const toMs = Math.min(endMs, endedMs === null ? endMs : raw(endedMs));
  return [{ fromMs: raw(startedMs), toMs, share: dominantShare(resources, capacity) }];
}

export function sumOf(all: readonly CostParts[]): CostParts {
  const sum = (of: (p: CostParts) => number): number => all.reduce((n, p) => n + of(p), 0);
  const workOn = (option: 'spot' | 'on-demand') => ({
    usd: sum((p) => p.work[option].usd),
    vcpuHours: sum((p) => p.work[option].vcpuHours),
  });
  return {
    billedUsd: { spot: sum((p) => p.billedUsd.spot), 'on-demand': sum((p) => p.billedUsd['on-demand']) },
    work: { spot: workOn('spot'), 'on-demand': workOn('on-demand') },
    lostUsd: sum((p) => p.lostUsd),
    idleUsd: {
      'start-up': sum((p) => p.idleUsd['start-up']),
      room: sum((p) => p.idleUsd.room),
      empty: sum((p) => p.idleUsd.empty),
    },
    launches: { spot: sum((p) => p.launches.spot), 'on-demand': sum((p) => p.launches['on-demand']) },
  };
}

export const PARTS_HEADER =
  'preset                total  machines: on-demand   work: spot  (USD/vCPU-h)  on-demand  (USD/vCPU-h, share)    lost  start-up    room   empty   launches';

export function partsText(name: string, { billedUsd, work, lostUsd, idleUsd, launches }: CostParts): string {
  const { spot, 'on-demand': nonInterruptible } = work;
  const totalUsd = billedUsd.spot + billedUsd['on-demand'];
  const rate = ({ usd, vcpuHours }: typeof spot): string => (vcpuHours > 0 ? usd / vcpuHours : 0).toFixed(4);
  const share = (100 * nonInterruptible.vcpuHours) / Math.max(1e-9, spot.vcpuHours + nonInterruptible.vcpuHours);
  const usd = (x: number, width: number): string => x.toFixed(2).padStart(width);
  return (
    `${name.padEnd(18)} ${usd(totalUsd, 8)} ${usd(billedUsd['on-demand'], 20)} ${usd(spot.usd, 12)}      ${rate(spot)}  ${usd(nonInterruptible.usd, 11)}  ${rate(nonInterruptible).padStart(10)}, ` +
    `${share.toFixed(1).padStart(4)} % ${usd(lostUsd, 10)} ${usd(idleUsd['start-up'], 9)} ${usd(idleUsd.room, 7)} ${usd(idleUsd.empty, 7)}   ` +
    `${launches.spot} + ${launches['on-demand']}`
  );
}
