/** `placement` rules, judged from what a simulation did, one start after the other. */
import type { JobSpec, LabelRule, PlacementRules } from '../../lib/domain/job.ts';
import type { Run, Stay } from './observed-run.ts';

interface Of {
  readonly run: Run;
  /** By name. */
  readonly specs: ReadonlyMap<string, JobSpec>;
  /** Zones that jobs may use. */
  readonly zones: readonly string[];
}

/** Rules that starts broke, one sentence each. O(stays^2). */
export function brokenRules({ run, specs, zones }: Of): readonly string[] {
  return run.stays.flatMap((stay, i) => {
    if (isArrival(stay, run.stays)) return [];
    const live = run.stays.slice(0, i).filter((s) => s.untilS > stay.fromS);
    const spec = specs.get(stay.job);
    const why = spec === undefined ? null : brokenBy(stay, { live, spec, specs, zones });
    return why === null ? [] : [`${stay.job}.${stay.index} on ${stay.instance} in ${stay.zone}: ${why}`];
  });
}

/** What goes on after a move was judged when it left. */
const isArrival = (stay: Stay, all: readonly Stay[]): boolean =>
  all.some((s) => s.job === stay.job && s.index === stay.index && s.end === 'moved' && s.untilS <= stay.fromS);

interface At extends Pick<Of, 'specs' | 'zones'> {
  readonly live: readonly Stay[];
  readonly spec: JobSpec;
}

function brokenBy(stay: Stay, { live, spec, specs, zones }: At): string | null {
  const rules: PlacementRules = spec.stages[0]?.placement ?? {};
  const own = live.filter((s) => s.job === stay.job);
  const there = own.filter((s) => s.instance === stay.instance).length;
  if (there >= (rules.maxPerInstance ?? Infinity)) return 'maxPerInstance';
  for (const { over, maxSkew } of rules.spread ?? []) {
    const counts = over === 'instance' ? [0] : zones.map((z) => own.filter((s) => s.zone === z).length);
    const here = over === 'instance' ? there : own.filter((s) => s.zone === stay.zone).length;
    if (here + 1 - Math.min(...counts) > maxSkew) return `spread over ${over}`;
  }
  const has = (s: Stay, { labels }: LabelRule): boolean => {
    const of = specs.get(s.job);
    return of?.owner === spec.owner && Object.entries(labels).every(([key, value]) => of.labels[key] === value);
  };
  const beside = (s: Stay, { over }: LabelRule): boolean => s[over] === stay[over];
  for (const rule of rules.affinity ?? []) {
    const all = live.filter((s) => has(s, rule));
    if (all.length === 0 ? !has(stay, rule) : !all.some((s) => beside(s, rule))) return 'affinity';
  }
  for (const rule of rules.antiAffinity ?? [])
    if (live.some((s) => has(s, rule) && beside(s, rule))) return 'antiAffinity';
  for (const s of live) {
    for (const rule of specs.get(s.job)?.stages[0]?.placement?.antiAffinity ?? []) {
      if (specs.get(s.job)?.owner === spec.owner && has(stay, rule) && beside(s, rule))
        return `antiAffinity of ${s.job}`;
    }
  }
  return null;
}
