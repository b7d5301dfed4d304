import type { Solver } from '../../lib/policy/solver.ts';

/** Solver for presets and cycles that never use one. */
export const noSolver: Solver = {
  solve: async () => ({ status: 'failed', detail: 'there is no solver here' }),
  relax: async () => null,
  write: async () => '',
  close: async () => undefined,
};
