/**
 * A user's policy behind a guard. It gets what it cannot change (read-only.ts). An answer that throws or is unusable is
 * refused under the policy's name, and its stand-in, a shipped policy of the same stage, answers instead. The cycle
 * never holds an answer itself but a copy, read field by field (answers.ts), so that nothing happens to it later. The
 * guard does not judge decisions and improves none.
 */
import type { GroupId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { StageForecasts, StageKey } from '../../domain/forecasts.ts';
import type { Pool } from '../../domain/pool.ts';
import type { StageName } from '../../domain/preset-spec.ts';
import type { Asks } from '../asks.ts';
import type { GroupOffers, MovePolicy, PlanPolicy, Worths } from '../contracts.ts';
import type { Contract } from '../policy.ts';
import type { Solver } from '../solver.ts';
import { plan } from './allotments.ts';
import * as check from './answers.ts';
import { movesBegun, movesProposed, returning, vacated } from './moves.ts';
import { readConsidered, type ReadOffers } from './offers.ts';
import { frozen, readOnlyConfig } from './read-only.ts';
import { hush, isThenable, oneLine, refuse, Unusable } from './read.ts';
import { order, place, queue } from './starts.ts';
import type { Refusals } from './refusals.ts';

/** A policy of one stage, by name. */
export interface Named<Stage extends StageName> {
  readonly policy: string;
  readonly contract: Contract<Stage>;
}

/** The usable copy of an answer. Throws `Unusable` for another (read.ts). */
type Read<Asked extends readonly unknown[], Answer> = (answer: unknown, ...asked: Asked) => Answer;

class Guard {
  readonly #refuse: (why: string) => void;

  constructor(refuse: (why: string) => void) {
    this.#refuse = refuse;
  }

  /** The answer, or null where it is refused. */
  answer<Answer>(make: () => unknown, read: (answer: unknown) => Answer): { readonly is: Answer } | null {
    let answer: unknown;
    let isPromise: boolean;
    try {
      answer = make();
      isPromise = isThenable(answer);
    } catch (error) {
      this.refuseThrown(error);
      return null;
    }
    return this.read(answer, isPromise ? () => refuse('it answers a promise: only `plan` may be asynchronous') : read);
  }

  /** A read that throws anything else met an answer of another form than the contract's. */
  read<Answer>(answer: unknown, read: (answer: unknown) => Answer): { readonly is: Answer } | null {
    try {
      return { is: read(answer) };
    } catch (error) {
      hush(answer);
      const why =
        error instanceof Unusable ? error.message : `the answer has not the form of the contract: ${thrownLine(error)}`;
      this.#refuse(oneLine(why, LONGEST_WHY));
      return null;
    }
  }

  refuseThrown(error: unknown): void {
    this.#refuse(`it threw: ${thrownLine(error)}`);
  }

  /** Each call is answered by `own`, or where that is refused by `standIn`. */
  call<Asked extends readonly unknown[], Answer>(
    own: (...asked: Asked) => unknown,
    standIn: (...asked: Asked) => Answer,
    read: Read<Asked, Answer>,
  ): (...asked: Asked) => Answer {
    return (...asked) => {
      const made = this.answer(
        () => own(...asked),
        (answer) => read(answer, ...asked),
      );
      return made === null ? standIn(...asked) : made.is;
    };
  }
}

const LONGEST_WHY = 300;

/** One line, fit for lists. Never throws, whatever was thrown. */
export function thrownLine(error: unknown): string {
  try {
    return oneLine(error instanceof Error ? `${error.name}: ${error.message}` : String(error), LONGEST_WHY);
  } catch {
    return 'something that is no text';
  }
}

type Guarding = {
  readonly [Stage in StageName]: (own: Contract<Stage>, standIn: Contract<Stage>, guard: Guard) => Contract<Stage>;
};

const GUARDING: Guarding = {
  estimate: (own, standIn, guard) => (context) => {
    const stood = once(() => standIn(context));
    const made = guard.answer(() => own(context), check.estimate);
    return made === null ? stood() : checkedForecasts(made.is, stood, guard);
  },
  value: (own, standIn, guard) => (context) => {
    const stood = once(() => standIn(context));
    const made = guard.answer(
      () => own(context),
      (worths) => check.value(worths, context),
    );
    return made === null ? stood() : checkedWorths(made.is, stood, guard);
  },
  appraise: (own, standIn, guard) => (context) => {
    const made = guard.answer(
      () => own(context),
      (offers) => check.appraise(offers, context),
    );
    return made === null ? standIn(context) : withDetails(made.is, guard);
  },
  move: (own, standIn, guard): MovePolicy => ({
    propose: guard.call((c) => own.propose(c), standIn.propose, movesProposed),
    begin: (input) => {
      const made = guard.answer(
        () => own.begin(input),
        (answer) => movesBegun(answer, input),
      );
      return made === null ? standIn.begin(input) : { ...made.is, offers: withDetails(made.is.offers, guard) };
    },
    returning: guard.call((c) => own.returning(c), standIn.returning, returning),
    vacate: guard.call((i) => own.vacate(i), standIn.vacate, vacated),
  }),
  plan: guardedPlan,
  order: (own, standIn, guard) => guard.call(own, standIn, order),
  place: (own, standIn, guard) => guard.call(own, standIn, place),
  queue: (own, standIn, guard) => guard.call(own, standIn, queue),
  speculate: (own, standIn, guard) => guard.call(own, standIn, check.speculate),
  scale: (own, standIn, guard) => guard.call(own, standIn, check.scale),
};

/** `own` as a contract that never throws for a fault of `own`. */
export function guarded<Stage extends StageName>(
  stage: Stage,
  own: Named<Stage>,
  standIn: Named<Stage>,
  refusals: Refusals,
): Contract<Stage> {
  const { policy } = own;
  const guard = new Guard((why) => refusals.add({ stage, policy, why, standIn: standIn.policy }));
  return GUARDING[stage](own.contract, standIn.contract, guard);
}

/** Bids are asked for before any stage runs. If that fails, the policy asks for none. */
export function guardedAsks(asks: Asks, refuseIt: (why: string) => void): Asks {
  const { bids } = asks;
  if (bids === undefined) return asks;
  const guard = new Guard(refuseIt);
  const own: typeof bids = (pool, price, config) => bids(frozen(pool), price, readOnlyConfig(config));
  return { ...asks, bids: guard.call(own, () => [], check.bids) };
}

/** Where the question fails, the policy may buy. */
export const guardedBuys = (
  buys: (pool: Pool) => boolean,
  refuseIt: (why: string) => void,
): ((pool: Pool) => boolean) =>
  new Guard(refuseIt).call(
    (pool: Pool) => buys(frozen(pool)),
    () => true,
    check.truth('`buys`'),
  );

function guardedPlan(own: PlanPolicy<Solver>, standIn: PlanPolicy<Solver>, guard: Guard): PlanPolicy<Solver> {
  return async (input, solver) => {
    let allotment: unknown;
    try {
      allotment = await own(input, solver);
    } catch (error) {
      guard.refuseThrown(error);
      return standIn(input, solver);
    }
    return guard.read(allotment, (answer) => plan(answer, input))?.is ?? standIn(input, solver);
  };
}

/** Forecasts are made when they are asked for, so each is read then, once. */
function checkedForecasts(
  own: ReturnType<typeof check.estimate>,
  stood: () => StageForecasts,
  guard: Guard,
): StageForecasts {
  const known = new Map<StageKey, RuntimeForecast | undefined>();
  const ask = (key: StageKey): RuntimeForecast | undefined => {
    const made = guard.answer(
      () => own.get(key),
      (forecast) =>
        forecast === undefined && stood().get(key) === undefined ? forecast : check.runtime(forecast, key),
    );
    return made === null ? stood().get(key) : made.is;
  };
  const get = (key: StageKey): RuntimeForecast | undefined => {
    if (!known.has(key)) known.set(key, ask(key));
    return known.get(key);
  };
  return {
    get,
    *[Symbol.iterator]() {
      for (const [key, other] of stood()) yield [key, get(key) ?? other];
    },
  };
}

function checkedWorths({ groups, ofRunning, mayBeDue }: Worths, stood: () => Worths, guard: Guard): Worths {
  return {
    groups,
    ofRunning: guard.call(
      (running) => ofRunning(frozen(running)),
      (running) => stood().ofRunning(running),
      (worth) => (worth === undefined ? worth : check.worth(worth)),
    ),
    ...(mayBeDue && {
      mayBeDue: guard.call<Parameters<typeof mayBeDue>, boolean>(
        (running, withinS) => mayBeDue(frozen(running), withinS),
        () => true,
        check.truth('mayBeDue'),
      ),
    }),
  };
}

/** With `considered`, read when it is asked for, because it may be built then. */
const withDetails = (offers: ReadOffers, guard: Guard): ReadonlyMap<GroupId, GroupOffers> =>
  new Map(
    [...offers].map(([id, { offers: list, excluded, of }]): [GroupId, GroupOffers] => [
      id,
      {
        offers: list,
        excluded,
        get considered() {
          return guard.answer(() => of.considered, readConsidered)?.is ?? [];
        },
      },
    ]),
  );
