/** Questions about `placement` rules that need no more than the job. */
import type { Domain, JobSpec, LabelRule, PlacementRules, StageSpec } from './job.ts';

/** True for a job with all of these labels. */
export const hasLabels = (job: Pick<JobSpec, 'labels'>, wanted: LabelRule['labels']): boolean =>
  Object.entries(wanted).every(([key, value]) => Object.hasOwn(job.labels, key) && job.labels[key] === value);

const sorted = (labels: LabelRule['labels']): readonly (readonly [string, string])[] =>
  Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));

/** Labels for people. */
export const labelText = (labels: LabelRule['labels']): string =>
  sorted(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ');

/** The same for equal labels in any order, and for no others, whatever characters their values have. */
export const labelKey = (labels: LabelRule['labels']): string => JSON.stringify(sorted(labels));

/** Most tasks of the stage in one domain, as far as its own numbers tell; Infinity: any number. */
export function mostTogether({ maxPerInstance = Infinity, spread = [] }: PlacementRules): number {
  // An instance without tasks can always be bought: the fewest on any is 0.
  return spread.reduce((most, s) => (s.over === 'instance' ? Math.min(most, s.maxSkew) : most), maxPerInstance);
}

/** Why rules can never hold, as the end of a sentence; null: they can. */
export function impossibleRule(
  job: Pick<JobSpec, 'labels'>,
  { gang, tasks, placement }: Pick<StageSpec, 'gang' | 'tasks' | 'placement'>,
): string | null {
  const { spread = [], affinity = [], antiAffinity = [] } = placement ?? {};
  // Who shares an instance shares its zone.
  const both = antiAffinity.find((apart) =>
    affinity.some(
      (near) =>
        labelKey(near.labels) === labelKey(apart.labels) && (near.over === apart.over || near.over === 'instance'),
    ),
  );
  if (both !== undefined) return `has ${labelText(both.labels)} over ${both.over} in affinity and antiAffinity`;
  if (!gang || tasks < 2) return null;
  const zone: Domain = 'zone';
  if (spread.some((s) => s.over === zone))
    return 'spreads a gang over zones, which starts as one: leave one of them out';
  return antiAffinity.some((rule) => rule.over === zone && hasLabels(job, rule.labels))
    ? 'keeps the tasks of a gang in different zones, which starts as one: leave one of them out'
    : null;
}
