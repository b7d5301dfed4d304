/**
 * Preemptible work as kills: KillnCk with the capacity that each unit returns. A kill is one of these:
 *
 * - equal attempts, one per unit: their needs return to the room of their pool until they would have ended anyway;
 * - a gang, all of it with one unit: half a gang makes no progress;
 * - an instance with such attempts only, or with none: its vCPUs return to the quota, and its free room goes.
 *
 * An attempt is stopped once. Where the first and the third kind include it, a non-renewable partition counts the
 * attempts.
 */
import { stageKey } from '../../domain/job.ts';
import type { InstanceView } from '../../domain/snapshot.ts';
import { vector } from '../../domain/resources.ts';
import { QUOTA, roomOf, type Capacity, type Room } from './supply.ts';
import { EPSILON_USD, preemptOptions, type Preemptible } from './preempt.ts';
import type { Draw, Partition, RowUse } from './strl/supply.ts';
import type { AttemptId } from '../../kernel/ids.ts';
import { milliCpuOf } from '../../domain/pool.ts';

/** Preemptible attempts or a releasable instance: units that return capacity at a cost. */
export interface Kill {
  readonly id: string;
  /** Capacity that one unit returns; negative amounts are taken. */
  readonly draws: readonly Draw[];
  readonly use: RowUse;
  readonly slots: number;
  readonly atMost: number;
  readonly costUsd: number;
  /** Attempts that stop: one per unit in this order, or all of them with the one unit (`whole`). */
  readonly attempts: readonly AttemptId[];
  readonly whole: boolean;
}

type KillDraft = Omit<Kill, 'use'>;

export interface Kills {
  readonly kills: readonly KillDraft[];
  /** Counts of attempts that more than one kill could stop. */
  readonly partitions: readonly Partition[];
}

/** Of idle instances alone, for a plan that stops nothing that runs. O(instances). */
export const releasesOf = (capacity: Capacity): Kills => ({
  kills: [...capacity.rooms.values()].flatMap((room) => idleKill(room, capacity.slots)),
  partitions: [],
});

/** O(preemptible attempts), sorted by equivalence class. */
export function killsOf(capacity: Capacity): Kills {
  const all = [...capacity.preemptible().values()].flat();
  const single = all.filter((p) => !p.running.stage.gang);
  const kills: KillDraft[] = [];
  const partitions: Partition[] = [];
  const counter = new Map<string, string>();
  preemptOptions(single).forEach((option, position) => {
    const id = `kill${position}`;
    const counts = `attempts_${id}`;
    counter.set(option.equivalenceClass, counts);
    partitions.push({ id: counts, renewable: false, kinds: ['attempts'], capacity: [[option.attempts.length]] });
    kills.push({
      id,
      draws: [
        { partition: roomOf(option.pool), perUnit: vector(option.need) },
        { partition: counts, perUnit: [-1] },
      ],
      slots: option.slots,
      atMost: option.attempts.length,
      costUsd: option.costUsd,
      attempts: option.attempts,
      whole: false,
    });
  });
  kills.push(...gangKills(all), ...instanceKills(capacity, counter));
  return { kills, partitions };
}

function gangKills(all: readonly Preemptible[]): readonly KillDraft[] {
  const gangs = Map.groupBy(
    all.filter((p) => p.running.stage.gang),
    (p) => stageKey(p.running.attempt),
  );
  return [...gangs.keys()].sort().map((key, position) => {
    const members = gangs.get(key) ?? [];
    const draws = members.map((p): Draw => ({
      partition: roomOf(p.view.pool.id),
      perUnit: vector(p.running.attempt.resources),
    }));
    return {
      id: `killgang${position}`,
      draws: merged(draws),
      slots: Math.min(...members.map((p) => p.slots)),
      atMost: 1,
      costUsd: members.reduce((sum, p) => sum + p.costUsd, 0),
      attempts: members.map((p) => p.running.attempt.id).sort(),
      whole: true,
    };
  });
}

function instanceKills(capacity: Capacity, counter: ReadonlyMap<string, string>): readonly KillDraft[] {
  const kills: KillDraft[] = [];
  const preemptible = capacity.preemptible();
  for (const room of capacity.rooms.values()) {
    kills.push(...idleKill(room, capacity.slots));
    for (const view of room.views()) {
      const stopped = (preemptible.get(view.instance.id) ?? []).filter((p) => !p.running.stage.gang);
      if (view.attempts.length === 0 || stopped.length < view.attempts.length) continue;
      kills.push(giveUp(view, stopped, { id: `clear_${view.instance.id}`, slots: capacity.slots, atMost: 1, counter }));
    }
  }
  return kills;
}

function idleKill(room: Room, slots: number): readonly KillDraft[] {
  const empty = room.views().filter((view) => view.attempts.length === 0);
  const first = empty[0];
  if (first === undefined) return [];
  return [giveUp(first, [], { id: `release_${first.pool.id}`, slots, atMost: empty.length, counter: new Map() })];
}

interface GiveUp {
  readonly id: string;
  readonly slots: number;
  readonly atMost: number;
  /** Partition that counts the attempts of an equivalence class. */
  readonly counter: ReadonlyMap<string, string>;
}

function giveUp(view: InstanceView, stopped: readonly Preemptible[], { counter, ...unit }: GiveUp): KillDraft {
  const draws: Draw[] = [
    { partition: QUOTA, perUnit: [milliCpuOf(view.pool)] },
    { partition: roomOf(view.pool.id), perUnit: vector(view.free).map((x) => -x) },
    ...stopped.map((p): Draw => ({ partition: counter.get(p.equivalenceClass) ?? '', perUnit: [-1] })),
  ];
  return {
    ...unit,
    draws: merged(draws),
    costUsd: stopped.reduce((sum, p) => sum + p.costUsd, EPSILON_USD),
    attempts: stopped.map((p) => p.running.attempt.id).sort(),
    whole: true,
  };
}

/** Draws on one partition added up. */
function merged(draws: readonly Draw[]): readonly Draw[] {
  const sums = new Map<string, number[]>();
  for (const draw of draws) {
    const sum = sums.get(draw.partition);
    if (sum === undefined) sums.set(draw.partition, [...draw.perUnit]);
    else draw.perUnit.forEach((x, i) => (sum[i] = (sum[i] ?? 0) + x));
  }
  return [...sums].map(([partition, perUnit]) => ({ partition, perUnit }));
}
