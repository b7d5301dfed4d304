/**
 * Learns which programs share a machine well. From the end of each attempt: what its template uses, in which group of
 * like templates it is, how good the sharing was by the load of the machine meanwhile (goodness.ts), and how much
 * longer it ran than alone (slowdowns.ts). Bounded: templates that were not seen for longest are forgotten.
 */
import { raw } from '../../kernel/units.ts';
import { TRANSFERS, type Load, type MostTransfers, type Transfer } from '../../domain/load.ts';
import type { InstanceType } from '../../domain/pool.ts';
import { transfersOf } from '../../market/transfers.ts';
import type { NeighbourBelief, Place, TemplateView } from './neighbour-belief.ts';
import type { AttemptEnded, InstanceEnded, Learner, LearnerTerms, LearningEvent } from '../learner.ts';
import { exposureOf, movedAfter, movedBy, type Moved } from './exposure.ts';
import { goodness } from './goodness.ts';
import { distance, groupOf, NO_GROUPS, regrouped, type Group, type Grouping, type Profile } from './grouping.ts';
import {
  endingsRow,
  groupingRow,
  groupRow,
  machineRow,
  parsed,
  singleRow,
  templateRow,
  VERSION,
} from './neighbour-rows.ts';
import { Preferences } from './preferences.ts';
import {
  besideHeir,
  beyondUsual,
  measured,
  NO_SLOWDOWN,
  slowdownBeside,
  slowdownBetween,
  surelyOf,
  type Beside,
  type Normal,
  type Run,
  type Slowdown,
  type Usual,
} from './slowdowns.ts';
import { Endings, partOf, stillThere, templateOf, type Ending, type Tenant, type Together } from './together.ts';

const PREFIX = 'neighbours/';
const GROUPS = 'groups';
/** Templates that are remembered. */
const MOST_TEMPLATES = 2000;
/** Instance types of which the most that they transfer is remembered. */
const MOST_TYPES = 500;
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
/** Bytes per second from which on they tell of a program's pace. */
const LEAST_MOVED = 1e6;
/** Least factor for which a neighbour is blamed. */
const LEAST_BLAMED = 1.3;

/** A template that was measured. */
interface Template {
  profile: Profile;
  /** Nearest group now. */
  group: string | null;
  count: number;
  /** Transfer rates without contention. */
  moved: Moved;
  /** Running times so far, and the mean exposure behind them. */
  usual: Usual | null;
  /** Seconds per transferred byte so far, likewise. */
  pace: Usual | null;
}

/** O(neighbours x (groups + MOST_SINGLE)) for an attempt, and a clustering now and then. */
export const neighbourLearner = ({ isKept }: LearnerTerms): Learner<NeighbourBelief> => new NeighbourLearner(isKept);

class NeighbourLearner implements Learner<NeighbourBelief> {
  readonly name = 'neighbours';
  readonly about = 'which programs share a machine well, and how much longer they run beside others';
  readonly source = 'Mary, Hugo and Hugo*, sections 4.1 and 4.2; slow-downs: ours';
  readonly prefix = PREFIX;
  readonly learnsFrom = ['attempt-ended', 'instance-ended'] as const;
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
  readonly #endings = new Endings();
  /** Most that instances of a type transfer, as measured last. */
  readonly #most = new Map<string, MostTransfers>();
  #regroupAt = 1;
  #measuredSince = 0;
  /** Keys of rows that changed, without the prefix. */
  #dirty = new Set<string>();
  readonly #isKept: boolean;
  readonly #belief: NeighbourBelief;

  constructor(isKept: boolean) {
    this.#isKept = isKept;
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
      slowdown: (template, beside, type) => this.#slowdown(template, beside, type),
      againstUsual: (template, beside, of) => this.#againstUsual(template, beside, of),
      tells: (template) => this.#tells(template),
      tellsAny: () => this.#pairs.values().some((pairs) => pairs.values().some((theta) => surelyOf(theta) > 0)),
      slowedBy: (end) => this.#slowedBy(end),
      ranLonger: (end) => this.#ranLonger(end),
      pair: (group, beside) => this.#pairs.get(group)?.get(beside) ?? null,
    });
  }

  belief(): NeighbourBelief {
    return this.#belief;
  }

  observe(event: LearningEvent): void {
    if (event.kind === 'instance-ended') this.#forgetInstance(event);
    if (event.kind !== 'attempt-ended' || event.attempt.startedMs === null) return;
    const { job, stage, usage } = event;
    // Without any measurement there is no group to learn for, and nothing need be looked up.
    if (usage?.own === undefined && this.#grouping.groups.length === 0) return;
    const key = templateOf(job, stage);
    if (usage?.own !== undefined) this.#profile(key, profileOf(usage.own, event), usage.own);
    const ending = endingOf(event, key);
    if (usage?.machine !== undefined) {
      this.#noteMost(event.pool.type.name, usage.machine.most);
      this.#rate(key, usage.machine, stillThere(event));
    }
    const beside = this.#exposures(this.#besideAll(event, ending), event.pool.type);
    for (const [by, run] of runsOf(event, beside)) this.#time(key, by, run);
    this.#remember(event, ending);
    if (this.#templates.has(key)) this.#changed(`t/${key}`);
  }

  #forgetInstance({ instance: { id } }: InstanceEnded): void {
    if (this.#endings.forget(id)) this.#changed(`i/${id}`);
  }

  #noteMost(type: string, most: MostTransfers): void {
    const known = this.#most.get(type);
    if (known !== undefined && TRANSFERS.every((k) => known[k] === most[k])) return;
    if (known === undefined && this.#most.size >= MOST_TYPES) return;
    this.#most.set(type, most);
    this.#changed(`m/${type}`);
  }

  #remember({ attempt: { instance }, neighbours }: AttemptEnded, ending: Ending): void {
    const sinceMs = neighbours.reduce(
      (first, { attempt }) => Math.min(first, attempt.startedMs === null ? Infinity : raw(attempt.startedMs)),
      Infinity,
    );
    const had = this.#endings.of(instance).length;
    const forgotten = this.#endings.add(instance, ending, sinceMs);
    if (forgotten !== null) this.#changed(`i/${forgotten}`);
    if (had > 0 || this.#endings.of(instance).length > 0) this.#changed(`i/${instance}`);
  }

  #profile(key: string, now: Profile, own: Load): void {
    const known = this.#templates.get(key);
    const count = (known?.count ?? 0) + 1;
    const step = Math.max(PROFILE_STEP, 1 / count);
    const profile = known === undefined ? now : known.profile.map((x, d) => x + step * ((now[d] ?? 0) - x));
    this.#templates.delete(key);
    const moved = movedAfter(known?.moved, own);
    const group = groupOf(profile, this.#grouping);
    this.#templates.set(key, { profile, group, count, moved, usual: known?.usual ?? null, pace: known?.pace ?? null });
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
      this.#changed(`s/${oldest}`);
    }
  }

  #forgetOld(): void {
    for (const key of this.#templates.keys()) {
      if (this.#templates.size <= MOST_TEMPLATES) return;
      this.#templates.delete(key);
      if (this.#programs.get(programOf(key)) === key) this.#programs.delete(programOf(key));
      this.#changed(`t/${key}`);
    }
  }

  /** O(templates x groups). */
  #assign(): void {
    for (const template of this.#templates.values()) template.group = groupOf(template.profile, this.#grouping);
  }

  /**
   * Clusters again. A new group starts with what is known of the nearest before. The preferences of one that ends go
   * with it; who was beside it was beside the nearest one now.
   */
  #regroup(): void {
    const before = this.#grouping;
    this.#grouping = regrouped(
      [...this.#templates.values()].map((t) => t.profile),
      before,
    );
    this.#assign();
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
    for (const { id, centre } of before.groups) {
      if (now.has(id)) continue;
      this.#byGroup.forget(id);
      this.#pairs.delete(id);
      this.#inherit(id, groupOf(centre, this.#grouping));
      this.#changed(`g/${id}`);
    }
    this.#changed(GROUPS);
    for (const id of now) this.#changed(`g/${id}`);
  }

  /** O(groups + templates). */
  #inherit(id: string, heir: string | null): void {
    for (const pairs of this.#pairs.values()) {
      const theta = pairs.get(id);
      pairs.delete(id);
      if (theta !== undefined && heir !== null && !pairs.has(heir)) pairs.set(heir, theta);
    }
    for (const [key, template] of this.#templates) {
      const { usual, pace } = template;
      template.usual = usual && besideHeir(usual, id, heir);
      template.pace = pace && besideHeir(pace, id, heir);
      if (template.usual !== usual || template.pace !== pace) this.#changed(`t/${key}`);
    }
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
        this.#changed(`s/${running}`);
      }
      const [a, b] = [this.#groupOf(running), this.#groupOf(chosen)];
      if (group !== null && a !== null && b !== null) {
        this.#byGroup.learn(a, b, g, all);
        this.#changed(`g/${a}`);
      }
    }
  }

  #time(key: string, by: 'usual' | 'pace', run: Run): void {
    const group = this.#groupOf(key);
    const template = this.#templates.get(key);
    if (group === null || template === undefined || !Number.isFinite(run.logS)) return;
    const known = this.#pairs.get(group) ?? new Map<string, Normal>();
    const after = measured(run, { usual: template[by], pairs: known });
    template[by] = after.usual;
    for (const [other, theta] of after.pairs) known.set(other, theta);
    this.#pairs.set(group, known);
    this.#changed(`g/${group}`);
  }

  /** Those that are still there, and those that ended meanwhile. */
  #besideAll(event: AttemptEnded, ending: Ending): readonly Together[] {
    return [...stillThere(event), ...this.#endings.during(event.attempt.instance, ending)];
  }

  #slowedBy(event: AttemptEnded): number {
    if (event.attempt.startedMs === null) return 1;
    const key = templateOf(event.job, event.stage);
    if (!this.#tells(key)) return 1;
    const beside = this.#exposures(this.#besideAll(event, endingOf(event, key)), event.pool.type);
    const usual = this.#known(key)?.usual?.exposures ?? {};
    return slowdownBetween(beyondUsual(beside, usual), this.#pairsOf(key) ?? new Map<string, Normal>()).factor;
  }

  #ranLonger(event: AttemptEnded): { readonly factor: number; readonly beside: string } | null {
    const key = templateOf(event.job, event.stage);
    const template = this.#templates.get(key);
    const pairs = this.#pairsOf(key);
    if (event.attempt.startedMs === null || template === undefined || pairs === undefined) return null;
    const { type } = event.pool;
    const all = this.#besideAll(event, endingOf(event, key));
    const beside = this.#exposures(all, type);
    if (slowdownBetween(beside, pairs).factor < LEAST_BLAMED) return null;
    const [[by, run] = [null, null]] = runsOf(event, beside);
    const usual = by === null ? null : template[by];
    if (usual === null || run === null) return null;
    const more = slowdownBetween(exposuresOf(usual), pairs);
    const factor = Math.exp(run.logS - usual.mean) * more.factor;
    if (factor < LEAST_BLAMED) return null;
    const blame = (of: Together): number => slowdownBetween(this.#exposures([of], type), pairs).factor;
    const [worst] = all.toSorted((a, b) => blame(b) - blame(a));
    return worst === undefined ? null : { factor, beside: worst.template };
  }

  #tells(template: string): boolean {
    return (
      this.#pairsOf(template)
        ?.values()
        .some((theta) => surelyOf(theta) > 0) ?? false
    );
  }

  #pairsOf(template: string): ReadonlyMap<string, Normal> | undefined {
    const group = this.#groupOf(template);
    return group === null ? undefined : this.#pairs.get(group);
  }

  #slowdown(template: string, beside: readonly Tenant[], type: InstanceType): Slowdown {
    const pairs = this.#pairsOf(template);
    if (pairs === undefined || beside.length === 0) return NO_SLOWDOWN;
    return slowdownBeside(this.#exposures(allTheTime(beside), type), pairs);
  }

  #againstUsual(template: string, beside: readonly Tenant[], { type, known }: Place): Slowdown {
    const pairs = this.#pairsOf(template);
    if (pairs === undefined) return NO_SLOWDOWN;
    const usual = this.#known(template)?.usual?.exposures ?? {};
    const there = this.#exposures(allTheTime(beside), type);
    const rest = Object.fromEntries(Object.entries(usual).map(([group, was]) => [group, known * was]));
    return slowdownBetween(beyondUsual(there, rest), pairs);
  }

  /** Exposure to each group of neighbours. Those that were never measured, nor one like them, are in nobody's way. */
  #exposures(beside: readonly (Tenant & { readonly time: number })[], type: InstanceType): readonly Beside[] {
    const most = this.#most.get(type.name) ?? transfersOf(type);
    const sums = new Map<string, number>();
    for (const { template, part, time, tasks = 1 } of beside) {
      const of = this.#known(template);
      const group = of?.group ?? null;
      if (of === undefined || group === null) continue;
      sums.set(group, (sums.get(group) ?? 0) + tasks * time * exposureOf(part, of.moved, most));
    }
    return [...sums].map(([group, sum]) => ({ group, exposure: Math.log1p(sum) }));
  }

  /** The template, or else the last one with its program. */
  #known(template: string): Template | undefined {
    return this.#templates.get(template) ?? this.#templates.get(this.#programs.get(programOf(template)) ?? template);
  }

  #groupOf(template: string): string | null {
    return this.#known(template)?.group ?? null;
  }

  #views(): readonly TemplateView[] {
    return [...this.#templates].map(([template, { group, profile, count }]) => ({ template, group, profile, count }));
  }

  takeDirty(): ReadonlyMap<string, string> {
    const dirty = this.#dirty;
    this.#dirty = new Set();
    return new Map([...dirty].map((key) => [`${PREFIX}${key}`, this.#row(key)]));
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#templates.clear();
    this.#programs.clear();
    this.#singles.clear();
    this.#pairs.clear();
    this.#endings.clear();
    this.#most.clear();
    this.#dirty.clear();
    this.#grouping = NO_GROUPS;
    this.#byGroup = new Preferences({ step: STEP, window: WINDOW });
    this.#single = new Preferences({ step: STEP, window: WINDOW });
    for (const [key, text] of rows) this.#restoreRow(key.slice(PREFIX.length), text);
    this.#assign();
    this.#regroupAt = Math.max(1, Math.ceil(REGROUP_AT * this.#templates.size));
    this.#measuredSince = 0;
  }

  /** What another version wrote, or what is damaged, is learned again: no row is indispensable. */
  #restoreRow(key: string, text: string): void {
    const kind = key.slice(0, 2);
    const name = key.slice(2);
    if (key === GROUPS) this.#grouping = parsed(groupingRow, text)?.grouping ?? NO_GROUPS;
    else if (kind === 't/') {
      const row = parsed(templateRow, text);
      if (row === null) return;
      const { profile, count, moved, usual, pace } = row;
      this.#templates.set(name, { profile, group: null, count, moved, usual, pace });
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
    } else if (kind === 'm/') {
      const most = parsed(machineRow, text);
      if (most !== null) this.#most.set(name, most);
    } else if (kind === 'i/') this.#endings.restore(name, parsed(endingsRow, text)?.ended ?? []);
  }

  /** The row of a key; empty if it is no more. */
  #row(key: string): string {
    const of = key === GROUPS ? { grouping: this.#grouping } : this.#stored(key.slice(0, 2), key.slice(2));
    return of === null ? '' : JSON.stringify({ version: VERSION, ...of });
  }

  #stored(kind: string, name: string): object | null {
    if (kind === 't/') {
      const of = this.#templates.get(name);
      // Groups follow from the profiles.
      return of === undefined ? null : { ...of, group: undefined };
    }
    if (kind === 'm/') return this.#most.get(name) ?? null;
    if (kind === 'i/') return this.#endings.of(name).length === 0 ? null : { ended: this.#endings.of(name) };
    if (kind === 's/') {
      const row = this.#single.row(name);
      return row === null ? null : { bandit: row };
    }
    if (kind !== 'g/' || !this.#grouping.groups.some(({ id }) => id === name)) return null;
    return { bandit: this.#byGroup.row(name), pairs: Object.fromEntries(this.#pairs.get(name) ?? []) };
  }

  #changed(key: string): void {
    if (this.#isKept) this.#dirty.add(key);
  }
}

interface Measured {
  readonly load: Load;
  readonly most: MostTransfers;
}

/** Measurements of how long a run took, the one that tells most first. */
function* runsOf(event: AttemptEnded, beside: readonly Beside[]): Generator<readonly ['pace' | 'usual', Run]> {
  const { usage, runtimeS, stage, attempt } = event;
  const bytesPerS = usage?.own === undefined ? 0 : movedBy(usage.own);
  // Rates tell more than running times: the tasks of one job differ in length, and so do its runs.
  if (bytesPerS >= LEAST_MOVED) yield ['pace', { logS: -Math.log(bytesPerS), beside, alike: 1 }];
  const { beside: expected = 1 } = attempt;
  if (runtimeS !== null) yield ['usual', { logS: Math.log(raw(runtimeS) * expected), beside, alike: stage.tasks }];
}

const exposuresOf = ({ exposures }: Usual): readonly Beside[] =>
  Object.entries(exposures).map(([group, exposure]) => ({ group, exposure }));

const allTheTime = (beside: readonly Tenant[]): readonly (Tenant & { readonly time: number })[] =>
  beside.map((tenant) => ({ ...tenant, time: 1 }));

const endingOf = (event: AttemptEnded, template: string): Ending => ({
  template,
  part: partOf(event.attempt, event),
  startedMs: raw(event.attempt.startedMs ?? event.atMs),
  endedMs: raw(event.atMs),
});

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
