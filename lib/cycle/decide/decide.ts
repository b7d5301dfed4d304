import type { AttemptId, GroupId } from '../../kernel/ids.ts';
import type { Plan } from '../../domain/plan.ts';
import { withParts } from '../../domain/snapshot.ts';
import type { DecisionContext } from '../../policy/contracts.ts';
import { leftOfEach, type LeftOf } from '../../policy/left-of.ts';
import { countedNeighbours } from '../../policy/colocation/counted-neighbours.ts';
import { explain } from '../explain/explain.ts';
import { Purse } from '../money/purse.ts';
import { Neighbours } from '../neighbours/neighbours.ts';
import { appraiseByRules } from '../neighbours/offers.ts';
import { placeByRules } from '../neighbours/packing.ts';
import { scaleByRules } from '../neighbours/purchases.ts';
import { withinReservations } from './within-reservations.ts';
import { queueByRules } from '../neighbours/slots.ts';
import { inZones } from '../neighbours/zones.ts';
import { withReplicas } from '../replicas/in-plans.ts';
import { withoutArrivals } from './arriving-moves.ts';
import { placeCopies } from './copies.ts';
import { buyForCopies } from './copy-purchases.ts';
import type { DecideInput, Deliberation, RunningOffers } from './deliberation.ts';
import { effectsOf, pilotsOf } from './effects.ts';
import { hostsThere } from './hosts-there.ts';
import { movesOf, placeMoved, withoutCopies, type Arrivals } from './moves.ts';
import { place, scale } from './place-and-scale.ts';
import { appraiseAll, runningGroups, runningOffersOf } from './running-offers.ts';
import { stopsOf } from './stops.ts';

/**
 * value -> appraise -> move -> plan -> order (place, queue) -> speculate -> scale. The stages judge; here their answers
 * are combined, and the invariants of every preset are kept: limits on money, the user's constraints, and moves that
 * reach their target. Deciding acts on nothing: the result is a plan whose effects have keys made from the plan's id.
 */
export async function decide<S>(given: DecideInput<S>): Promise<{ plan: Plan; deliberation: Deliberation }> {
  const { input, neighbours } = ruled(withReplicas({ ...given, snapshot: withParts(given.snapshot) }));
  const { snapshot, forecasts, stages, config, memory, beliefs, explains = true } = input;
  const valued = { snapshot, forecasts, config, memory, beliefs };
  const worths = stages.value(valued);
  const running = explains ? runningGroups(input, worths) : [];
  const offers = appraiseAll(stages, { ...valued, worths }, running);
  const context: DecisionContext = { ...valued, worths, offers };
  const leftOf = leftOfEach(context);
  const purse = new Purse({ snapshot, leftOf, config });

  const { arriving, allotment, appraised } = await planned(input, context, { leftOf, neighbours });
  const placed = place(input, { context, leftOf, allotment, appraised, arriving, purse });
  const copied = placeCopies(stages, { context, allotment, appraised, hosts: placed.hostsLeft, purse, neighbours });
  const { unbought, ...scaled } = scale(input, {
    context,
    allotment,
    appraised,
    placed,
    copies: copied.placed,
    purse,
    neighbours,
  });
  const { copies, ...bought } = buyForCopies(copied, scaled, { snapshot, purse, neighbours });
  const { started } = placed;

  const preemptions = allotment.preemptions.filter((p) => started.needed.has(p.attempt));
  const stops = stopsOf(
    context,
    { ...allotment, preemptions },
    { appraised, placed: placed.moved, buys: scaled.purchases.length > 0, vacate: stages.move.vacate },
  );
  const effects = effectsOf(input, {
    stops,
    placements: started.placements,
    neighbours,
    pilots: pilotsOf(allotment),
    copies: copies.placed,
    ...scaled,
    ...bought,
  });
  const deliberation: Deliberation = {
    ...context,
    ...started,
    ...scaled,
    ...bought,
    copies,
    moving: { appraised, placed: placed.moved, stops },
    allotment,
    runningOffers: explains ? runningOffersOf(input, running, offers) : NO_OFFERS,
    short: purse.short,
    heldUp: purse.heldUp,
    unbought,
    shortJobsFirst: input.config.shortJobsFirst,
    neighbours,
    slowdowns: countedNeighbours(input),
  };
  return { plan: planOf(input, { deliberation, effects, limitsReached: purse.limitsReached }), deliberation };
}

function planOf<S>(
  input: DecideInput<S>,
  of: { readonly deliberation: Deliberation } & Pick<Plan, 'effects'> & Required<Pick<Plan, 'limitsReached'>>,
): Plan {
  const { deliberation, effects, limitsReached } = of;
  const { snapshot, forecasts, allotment } = deliberation;
  return {
    id: input.plan,
    token: input.token,
    atMs: snapshot.nowMs,
    preset: input.preset,
    ...(forecasts.market.origin === undefined ? {} : { forecast: forecasts.market.origin }),
    effects,
    ...(allotment.earliest === undefined ? {} : { earliest: allotment.earliest }),
    ...(limitsReached.length === 0 ? {} : { limitsReached }),
    explanations: (input.explains ?? true) ? explain(deliberation) : [],
    solve: allotment.solve,
  };
}

const NO_OFFERS: RunningOffers = new Map();
const NOTHING_STOPS: ReadonlySet<AttemptId> = new Set();
const NOTHING_ARRIVES: Arrivals = { placements: [], arrived: new Set<GroupId>() };

/**
 * The same decision within `placement` rules: hard constraints of zones in the snapshot, and stages that mind the rules
 * over instances. Where no job has rules, the limits of reserved pools alone are added.
 */
function ruled<S>(input: DecideInput<S>): { readonly input: DecideInput<S>; readonly neighbours: Neighbours | null } {
  const neighbours = Neighbours.of(input.snapshot);
  const stages = { ...input.stages, scale: withinReservations(input.stages.scale) };
  if (neighbours === null) return { input: { ...input, stages }, neighbours };
  const snapshot = inZones(input.snapshot, neighbours, input.memory);
  const waits = new Set(snapshot.groups.map((g) => g.id));
  const ruledStages = {
    ...stages,
    appraise: appraiseByRules(stages.appraise, neighbours),
    place: placeByRules(stages.place, neighbours, waits),
    queue: queueByRules(stages.queue, neighbours),
    scale: scaleByRules(stages.scale),
  };
  return { input: { ...input, snapshot, stages: ruledStages }, neighbours };
}

/** Plan for all work but arrivals from moves, and its moves that begin. */
async function planned<S>(
  { snapshot, stages, solver }: DecideInput<S>,
  context: DecisionContext,
  { leftOf, neighbours }: { readonly leftOf: LeftOf; readonly neighbours: Neighbours | null },
) {
  const hasMoved = snapshot.groups.some((g) => g.goesTo !== undefined);
  const arriving = hasMoved ? placeMoved(snapshot, hostsThere(snapshot, leftOf, NOTHING_STOPS)) : NOTHING_ARRIVES;
  const undecided = { ...context, snapshot: withoutArrivals(snapshot, arriving) };
  const moves = withoutCopies(stages.move.propose(undecided), snapshot);
  const allotment = await stages.plan({ ...undecided, moves }, solver);
  const { value, appraise } = stages;
  const appraised = stages.move.begin({
    ...context,
    moves: movesOf(allotment, context, { proposed: moves, neighbours }),
    value,
    appraise,
  });
  return { arriving, allotment, appraised };
}
