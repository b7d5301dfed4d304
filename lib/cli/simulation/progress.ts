import { bar, duration, instant } from '../format.ts';
import type { Output } from '../output.ts';
import type { RunOrder } from './run-order.ts';
import type { RunProgress } from './pool.ts';

/** Wall time between two redraws on a terminal, or between two lines. */
const REDRAW_MS = 250;
const LINE_MS = 15_000;
/** Wall time before the first line, which comes early: it tells how long to wait. */
const FIRST_LINE_MS = 2000;
const BAR_WIDTH = 20;
/** Least width of a bar. */
const SHORTEST_BAR = 5;

export interface ProgressDisplay {
  readonly update: (run: number, progress: RunProgress | null) => void;
  readonly close: () => void;
}

interface Seen {
  readonly startedMs: number;
  readonly latest: RunProgress | null;
  readonly done: boolean;
}

/**
 * Progress of each running simulation: virtual time, events per second, time left. Redrawn on a terminal, elsewhere a
 * line now and then.
 */
export async function showProgress(output: Output, orders: readonly RunOrder[]): Promise<ProgressDisplay> {
  const runs = new Map<number, Seen>();
  const redraw = output.liveNotes ? (await import('log-update')).createLogUpdate(process.stderr) : null;
  const draw = (): void => {
    const lines = linesOf(orders, runs, { nowMs: performance.now(), columns: output.columns });
    if (redraw === null) for (const line of lines) output.note(line);
    else redraw(output.drawn(lines.join('\n')));
  };
  const timer = setInterval(draw, redraw === null ? LINE_MS : REDRAW_MS);
  let first: NodeJS.Timeout | null = null;
  return {
    update: (run, progress) => {
      const known = runs.get(run) ?? { startedMs: performance.now(), latest: null, done: false };
      if (redraw === null && progress !== null) first ??= setTimeout(draw, FIRST_LINE_MS);
      runs.set(run, { ...known, latest: progress ?? known.latest, done: progress === null });
    },
    close: () => {
      clearInterval(timer);
      if (first !== null) clearTimeout(first);
      redraw?.clear();
    },
  };
}

interface Moment {
  readonly nowMs: number;
  /** Width of the terminal: a longer line would wrap. */
  readonly columns: number;
}

function linesOf(orders: readonly RunOrder[], runs: ReadonlyMap<number, Seen>, moment: Moment): string[] {
  const done = [...runs.values()].filter((r) => r.done).length;
  const running = [...runs].filter(([, r]) => !r.done && r.latest !== null);
  return [`simulated ${done} of ${orders.length}`, ...running.map(([i, seen]) => lineOf(orders[i], seen, moment))];
}

function lineOf(order: RunOrder | undefined, { latest, startedMs }: Seen, { nowMs, columns }: Moment): string {
  if (latest === null || order === undefined) return '';
  const { nowMs: at, steps, submitted } = latest;
  const tookS = (nowMs - startedMs) / 1000;
  const { share, left } = standing(latest, tookS);
  const name = `${order.preset}, seed ${order.seed}`.padEnd(24);
  const perS = Math.round(steps / Math.max(tookS, 0.001)).toLocaleString('en-US');
  const rest = `${instant(new Date(at).toISOString())}  ${submitted} jobs  ${perS} events/s  ${left}`;
  const roomFor = Math.min(BAR_WIDTH, columns - name.length - rest.length - 3);
  const drawn = roomFor < SHORTEST_BAR ? '' : `${bar({ done: share, active: 0, total: 1 }, roomFor)} `;
  return `${name} ${drawn}${rest}`;
}

/**
 * Share done after `tookS` seconds, and the time left in words. Measured by jobs if their number is known, because the
 * end of the last one is not. Otherwise by the window, of which the work may need a part only. Extrapolated linearly.
 */
export function standing(
  { fromMs, toMs, nowMs, arrived, mostJobs }: RunProgress,
  tookS: number,
): { readonly share: number; readonly left: string } {
  const ofWindow = Math.min(1, (nowMs - fromMs) / (toMs - fromMs));
  const ofJobs = mostJobs === null ? 0 : Math.min(1, arrived / mostJobs);
  const share = Math.max(ofWindow, ofJobs);
  if (share === 0) return { share, left: '' };
  if (ofJobs === 1) return { share, left: 'last jobs end' };
  const leftS = (tookS / share) * (1 - share);
  return { share, left: ofJobs > ofWindow ? `about ${duration(leftS)} left` : `at most ${duration(leftS)} left` };
}
