/**
 * A user's policy behind a guard. An answer that throws or is unusable (answers.ts) is refused under the policy's name,
 * and its stand-in, a shipped policy of the same stage, answers instead. The guard does not judge decisions and
 * improves none.
 */
import type { GroupId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { StageForecasts, StageKey } from '../../domain/forecasts.ts';
import type { Pool } from '../../domain/pool.ts';
import type { StageName } from '../../domain/preset-spec.ts';
import type { Asks } from '../asks.ts';
import type { Allotment, GroupOffers, MovePolicy, PlanPolicy, Worths } from '../contracts.ts';
import type { Contract } from '../policy.ts';
import type { Solver } from '../solver.ts';
import * as check from './answers.ts';
import type { Refusals } from './refusals.ts';

/** A policy of one stage, by name. */
export interface Named<Stage extends StageName> {
  readonly policy: string;
  readonly contract: Contract<Stage>;
}

/** Null for a usable answer; else the fault in it. */
type Check<Asked extends readonly unknown[], Answer> = (answer: Answer, ...asked: Asked) => string | null;

class Guard {
  readonly #refuse: (why: string) => void;

  constructor(refuse: (why: string) => void) {
    this.#refuse = refuse;
  }

  /** The answer, or null where it is refused. */
  answer<Answer>(make: () => Answer, fault: (answer: Answer) => string | null): { readonly is: Answer } | null {
    let answer: Answer;
    try {
      answer = make();
    } catch (error) {
      this.refuseThrown(error);
      return null;
    }
    return this.checked(answer, fault);
  }

  /** A check that throws met an answer of another form than the contract's. */
  checked<Answer>(answer: Answer, fault: (answer: Answer) => string | null): { readonly is: Answer } | null {
    let why: string | null;
    try {
      why = fault(answer);
    } catch (error) {
      why = `the answer has not the form of the contract: ${thrownLine(error)}`;
    }
    if (why === null) return { is: answer };
    this.#refuse(why);
    return null;
  }

  refuseThrown(error: unknown): void {
    this.#refuse(`it threw: ${thrownLine(error)}`);
  }

  /** Each call is answered by `own`, or where that is refused by `standIn`. */
  call<Asked extends readonly unknown[], Answer>(
    own: (...asked: Asked) => Answer,
    standIn: (...asked: Asked) => Answer,
    fault: Check<Asked, Answer>,
  ): (...asked: Asked) => Answer {
    return (...asked) => {
      const made = this.answer(
        () => own(...(asked.map(readOnly) as unknown as Asked)),
        (answer) => fault(answer, ...asked),
      );
      return made === null ? standIn(...asked) : made.is;
    };
  }
}

/** One line, fit for lists. */
export const thrownLine = (error: unknown): string =>
  (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).replace(/\s+/g, ' ').slice(0, 300);

/** Frozen copies of a policy's input lists: sorting one in place would disturb other stages. */
function readOnly(given: unknown): unknown {
  if (Array.isArray(given)) return Object.freeze([...(given as readonly unknown[])]);
  if (typeof given !== 'object' || given === null || Object.getPrototypeOf(given) !== Object.prototype) return given;
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [
      key,
      Array.isArray(value) ? Object.freeze([...(value as readonly unknown[])]) : (value as unknown),
    ]),
  );
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
    if (made === null) return standIn(context);
    return new Map([...made.is].map(([id, of]): [GroupId, GroupOffers] => [id, withSafeDetails(of, guard)]));
  },
  move: (own, standIn, guard): MovePolicy => ({
    propose: guard.call((c) => own.propose(c), standIn.propose, check.movesProposed),
    begin: guard.call((i) => own.begin(i), standIn.begin, check.movesBegun),
    returning: guard.call((c) => own.returning(c), standIn.returning, check.returning),
    vacate: guard.call((i) => own.vacate(i), standIn.vacate, check.vacated),
  }),
  plan: guardedPlan,
  order: (own, standIn, guard) => guard.call(own, standIn, check.order),
  place: (own, standIn, guard) => guard.call(own, standIn, check.place),
  queue: (own, standIn, guard) => guard.call(own, standIn, check.queue),
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
export function guardedAsks(asks: Asks, refuse: (why: string) => void): Asks {
  const { bids } = asks;
  if (bids === undefined) return asks;
  const guard = new Guard(refuse);
  return { ...asks, bids: guard.call(bids, () => [], check.bids) };
}

/** Where the question fails, the policy may buy. */
export const guardedBuys = (buys: (pool: Pool) => boolean, refuse: (why: string) => void): ((pool: Pool) => boolean) =>
  new Guard(refuse).call(buys, () => true, check.buys);

function guardedPlan(own: PlanPolicy<Solver>, standIn: PlanPolicy<Solver>, guard: Guard): PlanPolicy<Solver> {
  return async (input, solver) => {
    let allotment: Allotment;
    try {
      allotment = await own(input, solver);
    } catch (error) {
      guard.refuseThrown(error);
      return standIn(input, solver);
    }
    return guard.checked(allotment, (answer) => check.plan(answer, input))?.is ?? standIn(input, solver);
  };
}

/** Forecasts are made when they are asked for, so each is checked then. */
function checkedForecasts(own: StageForecasts, stood: () => StageForecasts, guard: Guard): StageForecasts {
  const get = (key: StageKey): RuntimeForecast | undefined => {
    const made = guard.answer(
      () => own.get(key),
      (forecast) => (forecast === undefined && stood().get(key) === undefined ? null : check.runtime(forecast, key)),
    );
    return made === null ? stood().get(key) : made.is;
  };
  return {
    get,
    *[Symbol.iterator]() {
      for (const [key, other] of stood()) yield [key, get(key) ?? other];
    },
  };
}

function checkedWorths(own: Worths, stood: () => Worths, guard: Guard): Worths {
  const { groups, mayBeDue } = own;
  return {
    groups,
    ofRunning: guard.call(
      (running) => own.ofRunning(running),
      (running) => stood().ofRunning(running),
      (worth) => (worth === undefined ? null : check.worth(worth)),
    ),
    ...(mayBeDue && {
      mayBeDue: guard.call<Parameters<typeof mayBeDue>, boolean>(
        (running, withinS) => own.mayBeDue?.(running, withinS) ?? true,
        () => true,
        (is) => (typeof is === 'boolean' ? null : 'mayBeDue answers neither true nor false'),
      ),
    }),
  };
}

/** Guards `considered` too, because it may be built on first use. */
const withSafeDetails = (of: GroupOffers, guard: Guard): GroupOffers => ({
  offers: of.offers,
  excluded: of.excluded,
  get considered() {
    const made = guard.answer(() => of.considered, check.considered);
    return made === null ? [] : made.is;
  },
});
