import type { Solver } from '../../lib/policy/solver.ts';

/** For presets that ask nothing of a solver, and cycles whose plan is given. */
export const noSolver: Solver = {
  solve: async () => ({ status: 'failed', detail: 'there is no solver here' }),
  relax: async () => null,
  write: async () => '',
  close: async () => undefined,
};
