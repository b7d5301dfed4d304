/** Answers of order, place, queue and scale, combined within the limits on money. Nothing here judges. */
import { once } from '../../kernel/once.ts';
import type { AttemptId, GroupId, InstanceId } from '../../kernel/ids.ts';
import type { Allotment, Placement } from '../../domain/plan.ts';
import { runningParts } from '../../domain/snapshot.ts';
import type {
  AppraisedMoves,
  DecisionContext,
  Host,
  Leftover,
  OrderInput,
  Scaling,
  Started,
} from '../../policy/contracts.ts';
import type { LeftOf } from '../../policy/left-of.ts';
import type { Lots } from '../money/lots.ts';
import type { Purse } from '../money/purse.ts';
import { hostsAfterStarts, type PlacedCopy } from './copies.ts';
import type { DecideInput } from './deliberation.ts';
import { buyAhead } from './buy-ahead.ts';
import { expectUseful } from './expect-useful.ts';
import { hostsThere } from './hosts-there.ts';
import { laterDemand } from './later.ts';
import { leftoversOf, placeMoved, placeMoves, placeReturning, type Arrivals } from './moves.ts';
import { paidStarts } from './paid-starts.ts';
import { counting, type Neighbours } from '../neighbours/neighbours.ts';
import { leftoversByRules } from '../neighbours/purchases.ts';

interface Placing {
  readonly context: DecisionContext;
  readonly leftOf: LeftOf;
  readonly allotment: Allotment;
  readonly appraised: AppraisedMoves;
  readonly arriving: Arrivals;
  readonly purse: Purse;
}

interface Placed {
  readonly started: Started;
  /** Places of moves that have a target. */
  readonly moved: readonly Placement[];
  /** Moves without room. */
  readonly unmoved: readonly Leftover[];
  /** Instances that this cycle gave tasks to, or keeps for some, but for those of groups that have no use for them. */
  readonly used: (vain: ReadonlySet<GroupId>) => ReadonlySet<InstanceId>;
  /** Room left for copies. */
  readonly hostsLeft: () => readonly Host[];
}

/** Order of room: arrivals, stopping attempts that go on elsewhere, moves, then starts. */
export function place<S>(
  { snapshot, stages }: DecideInput<S>,
  { context, leftOf, allotment, appraised, arriving, purse }: Placing,
): Placed {
  const { moves } = appraised;
  const placesAny = allotment.starts.length + moves.length + runningParts(snapshot).stopping.length > 0;
  const stopping = new Set<AttemptId>(allotment.preemptions.map((p) => p.attempt));
  const there = once(() => hostsThere(snapshot, leftOf, stopping));
  const placing = { ...context, place: stages.place, leftOf };
  const free = placesAny ? placeMoved(snapshot, there()).hosts : [];
  const returning = placeReturning(placing, stages.move.returning(context), free);
  const moved = placeMoves(placing, moves, returning.hosts);
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const order: OrderInput = { ...context, groups, leftOf, allotment, hosts: moved.hosts, stages };
  const started = paidStarts(order, stages.order, { arriving: arriving.placements, purse });
  const unmoved = leftoversOf(appraised, moved.unplaced, placing);
  const given = [...returning.placements, ...moved.placements, ...started.placements];
  const used: Placed['used'] = (vain) =>
    new Set([...given, ...started.reserved.filter((p) => !vain.has(p.group))].map((p) => p.on));
  const hostsLeft = (): readonly Host[] =>
    hostsAfterStarts(placesAny ? moved.hosts : placeMoved(snapshot, there()).hosts, started, {
      groups,
      arriving: arriving.placements,
    });
  return { started, moved: moved.placements, unmoved, used, hostsLeft };
}

/** Purchases within the limits on money, their beneficiaries, and releases. */
export function scale<S>(
  { snapshot, stages }: DecideInput<S>,
  of: {
    readonly context: DecisionContext;
    readonly allotment: Pick<Allotment, 'deferred'>;
    readonly appraised: AppraisedMoves;
    readonly placed: Placed;
    readonly copies: readonly PlacedCopy[];
    readonly purse: Purse;
    readonly neighbours: Neighbours | null;
  },
) {
  const { context, allotment, appraised, placed, copies, purse, neighbours } = of;
  const later = once(() => laterDemand(stages, context, allotment));
  const { open: leftovers, without } = demandOf(placed, neighbours);
  const groups = new Map([...context.worths.groups, ...appraised.worths]);
  const usedWithout = (vain: ReadonlySet<GroupId>): ReadonlySet<InstanceId> =>
    new Set([...placed.used(vain), ...copies.map((c) => c.on)]);
  const scaling = {
    ...context,
    worths: { groups, ofRunning: context.worths.ofRunning },
    offers: new Map([...context.offers, ...appraised.offers]),
    later,
    used: usedWithout(NO_GROUPS),
  };
  let last = null as Scaling | null;
  const { purchases, lots } = purse.bought(leftovers, scaling.offers, (asked, offers) => {
    last = stages.scale({ ...scaling, offers, leftovers: asked });
    return last.purchases.filter((p) => p.serves === undefined);
  });
  expectUseful(purchases, snapshot, leftovers);
  const answer = last ?? stages.scale({ ...scaling, leftovers: [] });
  const ahead = answer.purchases.filter((p) => p.serves !== undefined);
  const bought = buyAhead(ahead, { purchases, lots }, { snapshot, later, purse });
  const vain = keptInVain(placed.started, lots);
  const { releases } = vain.size === 0 ? answer : stages.scale({ ...scaling, used: usedWithout(vain), leftovers: [] });
  return { ...bought, releases, unbought: without };
}

const NO_GROUPS: ReadonlySet<GroupId> = new Set();

/**
 * Gangs for a part of which room is kept, while nothing is bought for the rest: a limit on money or the market may keep
 * it from being bought for ever. What stops for them may give back vCPUs for it.
 */
function keptInVain({ leftovers, needed }: Started, lots: Lots): ReadonlySet<GroupId> {
  const parts = leftovers.filter((l) => l.group.stage.gang && l.count < l.group.count);
  if (parts.length === 0 || needed.size > 0) return NO_GROUPS;
  const served = new Set(lots.flat().flatMap(({ boughtFor }) => boughtFor.map((b) => b.job)));
  return new Set(parts.flatMap(({ group }) => (served.has(group.job) ? [] : [group.id])));
}

const NONE: ReadonlyMap<GroupId, string> = new Map();

/** Demand without room, moves first, and what no purchase can serve. */
function demandOf({ unmoved, started, moved }: Placed, neighbours: Neighbours | null) {
  const { leftovers } = started;
  if (neighbours === null) return { open: [...unmoved, ...leftovers], without: NONE };
  const coming = [...started.placements, ...started.reserved, ...moved];
  return counting(neighbours, coming, () => leftoversByRules({ moves: unmoved, starts: leftovers }, neighbours));
}
