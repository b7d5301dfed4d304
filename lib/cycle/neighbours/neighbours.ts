/**
 * Who lives where, as far as `placement` rules ask: live tasks of a stage and of labels, by zone and by instance. A
 * task lives on an instance until it has ended there; on its way from another one it lives at its target as well.
 */
import type { InstanceId, JobId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { takesTasks } from '../../domain/instance.ts';
import { stageKey, type Domain, type Job, type LabelRule, type StageSpec, type TaskRef } from '../../domain/job.ts';
import { REVISION_LABEL, SERVICE_LABEL } from '../../domain/service.ts';
import { hasLabels, labelKey, mostTogether } from '../../domain/placement-rules.ts';
import type { Placement } from '../../domain/plan.ts';
import { usdPerHourOf } from '../../domain/pool.ts';
import { countFits, dominantShare } from '../../domain/resources.ts';
import { runningByJob, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';

/** Number of live tasks. */
class Live {
  readonly instance = new Map<string, number>();
  readonly zone = new Map<string, number>();
  total = 0;

  add({ on, zone }: Site, n: number): void {
    this.total += n;
    this.zone.set(zone, (this.zone.get(zone) ?? 0) + n);
    if (on !== null) this.instance.set(on, (this.instance.get(on) ?? 0) + n);
  }

  in(over: Domain, name: string): number {
    return this[over].get(name) ?? 0;
  }
}

/** Labels that some rule of an owner names. */
interface Selector {
  readonly labels: LabelRule['labels'];
  readonly live: Live;
  /** Tasks that keep tasks with these labels away from their zone, or from their instance. */
  readonly repelling: Readonly<Record<Domain, Live>>;
}

/** A label rule; `own`: the stage's own job has the labels. */
interface Rule {
  readonly over: Domain;
  readonly selector: Selector;
  readonly own: boolean;
}

/** A stage whose tasks may not be everywhere. */
export interface RuledStage {
  readonly stage: StageSpec;
  readonly live: Live;
  readonly affinity: readonly Rule[];
  readonly antiAffinity: readonly Rule[];
  /** Labels of its job that rules name. */
  readonly labelled: readonly Selector[];
  /** Most tasks on an instance and in a zone by its own numbers. */
  readonly most: number;
  readonly maxSkew: number | null;
  /** Zones that its constraints allow. */
  readonly zones: () => readonly ZoneThere[];
}

/** Where a task lives; no instance: it is to be in the zone. */
export interface Site {
  readonly on: InstanceId | null;
  readonly zone: string;
}

export interface ZoneThere {
  readonly zone: string;
  /** True if something can be bought there, or an instance there takes tasks. */
  readonly isOpen: boolean;
  /** Least price of one task's share of an instance, USD per hour; Infinity: nothing is sold. */
  readonly usdPerHour: number;
  /** Tasks of the stage that held instances have room for. */
  readonly room: number;
}

export class Neighbours {
  readonly #snapshot: Snapshot;
  readonly #jobs: ReadonlyMap<JobId, Job>;
  /** By owner and first label. */
  readonly #selectors = new Map<string, Selector[]>();
  readonly #labelled = new Map<JobId, readonly Selector[]>();
  readonly #stages = new Map<string, RuledStage | null>();

  /** Null if no stage has rules: then all is as without them. O(jobs), and O(running tasks that rules concern). */
  static of(snapshot: Snapshot): Neighbours | null {
    const jobs = [...snapshot.jobs.values(), ...(snapshot.setAside ?? []).map(({ job }) => job)];
    return jobs.some(hasRules) ? new Neighbours(snapshot, jobs) : null;
  }

  private constructor(snapshot: Snapshot, jobs: readonly Job[]) {
    this.#snapshot = snapshot;
    this.#jobs = new Map(jobs.map((job) => [job.id, job]));
    for (const job of jobs) {
      for (const { placement } of job.spec.stages) {
        for (const { labels } of [...(placement?.affinity ?? []), ...(placement?.antiAffinity ?? [])])
          this.#selector(job.spec.owner, labels);
      }
    }
    for (const job of jobs) {
      const labelled = this.#selectorsOf(job);
      if (labelled.length > 0) this.#labelled.set(job.id, labelled);
    }
    for (const [job, running] of runningByJob(snapshot)) {
      const of = this.#jobs.get(job);
      if (of === undefined || (!hasRules(of) && !this.#labelled.has(job))) continue;
      for (const { attempt } of running) this.#lives(attempt);
    }
    for (const { goesTo = [], job, stage } of snapshot.groups)
      for (const on of goesTo) this.comes({ job, stage: stage.name }, on);
  }

  /** The stage of a task, if rules may keep it from anywhere; null: it may be where it likes. */
  of(task: Pick<TaskRef, 'job' | 'stage'>): RuledStage | null {
    const key = this.#keyOf(task);
    let known = this.#stages.get(key);
    if (known === undefined) this.#stages.set(key, (known = this.#ruled(task)));
    return known;
  }

  /** Counts tasks that come, or with a negative `n` tasks that go. */
  add({ live, labelled, antiAffinity }: RuledStage, site: Site, n = 1): void {
    live.add(site, n);
    for (const selector of labelled) selector.live.add(site, n);
    for (const { selector, over } of antiAffinity) selector.repelling[over].add(site, n);
  }

  /** Counts a task that comes to an instance, if rules concern it; to be undone by what it returns. */
  comes(task: Pick<TaskRef, 'job' | 'stage'>, on: InstanceId): () => void {
    const of = this.of(task);
    const site = of === null ? null : this.siteOf(on);
    if (of === null || site === null) return () => {};
    this.add(of, site);
    return () => this.add(of, site, -1);
  }

  /** The answer of a question as if a live task of the stage had left an instance. */
  without<A>(of: RuledStage, on: InstanceId, ask: () => A): A {
    const site = this.siteOf(on);
    if (site === null) return ask();
    this.add(of, site, -1);
    const answer = ask();
    this.add(of, site);
    return answer;
  }

  siteOf(on: InstanceId): Site | null {
    const view = this.#snapshot.instances.get(on);
    return view === undefined ? null : { on, zone: view.pool.zone };
  }

  /** Further tasks of a stage that may start on an instance, as far as its zone allows them. */
  mostOn(of: RuledStage, on: InstanceId): number {
    return Math.min(of.most - of.live.in('instance', on), this.#byLabels(of, 'instance', on));
  }

  /** Further tasks of a stage that may start in a zone. */
  mostIn(of: RuledStage, zone: string): number {
    const byLabels = this.#byLabels(of, 'zone', zone);
    if (of.maxSkew === null) return byLabels;
    const zones = of.zones();
    const fewest = zones.reduce((n, z) => Math.min(n, of.live.in('zone', z.zone)), Infinity);
    return Math.min(byLabels, fewest + of.maxSkew - of.live.in('zone', zone));
  }

  /** Tasks of a stage that may share an instance which is bought now; 0: none may start there. */
  mostOnNew(of: RuledStage): number {
    const ownApart = of.antiAffinity.some((r) => r.over === 'instance' && r.own);
    const isElsewhere = of.affinity.some((r) => r.over === 'instance' && !this.begins(r));
    return isElsewhere ? 0 : Math.min(of.most, ownApart ? 1 : Infinity);
  }

  /** True if labels of other tasks keep a stage from some zones, or instances. */
  hasLabelRules({ affinity, antiAffinity, labelled }: RuledStage, over: Domain): boolean {
    return (
      [...affinity, ...antiAffinity].some((r) => r.over === over) || labelled.some((s) => s.repelling[over].total > 0)
    );
  }

  /** True for an affinity to labels that no live task has, whose own tasks may begin anywhere. */
  begins({ selector, own }: Rule): boolean {
    return own && selector.live.total === 0;
  }

  /** True if tasks of the stage have to be together in one domain, which is not settled. */
  beginsTogether(of: RuledStage, over: Domain): boolean {
    return of.affinity.some((r) => r.over === over && this.begins(r));
  }

  #byLabels({ affinity, antiAffinity, labelled }: RuledStage, over: Domain, name: string): number {
    let most = Infinity;
    for (const rule of affinity) {
      if (rule.over !== over || this.begins(rule)) continue;
      if (rule.selector.live.in(over, name) <= 0) return 0;
    }
    for (const { over: of, selector, own } of antiAffinity) {
      if (of !== over) continue;
      if (selector.live.in(over, name) > 0) return 0;
      if (own) most = 1;
    }
    for (const { repelling } of labelled) if (repelling[over].in(over, name) > 0) return 0;
    return most;
  }

  #lives(attempt: RunningTask['attempt']): void {
    this.comes(attempt, attempt.instance);
    if (attempt.state === 'stopping' && attempt.goesTo !== undefined) this.comes(attempt, attempt.goesTo);
  }

  #selector(owner: string, labels: LabelRule['labels']): Selector {
    const [[first, value] = ['', '']] = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
    const key = firstLabelOf(owner, first, value);
    const alike = this.#selectors.get(key) ?? [];
    const known = alike.find((s) => labelKey(s.labels) === labelKey(labels));
    if (known !== undefined) return known;
    const selector = { labels, live: new Live(), repelling: { zone: new Live(), instance: new Live() } };
    this.#selectors.set(key, [...alike, selector]);
    return selector;
  }

  #selectorsOf({ spec }: Job): readonly Selector[] {
    if (this.#selectors.size === 0) return [];
    return Object.entries(spec.labels).flatMap(([key, value]) =>
      (this.#selectors.get(firstLabelOf(spec.owner, key, value)) ?? []).filter((s) => hasLabels(spec, s.labels)),
    );
  }

  /** Replicas of one revision of a service are as tasks of one stage, each in a job of its own. */
  #keyOf(task: Pick<TaskRef, 'job' | 'stage'>): string {
    const { class: kind, labels } = this.#jobs.get(task.job)?.spec ?? {};
    if (kind !== 'service' || labels === undefined) return stageKey(task);
    return `service ${labels[SERVICE_LABEL] ?? ''} ${labels[REVISION_LABEL] ?? ''}`;
  }

  #ruled({ job: id, stage: name }: Pick<TaskRef, 'job' | 'stage'>): RuledStage | null {
    const job = this.#jobs.get(id);
    const stage = job?.spec.stages.find((s) => s.name === name);
    const labelled = this.#labelled.get(id) ?? [];
    if (job === undefined || stage === undefined) return null;
    if (stage.placement === undefined && labelled.length === 0) return null;
    const { spread = [], affinity = [], antiAffinity = [] } = stage.placement ?? {};
    const rule = ({ over, labels }: LabelRule): Rule => {
      const selector = this.#selector(job.spec.owner, labels);
      return { over, selector, own: labelled.includes(selector) };
    };
    const skews = spread.flatMap((s) => (s.over === 'zone' ? [s.maxSkew] : []));
    return {
      stage,
      live: new Live(),
      affinity: affinity.map(rule),
      antiAffinity: antiAffinity.map(rule),
      labelled,
      most: mostTogether(stage.placement ?? {}),
      maxSkew: skews.length === 0 ? null : Math.min(...skews),
      zones: once(() => zonesFor(stage, this.#snapshot)),
    };
  }
}

const firstLabelOf = (owner: string, key: string, value: string): string => JSON.stringify([owner, key, value]);

const hasRules = ({ spec }: Job): boolean => spec.stages.some((s) => s.placement !== undefined);

/** Zones with a pool that a stage may use, by name. O(pools + instances). */
function zonesFor({ constraints, resources }: StageSpec, { pools, instances }: Snapshot): readonly ZoneThere[] {
  const zones = new Map<string, { -readonly [K in keyof ZoneThere]: ZoneThere[K] }>();
  for (const { pool, open, quote } of pools) {
    const share = dominantShare(resources, pool.type.capacity);
    if (share > 1 || brokenConstraint(constraints, pool) !== null) continue;
    let there = zones.get(pool.zone);
    if (there === undefined)
      zones.set(pool.zone, (there = { zone: pool.zone, isOpen: false, usdPerHour: Infinity, room: 0 }));
    if (!open || quote === null) continue;
    there.isOpen = true;
    there.usdPerHour = Math.min(there.usdPerHour, share * usdPerHourOf(pool, quote));
  }
  for (const { pool, instance, free } of instances.values()) {
    const there = zones.get(pool.zone);
    if (there === undefined || !takesTasks(instance) || brokenConstraint(constraints, pool) !== null) continue;
    there.isOpen = true;
    there.room += countFits(resources, free);
  }
  return [...zones.values()].sort((a, b) => (a.zone < b.zone ? -1 : 1));
}

/** The answer of a question as if these tasks lived where they are placed. */
export function counting<A>(neighbours: Neighbours, placements: readonly Placement[], ask: () => A): A {
  const undo = placements.map(({ task, on }) => neighbours.comes(task, on));
  const answer = ask();
  for (const back of undo) back();
  return answer;
}
