import { bar, duration, instant } from '../format.ts';
import type { Output } from '../output.ts';
import type { RunOrder } from './order.ts';
import type { RunProgress } from './pool.ts';

/** Wall time between two pictures on a terminal, and between two lines elsewhere. */
const REDRAW_MS = 250;
const LINE_MS = 15_000;
/** From a simulation's first word to the first line, which comes sooner than the others: it tells how long to wait. */
const FIRST_LINE_MS = 2000;
const BAR_WIDTH = 20;
/** Below it a bar tells nothing. */
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
 * Virtual time, events per second and time left of each simulation that runs: redrawn on a terminal, a line now and
 * then elsewhere.
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
  /** Of the terminal: a line that is longer would be two. */
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
 * How far a simulation is after `tookS` seconds, and the time left in words. By the jobs where their number is known:
 * when the last of them ends nobody knows. Else by the window, of which work may need a part only. Both go on as they
 * began.
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
