import type { Output } from '../output.ts';

/** Least wall time between two redraws. */
const REDRAW_MS = 100;

/** Progress on one line of a terminal, redrawn; elsewhere nothing. */
export interface Counting {
  show(line: () => string): void;
  /** Clears the line; may be repeated. */
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
