import { NO_SHARES } from '../../lib/stages/plan/fair-shares.ts';
/**
 * Problems of the plan stage written by hand: rows of supply with plain numbers, choices that take of them, work that
 * gives back. What snapshots and offers lead to is of no concern here.
 */
import { attemptId } from '../../lib/kernel/ids.ts';
import type { Choice, GroupChoices, Problem } from '../../lib/stages/plan/problem.ts';
import { supplyRows, type Draw, type Supply } from '../../lib/stages/plan/strl/supply.ts';
import type { PlannedOption } from '../../lib/stages/plan/options.ts';
import type { Pool } from '../../lib/domain/pool.ts';
import { invariant } from '../../lib/kernel/errors.ts';
import { HOUR_S, SPOT, handmade, type Handmade } from './handmade-plan.ts';

/** Amounts by partition; negative ones only of kills. */
export type Amounts = Readonly<Record<string, number>>;

export interface SmallMember {
  readonly uses: Amounts;
  readonly atMost: number;
  /** Default: the first is room, the second is new. */
  readonly name?: 'room' | 'new';
}

export interface SmallChoice {
  readonly pool?: Pool;
  readonly netUsd: number;
  readonly costUsd?: number;
  readonly slot?: number;
  /** Slots that a task runs for. */
  readonly slots?: number;
  readonly members: readonly SmallMember[];
}

export interface SmallGroup {
  readonly count: number;
  readonly gang?: boolean;
  readonly class?: 'deadline' | 'best-effort';
  readonly submittedS?: number;
  readonly choices: readonly SmallChoice[];
}

export interface SmallKill {
  readonly costUsd: number;
  readonly gives: Amounts;
  readonly atMost?: number;
  readonly slots?: number;
  /** Default: as many as `atMost`. */
  readonly attempts?: readonly string[];
  readonly whole?: boolean;
}

export interface SmallProblem {
  /** Capacity in each slot, by partition; one number for all slots. */
  readonly capacity: Readonly<Record<string, number | readonly number[]>>;
  readonly slots?: number;
  readonly groups: readonly SmallGroup[];
  readonly kills?: readonly SmallKill[];
  readonly headroomMilliCpu?: number;
  readonly config?: Handmade['config'];
}

const drawsOf = (amounts: Amounts): readonly Draw[] =>
  Object.entries(amounts).map(([partition, amount]) => ({ partition, perUnit: [amount] }));

export function smallProblem(small: SmallProblem): Problem {
  const { capacity, slots = 1, groups, kills = [], headroomMilliCpu = 0, config } = small;
  const input = handmade({
    waiting: groups.map(({ count, gang, class: of }, g) => ({
      name: `g${g}`,
      count,
      worthUsd: 1,
      gang: gang ?? false,
      ...(of === 'deadline' ? { deadlineS: HOUR_S } : {}),
    })),
    config: { ...config, lookAheadSlots: slots },
  });
  const supply: Supply = {
    slots,
    partitions: Object.entries(capacity).map(([id, per]) => ({
      id,
      renewable: true,
      kinds: ['units'],
      capacity: Array.from({ length: slots }, (_, slot) => [typeof per === 'number' ? per : (per[slot] ?? 0)]),
    })),
  };
  const rows = supplyRows(supply);
  const choices: Choice[] = [];
  const entries = groups.map((small, g): GroupChoices => {
    const waiting = invariant(input.snapshot.groups[g], 'a group was made of each');
    const group = { ...waiting, submittedMs: offset(waiting.submittedMs, small.submittedS ?? 0) };
    const first = choices.length;
    const options = small.choices.map((choice): PlannedOption => {
      const offer = invariant(input.offers.get(group.id)?.offers[0], 'each group has an offer');
      const { costUsd = 0, slot = 0, netUsd } = choice;
      const option = {
        group: group.id,
        offer,
        slot,
        startMs: waiting.submittedMs,
        worthUsd: netUsd + costUsd,
        costUsd,
      };
      return { option, pool: choice.pool ?? SPOT, netUsd, slots: choice.slots ?? 1 };
    });
    small.choices.forEach(({ netUsd, members }, c) => {
      const planned = invariant(options[c], 'an option was made of each choice');
      const { slot } = planned.option;
      choices.push({
        group: g,
        planned,
        netUsd,
        members: members.map(({ uses, atMost, name }, m) => ({
          name: name ?? (m === 0 ? 'room' : 'new'),
          use: rows.use(drawsOf(uses), slot, slot + planned.slots),
          atMost,
        })),
      });
    });
    return { group, gang: small.gang ?? false, choices: options.map((_, i) => first + i), options, overBudget: null };
  });
  return {
    input,
    capacity: {
      slots,
      rooms: new Map(),
      quota: invariant(supply.partitions[0], 'there is some supply'),
      headroomMilliCpu,
      limitMilliCpu: headroomMilliCpu,
      preemptible: () => new Map(),
    },
    supply,
    rows,
    groups: entries,
    choices,
    kills: kills.map(({ costUsd, gives, atMost = 1, slots: lasts = slots, attempts, whole = false }, k) => ({
      id: `kill${k}`,
      draws: drawsOf(gives),
      use: rows.use(drawsOf(gives), 0, lasts),
      slots: lasts,
      atMost,
      costUsd,
      attempts: (attempts ?? Array.from({ length: atMost }, (_, i) => `k${k}.${i}`)).map(attemptId),
      whole,
    })),
    moves: [],
    shares: NO_SHARES,
  };
}

const offset = <T>(ms: T, s: number): T => (Number(ms) + s * 1000) as T;
