/**
 * Groups of templates that use machines alike (Mary, Hugo and Hugo*, section 4.2.1): k-means over what they were
 * measured to use, k by the mean silhouette. A new clustering gives a group the id of the nearest one before it, so
 * that what was learned of the group stays with it.
 */
import { kmeans } from 'ml-kmeans';
import { silhouette } from 'simple-statistics';
import { compareText } from '../../kernel/compare.ts';

/** Use of a machine by one template, each in [0, 1]: vCPUs, disk, network, waiting, memory. */
export type Profile = readonly number[];

export interface Group {
  readonly id: string;
  readonly centre: Profile;
}

export interface Grouping {
  readonly groups: readonly Group[];
  /** Number of the next new group: ids are never used again. */
  readonly next: number;
}

export const NO_GROUPS: Grouping = { groups: [], next: 1 };

/** Most groups: the issue of preferences is quadratic in them. */
const MOST_GROUPS = 20;
/** Templates that a clustering looks at: silhouettes compare each with each. */
const SAMPLE = 200;
/** Mean silhouette below which one group is as good: clusters that overlap. */
const LEAST_SILHOUETTE = 0.25;
/** A centre that is nearer than this to an earlier one is the same group. */
const SAME = 0.3;

/** Group of a profile: the nearest centre. Null where there is no group. O(groups). */
export function groupOf(profile: Profile, { groups }: Grouping): string | null {
  let [best, least]: [string | null, number] = [null, Infinity];
  for (const { id, centre } of groups) {
    const d = distance(profile, centre);
    if (d < least) [best, least] = [id, d];
  }
  return best;
}

/**
 * Clusters anew. While there are few groups all numbers of groups are tried, later the next ones to the present.
 * O(sample^2 + sample x groups x rounds) for each number that is tried. The same profiles give the same groups.
 */
export function regrouped(profiles: readonly Profile[], before: Grouping): Grouping {
  const sample = sampleOf(profiles);
  if (sample.length === 0) return before;
  const distinct = new Set(sample.map((p) => p.join(' '))).size;
  const most = Math.min(MOST_GROUPS, distinct - 1);
  const now = before.groups.length;
  const tried = range(2, most).filter((k) => now < 3 || Math.abs(k - now) <= 1);
  let [centres, best]: [readonly Profile[], number] = [[meanOf(sample)], LEAST_SILHOUETTE];
  for (const k of tried) {
    const found = clustered(sample, k);
    if (found.silhouette > best) [centres, best] = [found.centres, found.silhouette];
  }
  return named(centres, before);
}

function clustered(points: readonly Profile[], k: number) {
  const { clusters, centroids } = kmeans(
    points.map((p) => [...p]),
    k,
    { seed: k, maxIterations: 50 },
  );
  const of = silhouette(
    points.map((p) => [...p]),
    clusters,
  ) as number[];
  return { centres: centroids as readonly Profile[], silhouette: of.reduce((a, b) => a + b, 0) / of.length };
}

/** Ids of the nearest groups before, the nearest pair first; what is far from all of them is new. */
function named(centres: readonly Profile[], { groups, next }: Grouping): Grouping {
  const pairs = centres
    .flatMap((centre, i) => groups.map((g) => ({ i, id: g.id, d: distance(centre, g.centre) })))
    .filter(({ d }) => d < SAME)
    .sort((a, b) => a.d - b.d || a.i - b.i || compareText(a.id, b.id));
  const ids = new Map<number, string>();
  const taken = new Set<string>();
  for (const { i, id } of pairs) {
    if (ids.has(i) || taken.has(id)) continue;
    ids.set(i, id);
    taken.add(id);
  }
  let number = next;
  const after = centres.map((centre, i) => ({ id: ids.get(i) ?? `g${number++}`, centre }));
  return { groups: after.sort((a, b) => compareText(a.id, b.id)), next: number };
}

/** Evenly spread over the order of the profiles, so that adding one changes little. */
function sampleOf(profiles: readonly Profile[]): readonly Profile[] {
  const sorted = profiles.toSorted((a, b) => compareText(a.join(' '), b.join(' ')));
  if (sorted.length <= SAMPLE) return sorted;
  return range(0, SAMPLE - 1).map((i) => sorted[Math.floor((i * sorted.length) / SAMPLE)] as Profile);
}

const meanOf = (points: readonly Profile[]): Profile =>
  (points[0] ?? []).map((_, d) => points.reduce((sum, p) => sum + (p[d] ?? 0), 0) / points.length);

export const distance = (a: Profile, b: Profile): number =>
  Math.sqrt(a.reduce((sum, x, d) => sum + (x - (b[d] ?? 0)) ** 2, 0));

const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
