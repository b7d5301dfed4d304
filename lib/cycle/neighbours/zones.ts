/**
 * Rules over zones, before anything is judged: a group that may not have tasks in every zone becomes one that its own
 * constraints keep out of some, or one per zone with as many tasks as may start there. So each stage of a decision
 * sees hard constraints alone.
 */
import { groupId } from '../../kernel/ids.ts';
import { stageKey, type StageSpec } from '../../domain/job.ts';
import { labelText } from '../../domain/placement-rules.ts';
import type { BlockedJob, PendingGroup, Snapshot } from '../../domain/snapshot.ts';
import { slot, type DecisionMemory } from '../../policy/memory.ts';
import type { Neighbours, RuledStage, ZoneThere } from './neighbours.ts';

/**
 * The same snapshot where no group is concerned. Groups that keep others out of their zone choose first, one zone each
 * where such others wait too. O(tasks of ruled groups x zones^2).
 */
export function inZones(snapshot: Snapshot, neighbours: Neighbours, memory: DecisionMemory): Snapshot {
  const ruled = snapshot.groups.flatMap((group): Ruled[] => {
    const of = group.goesTo === undefined ? neighbours.of({ job: group.job, stage: group.stage.name }) : null;
    return of === null ? [] : [{ group, of }];
  });
  if (ruled.length === 0) return snapshot;
  const narrowing = new Narrowing(neighbours, ruled, memory.of(CHOSEN));
  const narrowed = narrowing.all();
  const groups = snapshot.groups.flatMap((g) => narrowed.get(g) ?? [g]);
  return narrowed.size === 0 ? snapshot : { ...snapshot, groups, blocked: [...snapshot.blocked, ...narrowing.blocked] };
}

/** Zone of stages that go to one, by stage. */
const CHOSEN = slot(() => new Map<string, string>());

const keyOf = ({ job, stage }: PendingGroup): string => stageKey({ job, stage: stage.name });

interface Ruled {
  readonly group: PendingGroup;
  readonly of: RuledStage;
}

class Narrowing {
  readonly blocked: BlockedJob[] = [];
  readonly #neighbours: Neighbours;
  readonly #ruled: readonly Ruled[];
  readonly #stages = new Map<StageSpec, Map<string, StageSpec>>();
  /** Stages that wait, by labels that rules name. */
  readonly #waiting = new Map<RuledStage['labelled'][number], Set<RuledStage>>();
  readonly #chosen: Map<string, string>;

  constructor(neighbours: Neighbours, ruled: readonly Ruled[], chosen: Map<string, string>) {
    this.#neighbours = neighbours;
    this.#ruled = ruled;
    this.#chosen = chosen;
    const waiting = new Set(ruled.map((r) => keyOf(r.group)));
    for (const key of chosen.keys()) if (!waiting.has(key)) chosen.delete(key);
    for (const { of } of ruled) {
      for (const selector of of.labelled) {
        const stages = this.#waiting.get(selector);
        if (stages === undefined) this.#waiting.set(selector, new Set([of]));
        else stages.add(of);
      }
    }
  }

  /** What groups become; those that stay as they are are not among them. */
  all(): ReadonlyMap<PendingGroup, readonly PendingGroup[]> {
    const planned: { readonly of: RuledStage; readonly zone: string; readonly count: number }[] = [];
    const narrowed = new Map<PendingGroup, readonly PendingGroup[]>();
    for (const one of this.#ruled.toSorted((a, b) => this.#turn(a) - this.#turn(b))) {
      const { group, of } = one;
      const parts = this.#partsOf(one);
      if (parts === null) continue;
      for (const { zones, count } of parts) {
        const [zone] = zones;
        if (zones.length !== 1 || zone === undefined) continue;
        this.#neighbours.add(of, { on: null, zone }, count);
        planned.push({ of, zone, count });
      }
      const left = group.count - parts.reduce((n, p) => n + p.count, 0);
      if (left > 0) this.blocked.push(blockedBy(group, left, of));
      let from = 0;
      const made = parts.map(({ zones, count }) => {
        from += count;
        return this.#part(group, { zones, from: from - count, count });
      });
      narrowed.set(group, made);
    }
    for (const { of, zone, count } of planned) this.#neighbours.add(of, { on: null, zone }, -count);
    return narrowed;
  }

  /** Who keeps others out goes first. Who can only go where certain tasks are takes no zone from others. */
  #turn({ of }: Ruled): number {
    if (this.#neighbours.mostOnNew(of) < 1) return 2;
    return of.antiAffinity.some((r) => r.over === 'zone') ? 0 : 1;
  }

  /** Null: the group may be everywhere. Counts may be less than the group's: the others wait. */
  #partsOf({ group, of }: Ruled): readonly Part[] | null {
    const zones = of.zones();
    if (zones.length === 0) return null;
    if (missingOf(of) !== undefined) return [];
    const most = zones.map(({ zone }) => this.#neighbours.mostIn(of, zone));
    if (most.some((n) => n > 0 && n < Infinity)) {
      const counts = evenly(group.count, of, this.#neighbours);
      return group.stage.gang && counts.length > 1 ? [] : counts;
    }
    const free = zones.filter((_, i) => most[i] === Infinity);
    if (this.#neighbours.beginsTogether(of, 'zone') || this.#othersWait(of)) {
      const zone = this.#choose(group, free);
      return zone === null ? [] : [{ zones: [zone], count: group.count }];
    }
    if (free.length === zones.length) return null;
    return free.length === 0 ? [] : [{ zones: free.map((z) => z.zone), count: group.count }];
  }

  /** The zone of the decision before, if it can be had, or else the best: what is bought there is not given back. */
  #choose(group: PendingGroup, free: readonly ZoneThere[]): string | null {
    const open = free.filter((z) => z.isOpen);
    const before = this.#chosen.get(keyOf(group));
    const [best] = open.toSorted((a, b) => usdFor(a, group.count) - usdFor(b, group.count));
    const zone = open.find((z) => z.zone === before)?.zone ?? best?.zone ?? null;
    if (zone !== null) this.#chosen.set(keyOf(group), zone);
    return zone;
  }

  /** True if tasks that the stage keeps out of its zone wait too. */
  #othersWait(of: RuledStage): boolean {
    return of.antiAffinity.some(
      ({ over, selector }) => over === 'zone' && [...(this.#waiting.get(selector) ?? [])].some((other) => other !== of),
    );
  }

  #part(group: PendingGroup, of: Part & { readonly from: number }): PendingGroup {
    const { members } = group;
    const key = of.zones.join();
    let known = this.#stages.get(group.stage);
    if (known === undefined) this.#stages.set(group.stage, (known = new Map<string, StageSpec>()));
    let stage = known.get(key);
    if (stage === undefined) {
      const constraints = { ...group.stage.constraints, zones: of.zones };
      known.set(key, (stage = { ...group.stage, constraints }));
    }
    return {
      ...group,
      id: of.count === group.count ? group.id : groupId(`${group.id}@${key}`),
      stage,
      count: of.count,
      members:
        'indices' in members
          ? { indices: members.indices.slice(of.from, of.from + of.count) }
          : { ...members, freshFrom: members.freshFrom + of.from },
    };
  }
}

/** Price of a further place in a zone: nothing where instances have room for all. */
const usdFor = ({ room, usdPerHour }: ZoneThere, tasks: number): number => (room >= tasks ? 0 : usdPerHour);

interface Part {
  readonly zones: readonly string[];
  readonly count: number;
}

/**
 * One task after the other to the open zone with the fewest, of these to one with room or else the cheapest, while the
 * rules allow it.
 */
function evenly(tasks: number, of: RuledStage, neighbours: Neighbours): readonly Part[] {
  const open = of.zones().filter((z) => z.isOpen);
  const counts = new Map<string, number>();
  const isBetter = (a: ZoneThere, b: ZoneThere): boolean => {
    const fewer = of.live.in('zone', a.zone) - of.live.in('zone', b.zone);
    if (fewer !== 0) return fewer < 0;
    return usdFor(a, 1 + (counts.get(a.zone) ?? 0)) < usdFor(b, 1 + (counts.get(b.zone) ?? 0));
  };
  for (let n = 0; n < tasks; n++) {
    let best: ZoneThere | null = null;
    for (const there of open) {
      if (best !== null && !isBetter(there, best)) continue;
      if (neighbours.mostIn(of, there.zone) >= 1) best = there;
    }
    if (best === null) break;
    counts.set(best.zone, (counts.get(best.zone) ?? 0) + 1);
    neighbours.add(of, { on: null, zone: best.zone });
  }
  for (const [zone, count] of counts) neighbours.add(of, { on: null, zone }, -count);
  return [...counts].map(([zone, count]) => ({ zones: [zone], count }));
}

const blockedBy = ({ job, stage }: PendingGroup, tasks: number, of: RuledStage): BlockedJob => ({
  job,
  stage: stage.name,
  why: 'placement',
  tasks,
  detail: whyNowhere(of),
  untilMs: null,
});

/** An affinity to labels that no live task has, nor the stage itself. */
const missingOf = ({ affinity }: RuledStage) => affinity.find((r) => r.selector.live.total === 0 && !r.own);

/** Why a stage may start in no zone. */
function whyNowhere(of: RuledStage): string {
  const missing = missingOf(of);
  if (missing !== undefined)
    return `affinity: no task with ${labelText(missing.selector.labels)} runs, beside which it could`;
  if (of.maxSkew !== null) {
    const [fewest] = of.zones().toSorted((a, b) => of.live.in('zone', a.zone) - of.live.in('zone', b.zone));
    if (fewest !== undefined)
      return (
        `spread over zones, maxSkew ${of.maxSkew}: ${fewest.zone} has the fewest tasks of the stage` +
        (fewest.isOpen ? '' : ', and nothing can be had there now')
      );
  }
  return 'affinity and antiAffinity: tasks with the labels that they name keep it out of every zone that it may use';
}
