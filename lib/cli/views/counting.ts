import type { Output } from '../output.ts';

/** Least wall time between two pictures. */
const REDRAW_MS = 100;

/** How far something has come, redrawn on a terminal; elsewhere nothing. */
export interface Counting {
  show(line: () => string): void;
  /** Takes it away. Repeating is harmless. */
  close(): void;
}

export async function counting(output: Output): Promise<Counting> {
  if (!output.liveNotes) return { show: () => undefined, close: () => undefined };
  const redraw = (await import('log-update')).createLogUpdate(process.stderr);
  let drawnMs = performance.now();
  return {
    show: (line) => {
      if (performance.now() - drawnMs < REDRAW_MS) return;
      drawnMs = performance.now();
      redraw(output.drawn(line()));
    },
    close: () => redraw.clear(),
  };
}
