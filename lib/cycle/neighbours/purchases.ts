/** Purchases for groups of which an instance takes only some tasks: one instance's worth, as often as it is needed. */
import type { GroupId } from '../../kernel/ids.ts';
import { vcpusOf } from '../../domain/pool.ts';
import type { Purchase } from '../../domain/plan.ts';
import { countFits, times } from '../../domain/resources.ts';
import type { Leftover, ScaleInput, Scaling, ScalePolicy } from '../../policy/contracts.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import type { Neighbours, RuledStage } from './neighbours.ts';

/**
 * Demand with what the rules say of new instances; without the tasks for which none can be bought. `moves` were allowed
 * as they were planned (targets.ts).
 */
export function leftoversByRules(
  { moves, starts }: { readonly moves: readonly Leftover[]; readonly starts: readonly Leftover[] },
  neighbours: Neighbours,
) {
  const without = new Map<GroupId, string>();
  const inStep = withinSkew(starts, neighbours);
  const kept = new Set(inStep.map((l) => l.group.id));
  for (const { group } of starts) if (!kept.has(group.id)) without.set(group.id, AFTER_OTHERS);
  const shared = (l: Leftover): Leftover => {
    const of = ruledBy(l, neighbours);
    const perInstance = of === null ? Infinity : Math.max(1, neighbours.mostOnNew(of));
    const isOne = of !== null && neighbours.beginsTogether(of, 'instance');
    if (perInstance === Infinity && !isOne) return l;
    return { ...l, perInstance, ...(isOne ? { onOneInstance: true } : {}) };
  };
  const open = inStep.filter((l) => {
    const of = ruledBy(l, neighbours);
    const isOpen = of === null || neighbours.mostOnNew(of) >= 1;
    if (!isOpen) without.set(l.group.id, NO_NEW);
    return isOpen;
  });
  return { open: [...moves, ...open].map(shared), without };
}

const ruledBy = ({ group }: Leftover, neighbours: Neighbours): RuledStage | null =>
  neighbours.of({ job: group.job, stage: group.stage.name });

/**
 * Without the tasks that would wait on new instances for their stage's starts in another zone, which the plan does not
 * begin now.
 */
function withinSkew(leftovers: readonly Leftover[], neighbours: Neighbours): readonly Leftover[] {
  const spread = Map.groupBy(leftovers, (l) => {
    const of = ruledBy(l, neighbours);
    return of !== null && of.maxSkew !== null ? of : null;
  });
  const kept = new Map<Leftover, number>();
  for (const [of, mine] of spread) {
    if (of === null || of.maxSkew === null) continue;
    const coming = (zone: string): number =>
      of.live.in('zone', zone) + mine.reduce((n, l) => (zoneOf(l) === zone ? n + l.count : n), 0);
    const most = Math.min(...of.zones().map((z) => coming(z.zone))) + of.maxSkew;
    const room = new Map(of.zones().map(({ zone }) => [zone, most - of.live.in('zone', zone)]));
    for (const l of mine) {
      const zone = zoneOf(l);
      const left = room.get(zone) ?? l.count;
      const count = Math.max(0, Math.min(l.count, left));
      room.set(zone, left - count);
      kept.set(l, count);
    }
  }
  return leftovers.flatMap((l) => {
    const count = kept.get(l) ?? l.count;
    return count === 0 ? [] : [{ ...l, count }];
  });
}

/** The zone that a group of a spread stage is narrowed to (zones.ts). */
const zoneOf = ({ group }: Leftover): string => group.stage.constraints.zones?.[0] ?? '';

const AFTER_OTHERS = 'spread over zones: it starts after tasks of its stage in a zone with fewer, which start later';
const NO_NEW = 'its affinity keeps it on instances where tasks with certain labels run, and none of them has room';

/**
 * The same policy, asked once for each group of which an instance takes only some. Replicas of a service are asked for
 * together, as its footprint heeds their rules: each is a group of its own, and one instance may take several.
 */
export const scaleByRules =
  (scale: ScalePolicy): ScalePolicy =>
  (input) => {
    const isRuled = (l: Leftover): boolean => l.perInstance !== undefined && l.group.class !== 'service';
    const ruled = input.leftovers.filter(isRuled);
    if (ruled.length === 0) return scale(input);
    const answer = scale({ ...input, leftovers: input.leftovers.filter((l) => !isRuled(l)) });
    const pools = new Map(input.snapshot.pools.map(({ pool }) => [pool.id, pool]));
    const vcpusIn = (p: Purchase): number => {
      const pool = pools.get(p.pool);
      return pool === undefined ? 0 : vcpusOf(pool);
    };
    const purchases = [...answer.purchases];
    const { limits } = input.snapshot;
    let taken = purchases.reduce((n, p) => n + p.count * vcpusIn(p), 0);
    for (const leftover of ruled) {
      const snapshot = { ...input.snapshot, limits: { ...limits, vcpus: limits.vcpus - taken } };
      const of = boughtFor(leftover, { ...input, snapshot }, scale);
      const each = of.once.reduce((n, p) => n + p.count * vcpusIn(p), 0);
      const rounds = each === 0 ? 0 : Math.min(of.rounds, Math.floor(vcpusLeft(snapshot) / each));
      if (rounds < 1) continue;
      taken += rounds * each;
      for (const p of of.once) purchases.push({ ...p, count: p.count * rounds });
    }
    return { ...answer, purchases };
  };

/** Purchases for as many tasks as one instance takes, and how many times they are made. */
function boughtFor(leftover: Leftover, input: ScaleInput, scale: ScalePolicy) {
  const { perInstance = Infinity, onOneInstance = false, count, group, ...rest } = leftover;
  const ask: Leftover = onOneInstance
    ? { ...rest, group: { ...group, need: times(group.need, bundleOf(leftover, input)) }, count: 1 }
    : { ...rest, group, count: Math.min(perInstance, count) };
  const { purchases }: Scaling = scale({ ...input, leftovers: [ask] });
  const once = purchases.filter((p) => p.serves === undefined);
  return { once, rounds: onOneInstance ? 1 : Math.ceil(count / ask.count) };
}

/** Tasks of a group that an instance of its largest offer holds. */
function bundleOf({ group, count, perInstance = Infinity }: Leftover, { offers, snapshot }: ScaleInput): number {
  const { offers: own = [], further } = offers.get(group.id) ?? {};
  const known = new Set([...own, ...(further?.sizes() ?? [])].map((o) => o.pool));
  const most = snapshot.pools.reduce(
    (n, { pool }) => (known.has(pool.id) ? Math.max(n, countFits(group.need, pool.type.capacity)) : n),
    1,
  );
  return Math.min(count, perInstance, most);
}
