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

/**
 * Fewest and most groups. Six, as many as the paper has for nine jobs, are learned about within hours, and fewer would
 * mix programs that stress different devices; the number of preferences is quadratic in them.
 */
const LEAST_GROUPS = 6;
const MOST_GROUPS = 20;
/** Templates that a clustering looks at: silhouettes compare each with each. */
const SAMPLE = 120;
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
  const distinct = new Map(sample.map((p) => [p.join(' '), p]));
  // Few programs: each is a group, until there are others like it.
  if (distinct.size <= LEAST_GROUPS) return named([...distinct.values()], before);
  const most = Math.min(MOST_GROUPS, distinct.size - 1);
  const now = before.groups.length;
  const tried = range(LEAST_GROUPS, most).filter((k) => now < LEAST_GROUPS || Math.abs(k - now) <= 1);
  let [centres, best]: [readonly Profile[], number] = [[], -Infinity];
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
  );
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
  const named = profiles.map((profile) => ({ profile, name: profile.join(' ') }));
  const sorted = named.sort((a, b) => compareText(a.name, b.name)).map(({ profile }) => profile);
  if (sorted.length <= SAMPLE) return sorted;
  return range(0, SAMPLE - 1).map((i) => sorted[Math.floor((i * sorted.length) / SAMPLE)] as Profile);
}

export const distance = (a: Profile, b: Profile): number =>
  Math.sqrt(a.reduce((sum, x, d) => sum + (x - (b[d] ?? 0)) ** 2, 0));

const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
