import type { Assignment } from '../strl/expression.ts';
import type { Compiled } from './compile.ts';

/**
 * A solution carried back to the leaves: units per member of each chosen leaf. Integer leaves are rounded to the
 * nearest whole number (solvers answer within 1e-6); leaves without units are left out.
 */
export function interpret(compiled: Compiled, values: Float64Array): Assignment {
  const assignment = new Map<string, readonly number[]>();
  for (const { leaf, column, factor, integer } of compiled.leaves) {
    const units = column.map((c) => {
      const exact = (values[c] ?? 0) * factor;
      return integer ? Math.round(exact) : exact;
    });
    if (units.some((u) => u > 1e-6)) assignment.set(leaf.id, units);
  }
  return assignment;
}
