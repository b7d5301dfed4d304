/** Cases of a ground as one row of the table: every preset against the references, and the winner. */
import { clusterRatio } from '../intervals.ts';
import type { GroundRecord } from '../record.ts';
import type { Estimate } from '../../lib/report/bootstrap.ts';
import type { Ground } from './ground.ts';
import { ORACLE } from '../../lib/report/hindsight.ts';
import type { CaseResult } from './runner.ts';

/** Share of missed deadlines above which a preset is no choice. */
const MOST_MISSED = 0.01;
export const DEFAULT = 'ebbtide';

/** Results of all presets on one case, in one order. */
type Row = readonly CaseResult[];
type Sums = GroundRecord['presets'][number];

const total = <T>(items: readonly T[], of: (item: T) => number): number => items.reduce((sum, x) => sum + of(x), 0);

const estimated = ({ value, interval }: Estimate): Sums['toBound'] =>
  value === null ? null : { value, low: interval?.low ?? null, high: interval?.high ?? null };

/** Ratio of sums over the rows that have both parts, by units that are drawn again together. */
function ratio(
  rows: readonly Row[],
  over: (row: Row) => number | null,
  under: (row: Row) => number | null,
): Sums['toBound'] {
  const units = [...new Set(rows.map((row) => row[0]?.unit ?? ''))];
  const pairs = rows.flatMap((row) => {
    const [a, b] = [over(row), under(row)];
    return a === null || b === null || !(b > 0)
      ? []
      : [{ cluster: units.indexOf(row[0]?.unit ?? ''), over: a, under: b }];
  });
  return pairs.length === 0 ? null : estimated(clusterRatio(pairs));
}

const of =
  (preset: string, figure: (r: CaseResult) => number | null) =>
  (row: Row): number | null => {
    const result = row.find((r) => r.preset === preset);
    return result === undefined ? null : figure(result);
  };

const onDemand = (row: Row): number | null => row[0]?.onDemandUsd ?? null;
const bound = (row: Row): number | null => row[0]?.lowerBoundUsd ?? null;

function sumsOf(rows: readonly Row[], preset: string): Sums {
  const its = rows.flatMap((row) => row.find((r) => r.preset === preset) ?? []);
  return {
    preset,
    usd: total(its, (r) => r.usd),
    toOnDemand: ratio(
      rows,
      of(preset, (r) => r.usd),
      onDemand,
    ),
    toBound: ratio(
      rows,
      of(preset, (r) => r.grossUsd),
      bound,
    ),
    deadlines: total(its, (r) => r.deadlines),
    missed: total(its, (r) => r.missed),
    undone: total(its, (r) => r.undone),
  };
}

/** O(cases x presets x resamples). */
export function rowOf(
  ground: Pick<Ground, 'name' | 'about'>,
  results: readonly CaseResult[],
  presets: readonly string[],
): Omit<GroundRecord, 'when' | 'commit'> {
  const cases = Map.groupBy(results, (r) => `${r.unit}/${r.group}/${r.key}`);
  const rows = [...cases.values()].filter((row) => presets.every((p) => row.some((r) => r.preset === p)));
  const sums = presets.map((preset) => sumsOf(rows, preset));
  const leastUndone = Math.min(...sums.map((s) => s.undone));
  const able = sums
    .filter((s) => s.preset !== ORACLE && s.missed <= MOST_MISSED * s.deadlines && s.undone === leastUndone)
    .toSorted((a, b) => a.usd - b.usd);
  const rival = able.find((s) => s.preset !== DEFAULT)?.preset;
  const toRival =
    rival === undefined
      ? null
      : ratio(
          rows,
          of(DEFAULT, (r) => r.usd),
          of(rival, (r) => r.usd),
        );
  return {
    ground: ground.name,
    about: ground.about,
    cases: rows.length,
    units: new Set(rows.map((row) => row[0]?.unit)).size,
    presets: sums,
    winner: able[0]?.preset ?? null,
    toRival: rival === undefined || toRival === null ? null : { rival, ratio: toRival },
    groups: groupsOf(rows),
  };
}

function groupsOf(rows: readonly Row[]): GroundRecord['groups'] {
  const groups = [...Map.groupBy(rows, (row) => row[0]?.group ?? '')];
  if (groups.length < 2) return [];
  return groups
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([group, its]) => {
      const ratios = its.flatMap((row) => {
        const [usd, reference] = [of(DEFAULT, (r) => r.usd)(row), onDemand(row)];
        return usd === null || reference === null || !(reference > 0) ? [] : [{ usd, reference }];
      });
      if (ratios.length === 0) return [];
      const toOnDemand = total(ratios, (r) => r.usd) / total(ratios, (r) => r.reference);
      return [{ group, cases: its.length, toOnDemand, most: Math.max(...ratios.map((r) => r.usd / r.reference)) }];
    });
}

const shown = (e: Sums['toBound']): string =>
  e === null
    ? '-'
    : `${e.value.toFixed(3)}${e.low === null || e.high === null ? '' : ` [${e.low.toFixed(3)}, ${e.high.toFixed(3)}]`}`;

/** For a terminal. */
export function textOf({ ground, about, cases, units, presets, winner, toRival, groups }: GroundRecord): string {
  const lines = presets.map(
    (p) =>
      `  ${p.preset.padEnd(18)} ${shown(p.toOnDemand).padEnd(22)} ${shown(p.toBound).padEnd(22)} ${p.missed} of ${p.deadlines}${p.undone > 0 ? `, ${p.undone} not done` : ''}`,
  );
  return [
    `\n${ground}: ${about}; ${cases} cases, ${units} units`,
    `  ${'preset'.padEnd(18)} ${'/ on-demand'.padEnd(22)} ${'/ lower bound'.padEnd(22)} missed`,
    ...lines,
    ...groups.map((g) => `  ${DEFAULT}, ${g.group}: ${g.toOnDemand.toFixed(3)}, at most ${g.most.toFixed(2)}`),
    winner === null
      ? '  no preset misses at most 1 % of the deadlines'
      : `  cheapest of those that miss at most 1 %: ${winner}${toRival === null ? '' : `; ${DEFAULT} / ${toRival.rival} ${shown(toRival.ratio)}`}`,
  ].join('\n');
}
