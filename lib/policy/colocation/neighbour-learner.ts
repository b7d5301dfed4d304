/**
 * Learns which programs share a machine well. From the end of each attempt: what its template uses, in which group of
 * like templates it is, how good the sharing was by the load of the machine meanwhile (goodness.ts), and how much
 * longer it ran than alone (slowdowns.ts). Bounded: templates that were not seen for longest are forgotten.
 */
import { z } from 'zod';
import { raw, secondsBetween } from '../../kernel/units.ts';
import type { Attempt, Job, StageSpec } from '../../domain/job.ts';
import type { Load, MostTransfers, Transfer } from '../../domain/load.ts';
import { dominantShare } from '../../domain/resources.ts';
import type { AttemptEnded, Learner, LearningEvent } from '../learner.ts';
import { goodness } from './goodness.ts';
import { distance, groupOf, NO_GROUPS, regrouped, type Group, type Grouping, type Profile } from './grouping.ts';
import { Preferences } from './preferences.ts';
import {
  measured,
  NO_SLOWDOWN,
  slowdownBeside,
  type Beside,
  type Normal,
  type Own,
  type Slowdown,
} from './slowdowns.ts';

const PREFIX = 'neighbours/';
/** Version of the rows. */
const VERSION = 1;
/** Templates that are remembered. */
const MOST_TEMPLATES = 2000;
/** Templates that Mary tells apart: her preferences are quadratic in them. */
const MOST_SINGLE = 64;
/** Step size gamma. The papers give none; chosen on queues that no result is reported on (docs/neighbours.md). */
const STEP = 0.05;
/** Measurements over which the mean goodness is taken. */
const WINDOW = 200;
/** Weight of a new measurement of a profile, once there are more. */
const PROFILE_STEP = 0.1;
/** Groups are made anew once there are so many times more templates, or after so many measurements. */
const REGROUP_AT = 1.25;
const REGROUP_EVERY = 500;

/** A template that was measured. */
interface Template {
  profile: Profile;
  count: number;
  own: Own | null;
}

export interface TemplateView {
  readonly template: string;
  readonly group: string | null;
  readonly profile: Profile;
  readonly count: number;
}

/** A program that runs, or may run, on a machine. */
export interface Tenant {
  readonly template: string;
  /** Part of the machine that it has asked for, in (0, 1]. */
  readonly part: number;
}

export interface NeighbourBelief {
  readonly groups: readonly Group[];
  readonly templates: () => readonly TemplateView[];
  /** Group of a template; if it was never measured, that of the last one with its program. Null: none is like it. */
  readonly groupOf: (template: string) => string | null;
  /** Chances of each to be the next beside a running one. Keys are groups, or templates (`single`). Sum 1. */
  readonly chances: (running: string, all: readonly string[], single?: boolean) => readonly number[];
  readonly preference: (running: string, next: string) => number;
  /** Measurements of what ran beside a group. */
  readonly count: (running: string) => number;
  /** How much longer it runs beside them than alone. 1 where nothing is known. O(beside). */
  readonly slowdown: (template: string, beside: readonly Tenant[]) => Slowdown;
  /** Theta of a pair of groups (slowdowns.ts); null: never measured. */
  readonly pair: (group: string, beside: string) => Normal | null;
}

/** Key of a stage's programs: the template of its job, and its name. */
export const templateOf = ({ template }: Pick<Job, 'template'>, { name }: Pick<StageSpec, 'name'>): string =>
  `${template}/${name}`;

/** O(neighbours x (groups + MOST_SINGLE)) for an attempt, and a clustering now and then. */
export const neighbourLearner = (): Learner<NeighbourBelief> => new NeighbourLearner();

class NeighbourLearner implements Learner<NeighbourBelief> {
  readonly name = 'neighbours';
  readonly about = 'which programs share a machine well, and how much longer they run beside others';
  readonly source = 'Mary, Hugo and Hugo*, sections 4.1 and 4.2; slow-downs: ours';
  readonly prefix = PREFIX;
  readonly learnsFrom = ['attempt-ended'] as const;
  /** In the order of their last measurement. */
  readonly #templates = new Map<string, Template>();
  /** Last template of each program. */
  readonly #programs = new Map<string, string>();
  /** Templates that Mary tells apart, in the order of their last measurement. */
  readonly #singles = new Set<string>();
  #grouping: Grouping = NO_GROUPS;
  #byGroup = new Preferences({ step: STEP, window: WINDOW });
  #single = new Preferences({ step: STEP, window: WINDOW });
  readonly #pairs = new Map<string, Map<string, Normal>>();
  #regroupAt = 1;
  #measuredSince = 0;
  #dirty = new Map<string, string>();
  readonly #belief: NeighbourBelief;

  constructor() {
    const groups = (): readonly Group[] => this.#grouping.groups;
    this.#belief = Object.freeze<NeighbourBelief>({
      get groups() {
        return groups();
      },
      templates: () => this.#views(),
      groupOf: (template) => this.#groupOf(template),
      chances: (running, all, single = false) => (single ? this.#single : this.#byGroup).chances(running, all),
      preference: (running, next) => this.#byGroup.preference(running, next),
      count: (running) => this.#byGroup.count(running),
      slowdown: (template, beside) => this.#slowdown(template, beside),
      pair: (group, beside) => this.#pairs.get(group)?.get(beside) ?? null,
    });
  }

  belief(): NeighbourBelief {
    return this.#belief;
  }

  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended' || event.attempt.startedMs === null) return;
    const { job, stage, usage } = event;
    // Without any measurement there is no group to learn for, and nothing need be looked up.
    if (usage?.own === undefined && this.#grouping.groups.length === 0) return;
    const key = templateOf(job, stage);
    if (usage?.own !== undefined) this.#profile(key, profileOf(usage.own, event));
    const beside = besideOf(event);
    if (usage?.machine !== undefined) this.#rate(key, usage.machine, beside);
    if (event.runtimeS !== null) this.#time(key, raw(event.runtimeS), beside);
    this.#note(key);
  }

  #profile(key: string, now: Profile): void {
    const known = this.#templates.get(key);
    const count = (known?.count ?? 0) + 1;
    const step = Math.max(PROFILE_STEP, 1 / count);
    const profile = known === undefined ? now : known.profile.map((x, d) => x + step * ((now[d] ?? 0) - x));
    this.#templates.delete(key);
    this.#templates.set(key, { profile, count, own: known?.own ?? null });
    this.#programs.set(programOf(key), key);
    this.#tellApart(key);
    this.#forgetOld();
    this.#measuredSince++;
    if (this.#templates.size < this.#regroupAt && this.#measuredSince < REGROUP_EVERY) return;
    this.#regroup();
    this.#regroupAt = Math.max(this.#templates.size + 1, Math.ceil(REGROUP_AT * this.#templates.size));
    this.#measuredSince = 0;
  }

  #tellApart(key: string): void {
    this.#singles.delete(key);
    this.#singles.add(key);
    for (const oldest of this.#singles) {
      if (this.#singles.size <= MOST_SINGLE) return;
      this.#singles.delete(oldest);
      this.#single.forget(oldest);
      this.#dirty.set(`${PREFIX}s/${oldest}`, '');
    }
  }

  #forgetOld(): void {
    for (const key of this.#templates.keys()) {
      if (this.#templates.size <= MOST_TEMPLATES) return;
      this.#templates.delete(key);
      if (this.#programs.get(programOf(key)) === key) this.#programs.delete(programOf(key));
      this.#dirty.set(`${PREFIX}t/${key}`, '');
    }
  }

  /** Clusters again. A group that ends loses its preferences; a new one starts with those of the nearest before. */
  #regroup(): void {
    const before = this.#grouping;
    this.#grouping = regrouped(
      [...this.#templates.values()].map((t) => t.profile),
      before,
    );
    const now = new Set(this.#grouping.groups.map((g) => g.id));
    for (const { id, centre } of this.#grouping.groups) {
      if (before.groups.some((g) => g.id === id)) continue;
      const nearest = before.groups.toSorted((a, b) => distance(a.centre, centre) - distance(b.centre, centre))[0];
      if (nearest === undefined) continue;
      const row = this.#byGroup.row(nearest.id);
      if (row !== null) this.#byGroup.restore(id, row);
      const pairs = this.#pairs.get(nearest.id);
      if (pairs !== undefined) this.#pairs.set(id, new Map(pairs));
    }
    for (const { id } of before.groups) {
      if (now.has(id)) continue;
      this.#byGroup.forget(id);
      this.#pairs.delete(id);
      for (const pairs of this.#pairs.values()) pairs.delete(id);
      this.#dirty.set(`${PREFIX}g/${id}`, '');
    }
    this.#noteGroups();
  }

  /** Of a pair the later one was chosen beside the earlier one, which ran. */
  #rate(key: string, { load, most }: Measured, beside: readonly Together[]): void {
    const g = goodness(load, most);
    if (g === null) return;
    const group = this.#groupOf(key);
    const all = this.#grouping.groups.map((of) => of.id);
    const singles = [...this.#singles];
    for (const other of new Map(beside.map((b) => [`${b.template} ${b.isLater}`, b])).values()) {
      const [running, chosen] = other.isLater ? [key, other.template] : [other.template, key];
      if (this.#singles.has(running) && this.#singles.has(chosen)) {
        this.#single.learn(running, chosen, g, singles);
        this.#noteSingle(running);
      }
      const [a, b] = [this.#groupOf(running), this.#groupOf(chosen)];
      if (group !== null && a !== null && b !== null) {
        this.#byGroup.learn(a, b, g, all);
        this.#noteGroup(a);
      }
    }
  }

  #time(key: string, runtimeS: number, beside: readonly Together[]): void {
    const group = this.#groupOf(key);
    const template = this.#templates.get(key);
    if (group === null || template === undefined || !(runtimeS > 0)) return;
    const known = this.#pairs.get(group) ?? new Map<string, Normal>();
    const after = measured(Math.log(runtimeS), this.#exposures(beside), { own: template.own, pairs: known });
    template.own = after.own;
    for (const [other, theta] of after.pairs) known.set(other, theta);
    this.#pairs.set(group, known);
    this.#noteGroup(group);
  }

  #slowdown(template: string, beside: readonly Tenant[]): Slowdown {
    const group = this.#groupOf(template);
    const pairs = group === null ? undefined : this.#pairs.get(group);
    if (pairs === undefined || beside.length === 0) return NO_SLOWDOWN;
    return slowdownBeside(this.#exposures(beside.map((b) => ({ ...b, time: 1 }))), pairs);
  }

  #exposures(beside: readonly (Tenant & { readonly time: number })[]): readonly Beside[] {
    const sums = new Map<string, number>();
    for (const { template, part, time } of beside) {
      const group = this.#groupOf(template);
      if (group !== null) sums.set(group, (sums.get(group) ?? 0) + part * time);
    }
    return [...sums].map(([group, exposure]) => ({ group, exposure }));
  }

  #groupOf(template: string): string | null {
    const known =
      this.#templates.get(template) ?? this.#templates.get(this.#programs.get(programOf(template)) ?? template);
    return known === undefined ? null : groupOf(known.profile, this.#grouping);
  }

  #views(): readonly TemplateView[] {
    return [...this.#templates].map(([template, { profile, count }]) => ({
      template,
      group: groupOf(profile, this.#grouping),
      profile,
      count,
    }));
  }

  takeDirty(): ReadonlyMap<string, string> {
    const dirty = this.#dirty;
    this.#dirty = new Map();
    return dirty;
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#templates.clear();
    this.#programs.clear();
    this.#singles.clear();
    this.#pairs.clear();
    this.#dirty.clear();
    this.#grouping = NO_GROUPS;
    this.#byGroup = new Preferences({ step: STEP, window: WINDOW });
    this.#single = new Preferences({ step: STEP, window: WINDOW });
    for (const [key, text] of rows) this.#restoreRow(key.slice(PREFIX.length), text);
    this.#regroupAt = Math.max(1, Math.ceil(REGROUP_AT * this.#templates.size));
    this.#measuredSince = 0;
  }

  /** What another version wrote, or what is damaged, is learned again: no row is indispensable. */
  #restoreRow(key: string, text: string): void {
    const kind = key.slice(0, 2);
    const name = key.slice(2);
    if (key === 'groups') this.#grouping = parsed(groupingRow, text)?.grouping ?? NO_GROUPS;
    else if (kind === 't/') {
      const row = parsed(templateRow, text);
      if (row === null) return;
      this.#templates.set(name, { profile: row.profile, count: row.count, own: row.own });
      this.#programs.set(programOf(name), name);
    } else if (kind === 'g/') {
      const row = parsed(groupRow, text);
      if (row === null) return;
      if (row.bandit !== null) this.#byGroup.restore(name, row.bandit);
      this.#pairs.set(name, new Map(Object.entries(row.pairs)));
    } else if (kind === 's/') {
      const row = parsed(singleRow, text);
      if (row === null) return;
      this.#singles.add(name);
      this.#single.restore(name, row.bandit);
    }
  }

  #note(key: string): void {
    const of = this.#templates.get(key);
    if (of !== undefined) this.#put(`t/${key}`, { profile: of.profile, count: of.count, own: of.own });
  }

  #noteGroups(): void {
    this.#put('groups', { grouping: this.#grouping });
    for (const { id } of this.#grouping.groups) this.#noteGroup(id);
  }

  #noteGroup(id: string): void {
    this.#put(`g/${id}`, { bandit: this.#byGroup.row(id), pairs: Object.fromEntries(this.#pairs.get(id) ?? []) });
  }

  #noteSingle(template: string): void {
    const bandit = this.#single.row(template);
    if (bandit !== null) this.#put(`s/${template}`, { bandit });
  }

  #put(key: string, row: object): void {
    this.#dirty.set(`${PREFIX}${key}`, JSON.stringify({ version: VERSION, ...row }));
  }
}

interface Measured {
  readonly load: Load;
  readonly most: MostTransfers;
}

/** A neighbour, the part of the attempt's time that it was there, and whether it began after it. */
type Together = Tenant & { readonly time: number; readonly isLater: boolean };

function besideOf({ attempt, pool, neighbours, atMs }: AttemptEnded): readonly Together[] {
  const startedMs = attempt.startedMs;
  if (startedMs === null) return [];
  const longS = secondsBetween(startedMs, atMs);
  return neighbours.flatMap(({ attempt: other, job }): Together[] => {
    const stage = job.spec.stages.find((s) => s.name === other.stage);
    if (stage === undefined || other.startedMs === null) return [];
    const sinceMs = Math.max(raw(startedMs), raw(other.startedMs));
    const time = longS > 0 ? Math.min(1, (raw(atMs) - sinceMs) / 1000 / longS) : 1;
    const part = partOf(other, pool);
    return [{ template: templateOf(job, stage), part, time, isLater: raw(other.startedMs) > raw(startedMs) }];
  });
}

const partOf = ({ resources }: Pick<Attempt, 'resources'>, { type }: AttemptEnded['pool']): number =>
  Math.min(1, dominantShare(resources, type.capacity));

/** vCPUs and memory of what it asked for; disk, network and waiting of the machine. */
function profileOf(own: Load, { usage, attempt }: AttemptEnded): Profile {
  const most = usage?.machine?.most;
  const part = (kinds: readonly Transfer[]): number =>
    Math.tanh(kinds.reduce((sum, k) => sum + (most !== undefined && most[k] > 0 ? own[k] / most[k] : 0), 0));
  const memory = raw(attempt.resources.memory);
  const used = memory > 0 && usage !== null ? Math.min(1, raw(usage.maxRss) / memory) : 0;
  const [disk, net] = [part(['diskRead', 'diskWritten']), part(['netReceived', 'netSent'])];
  return [own.cpu, disk, net, own.ioWait, used].map((x) => Math.round(1e6 * x) / 1e6);
}

/** Last part of a template: the program that it runs, and its stage. */
const programOf = (template: string): string => template.split('/').slice(-2).join('/');

const bandit = z.object({ h: z.record(z.string(), z.number()), mean: z.number(), count: z.number() });
const normal = z.object({ mean: z.number(), variance: z.number().positive() });
const version = z.literal(VERSION);
const profile = z.array(z.number()).length(5);
const templateRow = z.object({
  version,
  profile,
  count: z.number(),
  own: normal.extend({ noise: z.number() }).nullable(),
});
const groupingRow = z.object({
  version,
  grouping: z.object({ groups: z.array(z.object({ id: z.string(), centre: profile })), next: z.int() }),
});
const groupRow = z.object({ version, bandit: bandit.nullable(), pairs: z.record(z.string(), normal) });
const singleRow = z.object({ version, bandit });

function parsed<T extends z.ZodType>(schema: T, text: string): z.output<T> | null {
  if (text === '') return null;
  try {
    const found = schema.safeParse(JSON.parse(text));
    return found.success ? found.data : null;
  } catch {
    return null;
  }
}
