import { unreachable } from '../../../kernel/errors.ts';
import { childrenOf, isKill, isLeaf, leavesOf, type Assignment, type Expression, type Leaf } from './expression.ts';
import { supplyRows, type Supply } from './supply.ts';

const TOLERANCE = 1e-6;

/** Units that the assignment gives to a leaf, over all members. */
export const unitsOf = (leaf: Leaf, assignment: Assignment): number =>
  (assignment.get(leaf.id) ?? []).reduce((total, units) => total + units, 0);

/** True if any leaf below has units. */
export const isChosen = (e: Expression, assignment: Assignment): boolean =>
  isLeaf(e) ? unitsOf(e, assignment) > TOLERANCE : childrenOf(e).some((child) => isChosen(child, assignment));

/** Value of an assignment, by the semantics in expression.ts; meaningful where `violations` finds nothing. */
export function valueOf(e: Expression, assignment: Assignment): number {
  switch (e.kind) {
    case 'nCk':
      return unitsOf(e, assignment) >= e.k - TOLERANCE ? e.value : 0;
    case 'lnCk':
      return (e.value * unitsOf(e, assignment)) / e.k;
    case 'killnCk':
      return unitsOf(e, assignment) >= e.k - TOLERANCE ? -e.cost : 0;
    case 'killLnCk':
      return (-e.cost * unitsOf(e, assignment)) / e.k;
    case 'max': {
      const chosen = e.of.filter((child) => isChosen(child, assignment));
      return chosen.length === 0 ? 0 : Math.max(...chosen.map((child) => valueOf(child, assignment)));
    }
    case 'min':
      return e.of.length === 0 ? 0 : Math.min(...e.of.map((child) => valueOf(child, assignment)));
    case 'sum':
      return e.of.reduce((total, child) => total + valueOf(child, assignment), 0);
    case 'scale':
      return e.factor * valueOf(e.of, assignment);
    case 'barrier':
      return valueOf(e.of, assignment) >= e.threshold - TOLERANCE ? e.threshold : 0;
    default:
      return unreachable(e, 'valueOf');
  }
}

/**
 * Constraints that an assignment breaks: demand, member limits, exclusive choices, supply rows. Empty for a feasible
 * one.
 */
export function violations(e: Expression, supply: Supply, assignment: Assignment): readonly string[] {
  const found: string[] = [];
  const rows = supplyRows(supply);
  const used = new Float64Array(rows.count);
  for (const leaf of leavesOf(e)) {
    const units = unitsOf(leaf, assignment);
    const allOrNothing = leaf.kind === 'nCk' || leaf.kind === 'killnCk';
    if (units > leaf.k + TOLERANCE) found.push(`${leaf.id}: ${units} of at most ${leaf.k}`);
    if (allOrNothing && units > TOLERANCE && units < leaf.k - TOLERANCE)
      found.push(`${leaf.id}: ${units} of ${leaf.k}`);
    leaf.set.forEach((member, index) => {
      const count = assignment.get(leaf.id)?.[index] ?? 0;
      if (count < -TOLERANCE || count > member.atMost + TOLERANCE) found.push(`${leaf.id}: ${count} of ${member.name}`);
      const use = rows.use(member.draws, leaf.start, leaf.start + leaf.duration);
      use.row.forEach((row, i) => {
        used[row] = (used[row] ?? 0) + (isKill(leaf) ? -1 : 1) * count * (use.coefficient[i] ?? 0);
      });
    });
  }
  used.forEach((amount, row) => {
    const capacity = rows.capacity[row] ?? 0;
    if (amount > capacity + TOLERANCE * Math.max(1, Math.abs(capacity))) {
      found.push(`${rows.name(row)}: ${amount} of ${capacity}`);
    }
  });
  return [...found, ...exclusions(e, assignment)];
}

function exclusions(e: Expression, assignment: Assignment): readonly string[] {
  const below = childrenOf(e).flatMap((child) => exclusions(child, assignment));
  const chosen = childrenOf(e).filter((child) => isChosen(child, assignment)).length;
  if (e.kind === 'max' && chosen > 1) return [...below, `max: ${chosen} children chosen`];
  return below;
}
