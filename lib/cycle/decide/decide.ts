import { EbbError } from '../../kernel/errors.ts';
import type { AttemptId, GroupId, InstanceId } from '../../kernel/ids.ts';
import type { Allotment, Placement, Plan } from '../../domain/plan.ts';
import { runningParts, withParts } from '../../domain/snapshot.ts';
import type {
  AppraisedMoves,
  Copy,
  DecisionContext,
  Leftover,
  OrderInput,
  Scaling,
  Started,
} from '../../policy/contracts.ts';
import { leftOfEach, type LeftOf } from '../../policy/left-of.ts';
import { explain } from '../explain/explain.ts';
import { Purse } from '../money/purse.ts';
import { withoutArrivals } from './arrivals.ts';
import type { DecideInput, Deliberation } from './deliberation.ts';
import { effectsOf } from './effects.ts';
import { expectUseful } from './expect-useful.ts';
import { hostsThere } from './hosts-there.ts';
import { leftoversOf, movesOf, placeMoved, placeMoves, placeReturning, type Arrivals } from './moves.ts';
import { paidStarts } from './paid-starts.ts';
import { appraiseAll, runningGroups, runningOffersOf } from './running-offers.ts';
import type { RunningOffers } from './deliberation.ts';
import { stopsOf } from './stops.ts';

/**
 * value -> appraise -> move -> plan -> order (place, queue) -> scale. The stages judge; here their answers are
 * combined, and the invariants of every preset are kept: limits on money, the user's constraints, and moves that reach
 * their target. Deciding acts on nothing: the result is a plan whose effects have keys made from the plan's id.
 */
export async function decide<S>(given: DecideInput<S>): Promise<{ plan: Plan; deliberation: Deliberation }> {
  const input = { ...given, snapshot: withParts(given.snapshot) };
  const { snapshot, forecasts, stages, config, memory, explains = true } = input;
  const valued = { snapshot, forecasts, config, memory };
  const worths = stages.value(valued);
  const running = explains ? runningGroups(input, worths) : [];
  const offers = appraiseAll(stages, { ...valued, worths }, running);
  const context: DecisionContext = { ...valued, worths, offers };
  const leftOf = leftOfEach(context);
  const purse = new Purse({ snapshot, leftOf, config });

  expectNoCopies(stages.speculate(context));
  const { arriving, allotment, appraised } = await planned(input, context, leftOf);
  const placed = place(input, { context, leftOf, allotment, appraised, arriving, purse });
  const scaled = scale(input, { context, appraised, placed, purse });
  const { started } = placed;

  const preemptions = allotment.preemptions.filter((p) => started.needed.has(p.attempt));
  const effects = effectsOf(input, {
    stops: stopsOf(
      snapshot,
      { ...allotment, preemptions },
      { appraised, placed: placed.moved, buys: scaled.purchases.length > 0, vacate: stages.move.vacate },
    ),
    placements: started.placements,
    ...scaled,
  });
  const deliberation: Deliberation = {
    ...context,
    ...started,
    ...scaled,
    allotment,
    runningOffers: explains ? runningOffersOf(input, running, offers) : NO_OFFERS,
    short: purse.short,
    heldUp: purse.heldUp,
  };
  const plan: Plan = {
    id: input.plan,
    token: input.token,
    atMs: snapshot.nowMs,
    preset: input.preset,
    ...(forecasts.market.origin === undefined ? {} : { forecast: forecasts.market.origin }),
    effects,
    ...(purse.limitsReached.length === 0 ? {} : { limitsReached: purse.limitsReached }),
    explanations: explains ? explain(deliberation) : [],
    solve: allotment.solve,
  };
  return { plan, deliberation };
}

const NO_OFFERS: RunningOffers = new Map();
const NOTHING_STOPS: ReadonlySet<AttemptId> = new Set();
const NOTHING_ARRIVES: Arrivals = { placements: [], arrived: new Set<GroupId>() };

/** Engine and fleets run copies; decisions do not place them yet. Throws `internal`. */
function expectNoCopies(copies: readonly Copy[]): void {
  const [first] = copies;
  if (first === undefined) return;
  throw new EbbError('internal', {
    what: 'the speculate stage asks for copies, which decisions do not place yet',
    got: `${copies.length}, the first of ${first.of}`,
    next: 'choose `speculate: none`',
  });
}

/** Plan for all work but arrivals from moves, and its moves that begin. */
async function planned<S>({ snapshot, stages, solver }: DecideInput<S>, context: DecisionContext, leftOf: LeftOf) {
  const hasMoved = snapshot.groups.some((g) => g.goesTo !== undefined);
  const arriving = hasMoved ? placeMoved(snapshot, hostsThere(snapshot, leftOf, NOTHING_STOPS)) : NOTHING_ARRIVES;
  const undecided = { ...context, snapshot: withoutArrivals(snapshot, arriving) };
  const moves = stages.move.propose(undecided);
  const allotment = await stages.plan({ ...undecided, moves }, solver);
  const { value, appraise } = stages;
  const appraised = stages.move.begin({ ...context, moves: movesOf(allotment, context.worths), value, appraise });
  return { arriving, allotment, appraised };
}

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
  /** Demand without room, moves first. */
  readonly leftovers: readonly Leftover[];
  /** Instances that this cycle gave tasks to, or keeps for some. */
  readonly used: ReadonlySet<InstanceId>;
}

/** Order of room: arrivals, stopping attempts that go on elsewhere, moves, then starts. */
function place<S>(
  { snapshot, stages }: DecideInput<S>,
  { context, leftOf, allotment, appraised, arriving, purse }: Placing,
): Placed {
  const { moves } = appraised;
  const placesAny = allotment.starts.length + moves.length + runningParts(snapshot).stopping.length > 0;
  const stopping = new Set<AttemptId>(allotment.preemptions.map((p) => p.attempt));
  const there = placesAny ? hostsThere(snapshot, leftOf, stopping) : [];
  const placing = { ...context, place: stages.place, leftOf };
  const returning = placeReturning(placing, stages.move.returning(context), placeMoved(snapshot, there).hosts);
  const moved = placeMoves(placing, moves, returning.hosts);
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const order: OrderInput = { ...context, groups, leftOf, allotment, hosts: moved.hosts, stages };
  const started = paidStarts(order, stages.order, { arriving: arriving.placements, purse });
  const leftovers = [...leftoversOf(appraised, moved.unplaced, placing), ...started.leftovers];
  const used = new Set<InstanceId>();
  for (const p of [...returning.placements, ...moved.placements, ...started.placements, ...started.reserved])
    used.add(p.on);
  return { started, moved: moved.placements, leftovers, used };
}

/** Purchases within the limits on money, their beneficiaries, and releases. */
function scale<S>(
  { snapshot, stages }: DecideInput<S>,
  of: {
    readonly context: DecisionContext;
    readonly appraised: AppraisedMoves;
    readonly placed: Placed;
    readonly purse: Purse;
  },
) {
  const { context, appraised, placed, purse } = of;
  const { leftovers, used } = placed;
  const groups = new Map([...context.worths.groups, ...appraised.worths]);
  const scaling = {
    ...context,
    worths: { groups, ofRunning: context.worths.ofRunning },
    offers: new Map([...context.offers, ...appraised.offers]),
    used,
  };
  let last = null as Scaling | null;
  const { purchases, lots } = purse.bought(leftovers, scaling.offers, (asked, offers) => {
    last = stages.scale({ ...scaling, offers, leftovers: asked });
    return last.purchases;
  });
  expectUseful(purchases, snapshot, leftovers);
  const { releases } = last ?? stages.scale({ ...scaling, leftovers: [] });
  return { purchases, lots, releases };
}
