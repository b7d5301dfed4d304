import type { AttemptId, GroupId } from '../../kernel/ids.ts';
import type { Plan } from '../../domain/plan.ts';
import { withParts } from '../../domain/snapshot.ts';
import type { DecisionContext } from '../../policy/contracts.ts';
import { leftOfEach, type LeftOf } from '../../policy/left-of.ts';
import { explain } from '../explain/explain.ts';
import { Purse } from '../money/purse.ts';
import { withoutArrivals } from './arriving-moves.ts';
import { placeCopies } from './copies.ts';
import { buyForCopies } from './copy-purchases.ts';
import type { DecideInput, Deliberation, RunningOffers } from './deliberation.ts';
import { effectsOf, pilotsOf } from './effects.ts';
import { hostsThere } from './hosts-there.ts';
import { movesOf, placeMoved, type Arrivals } from './moves.ts';
import { place, scale } from './place-and-scale.ts';
import { appraiseAll, runningGroups, runningOffersOf } from './running-offers.ts';
import { stopsOf } from './stops.ts';

/**
 * value -> appraise -> move -> plan -> order (place, queue) -> speculate -> scale. The stages judge; here their answers
 * are combined, and the invariants of every preset are kept: limits on money, the user's constraints, and moves that
 * reach their target. Deciding acts on nothing: the result is a plan whose effects have keys made from the plan's id.
 */
export async function decide<S>(given: DecideInput<S>): Promise<{ plan: Plan; deliberation: Deliberation }> {
  const input = { ...given, snapshot: withParts(given.snapshot) };
  const { snapshot, forecasts, stages, config, memory, beliefs, explains = true } = input;
  const valued = { snapshot, forecasts, config, memory, beliefs };
  const worths = stages.value(valued);
  const running = explains ? runningGroups(input, worths) : [];
  const offers = appraiseAll(stages, { ...valued, worths }, running);
  const context: DecisionContext = { ...valued, worths, offers };
  const leftOf = leftOfEach(context);
  const purse = new Purse({ snapshot, leftOf, config });

  const { arriving, allotment, appraised } = await planned(input, context, leftOf);
  const placed = place(input, { context, leftOf, allotment, appraised, arriving, purse });
  const copied = placeCopies(stages, { context, allotment, appraised, hosts: placed.hostsLeft, purse });
  const scaled = scale(input, { context, allotment, appraised, placed, copies: copied.placed, purse });
  const { copies, ...bought } = buyForCopies(copied, scaled, { snapshot, purse });
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
  };
  const plan: Plan = {
    id: input.plan,
    token: input.token,
    atMs: snapshot.nowMs,
    preset: input.preset,
    ...(forecasts.market.origin === undefined ? {} : { forecast: forecasts.market.origin }),
    effects,
    ...(allotment.earliest === undefined ? {} : { earliest: allotment.earliest }),
    ...(purse.limitsReached.length === 0 ? {} : { limitsReached: purse.limitsReached }),
    explanations: explains ? explain(deliberation) : [],
    solve: allotment.solve,
  };
  return { plan, deliberation };
}

const NO_OFFERS: RunningOffers = new Map();
const NOTHING_STOPS: ReadonlySet<AttemptId> = new Set();
const NOTHING_ARRIVES: Arrivals = { placements: [], arrived: new Set<GroupId>() };

/** Plan for all work but arrivals from moves, and its moves that begin. */
async function planned<S>({ snapshot, stages, solver }: DecideInput<S>, context: DecisionContext, leftOf: LeftOf) {
  const hasMoved = snapshot.groups.some((g) => g.goesTo !== undefined);
  const arriving = hasMoved ? placeMoved(snapshot, hostsThere(snapshot, leftOf, NOTHING_STOPS)) : NOTHING_ARRIVES;
  const undecided = { ...context, snapshot: withoutArrivals(snapshot, arriving) };
  const moves = stages.move.propose(undecided);
  const allotment = await stages.plan({ ...undecided, moves }, solver);
  const { value, appraise } = stages;
  const appraised = stages.move.begin({ ...context, moves: movesOf(allotment, context, moves), value, appraise });
  return { arriving, allotment, appraised };
}
