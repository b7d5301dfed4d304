/**
 * Rules over instances, for any packer: it is shown as much free room of an instance as tasks of one group may take
 * there, and none where they may not be.
 */
import type { GroupId } from '../../kernel/ids.ts';
import type { Placement } from '../../domain/plan.ts';
import { times } from '../../domain/resources.ts';
import type { DecisionContext, Host, PlacePolicy, TaskToPlace } from '../../policy/contracts.ts';
import { afterPlacing, upTo } from '../../policy/hosts.ts';
import type { Neighbours, RuledStage } from './neighbours.ts';

/**
 * Ruled groups come first, one after the other, because fewer places suit them; then all others at once. Placements of
 * the same decision are told by the hosts (`Host.given`). O(hosts) for each ruled group beside the packer's own.
 */
export const placeByRules =
  (place: PlacePolicy, neighbours: Neighbours, narrowed: ReadonlySet<GroupId>): PlacePolicy =>
  (tasks, hosts, context) => {
    const isRuled = ({ task }: TaskToPlace): boolean => neighbours.of(task) !== null;
    const ruled = tasks.filter(isRuled);
    if (ruled.length === 0) return place(tasks, hosts, context);
    const packing = new Packing({ place, neighbours, narrowed, hosts, context });
    for (const unit of Map.groupBy(ruled, (t) => t.gang ?? t.group).values()) packing.put(unit);
    return packing.end(tasks.filter((t) => !isRuled(t)));
  };

interface PackingInput {
  readonly place: PlacePolicy;
  readonly neighbours: Neighbours;
  /** Groups whose constraints keep to the rules over zones (zones.ts). */
  readonly narrowed: ReadonlySet<GroupId>;
  readonly hosts: readonly Host[];
  readonly context: DecisionContext;
}

class Packing {
  readonly #of: PackingInput;
  readonly #undo: (() => void)[] = [];
  readonly #placements: Placement[] = [];
  #hosts: readonly Host[];

  constructor(of: PackingInput) {
    this.#of = of;
    this.#hosts = of.hosts;
    for (const host of of.hosts)
      for (const { task } of host.given ?? []) this.#undo.push(of.neighbours.comes(task, host.on));
  }

  /** Tasks of one group, or of one gang. */
  put(unit: readonly TaskToPlace[]): void {
    const [first] = unit;
    const of = first === undefined ? null : this.#of.neighbours.of(first.task);
    if (first === undefined || of === null) return;
    const ask = (): readonly Placement[] => this.#together(unit, of);
    const found = first.from === undefined ? ask() : this.#of.neighbours.without(of, first.from, ask);
    if (found.length === 0 || (first.gang !== null && found.length < unit.length)) return;
    for (const { task, on } of found) this.#undo.push(this.#of.neighbours.comes(task, on));
    this.#hosts = afterPlacing(this.#hosts, unit, found);
    this.#placements.push(...found);
  }

  /** All placements, with those of tasks that may be anywhere. */
  end(others: readonly TaskToPlace[]): readonly Placement[] {
    for (const undo of this.#undo) undo();
    if (others.length === 0) return this.#placements;
    return [...this.#placements, ...this.#of.place(others, this.#hosts, this.#of.context)];
  }

  /** Where all have to be on one instance and none is yet, the first task chooses it. */
  #together(unit: readonly TaskToPlace[], of: RuledStage): readonly Placement[] {
    const { neighbours } = this.#of;
    const [first, ...others] = unit;
    if (first === undefined || !neighbours.beginsTogether(of, 'instance')) return this.#ask(unit, of, this.#hosts);
    const chosen = this.#ask([{ ...first, gang: null }], of, this.#hosts);
    const [{ on } = { on: null }] = chosen;
    if (on === null || others.length === 0) return chosen;
    const site = neighbours.siteOf(on);
    if (site === null) return chosen;
    neighbours.add(of, site);
    const rest = this.#ask(
      others.map((t) => ({ ...t, gang: null })),
      of,
      afterPlacing(this.#hosts, [first], chosen).filter((h) => h.on === on),
    );
    neighbours.add(of, site, -1);
    return [...chosen, ...rest];
  }

  #ask(unit: readonly TaskToPlace[], of: RuledStage, hosts: readonly Host[]): readonly Placement[] {
    const { place, neighbours, narrowed, context } = this.#of;
    const [first] = unit;
    if (first === undefined) return [];
    const mayBeIn = (zone: string): boolean => narrowed.has(first.group) || neighbours.mostIn(of, zone) >= 1;
    const shown = hosts.flatMap((host): readonly Host[] => {
      const most = mayBeIn(host.pool.zone) ? neighbours.mostOn(of, host.on) : 0;
      return most < 1 ? [] : [most === Infinity ? host : upTo(host, times(first.need, most))];
    });
    return place(unit, shown, context);
  }
}
