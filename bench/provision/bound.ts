/**
 * Lower bound of the bill: the LP in which tasks and instances are divisible. Only pools that no other one beats in
 * both resources per dollar, in its zone and purchase option, can be part of it.
 */
import { createRequire } from 'node:module';
import type { PoolView } from '../../lib/domain/pool.ts';
import { raw } from '../../lib/kernel/units.ts';
import { brokenConstraint } from '../../lib/domain/constraints.ts';
import { CONSTRAINTS, type TaskClass } from './load.ts';

type Highs = () => Promise<{ solve(lp: string): { readonly Status: string; readonly ObjectiveValue: number } }>;
const highs = createRequire(import.meta.url)('highs') as Highs;

interface Option {
  readonly view: PoolView;
  readonly capacity: readonly [number, number];
  readonly usd: number;
}

/** US dollars per hour. */
export async function lowestBill(classes: readonly TaskClass[], views: readonly PoolView[]): Promise<number> {
  const options = undominated(views);
  const uses = options.map((): [string[], string[]] => [[], []]);
  const cover = classes.map((of, c) => {
    const terms = options.flatMap(({ view }, o) => {
      if (brokenConstraint(CONSTRAINTS[of.kind], view.pool) !== null) return [];
      uses[o]?.[0].push(`${of.milliCpu} y${c}_${o}`);
      uses[o]?.[1].push(`${of.memMiB} y${c}_${o}`);
      return [`y${c}_${o}`];
    });
    return ` c${c}: ${terms.join(' + ')} = ${of.tasks}`;
  });
  const rows = options.flatMap(({ capacity }, o) =>
    [0, 1].flatMap((k) => {
      const terms = uses[o]?.[k as 0 | 1] ?? [];
      return terms.length === 0 ? [] : [` u${o}_${k}: ${terms.join(' + ')} - ${capacity[k as 0 | 1]} x${o} <= 0`];
    }),
  );
  const objective = options.map(({ usd }, o) => `${usd} x${o}`).join(' + ');
  const lp = `Minimize\n obj: ${objective}\nSubject To\n${cover.join('\n')}\n${rows.join('\n')}\nEnd\n`;
  const solved = (await highs()).solve(lp);
  if (solved.Status !== 'Optimal') throw new Error(`the LP is ${solved.Status}`);
  return solved.ObjectiveValue;
}

function undominated(views: readonly PoolView[]): readonly Option[] {
  const all = views.flatMap((view): Option[] => {
    const { cpu, memory } = view.pool.type.capacity;
    return view.quote === null ? [] : [{ view, capacity: [raw(cpu), raw(memory)], usd: raw(view.quote) }];
  });
  const sides = Map.groupBy(all, ({ view: { pool } }) => `${pool.zone} ${pool.option}`);
  return [...sides.values()].flatMap((side) => {
    const perUsd = side.map(({ capacity: [cpu, mem], usd }) => [cpu / usd, mem / usd] as const);
    return side.filter((_, i) => {
      const [cpu, mem] = perUsd[i] as readonly [number, number];
      return !perUsd.some(([c, m], j) => j !== i && c >= cpu && m >= mem && (c > cpu || m > mem || j < i));
    });
  });
}
