/** Reads of offers, and of starts on them, from users' policies. Each throws `Unusable` (read.ts). */
import { seconds, usdPerHour } from '../../kernel/units.ts';
import type { GroupId, PoolId } from '../../kernel/ids.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { ConsideredOffer, StartOption } from '../../domain/plan.ts';
import { wrongBid, type Bid, type PoolView } from '../../domain/pool.ts';
import { fits } from '../../domain/resources.ts';
import type { PendingGroup, Snapshot } from '../../domain/snapshot.ts';
import { slowdownKey } from '../../domain/slowdown.ts';
import type { GroupOffers } from '../contracts.ts';
import { byGroup } from './records.ts';
import { amount, chance, fields, figure, instant, list, refuse, shown, text, whole } from './read.ts';

/** Most offers of one group; the setting `offersPerGroup` is at most 64. */
const MOST_OFFERS = 1000;
/** Most offers in an explanation of one group: all bids of all pools. */
const MOST_CONSIDERED = 100_000;

export type Pools = ReadonlyMap<PoolId, PoolView>;

export const poolsById = ({ pools }: Pick<Snapshot, 'pools'>): Pools =>
  new Map(pools.map((view) => [view.pool.id, view]));

export const poolNamed = (id: unknown, pools: Pools): PoolView =>
  pools.get(id as PoolId) ?? refuse(`the pool ${shown(id)} does not exist`);

/** A bid that buys in the pool now. */
export function bidIn(view: PoolView, given: unknown, what: string): Bid {
  const why = wrongBid(given as Bid, view);
  return why === null ? (given as Bid) : refuse(`${what} has the bid ${shown(given)}: ${why}`);
}

/** Why a group may not run in a pool: its own constraints, or its size. */
export function whyNotIn({ pool }: PoolView, { id, stage, need }: PendingGroup): string | null {
  const broken = brokenConstraint(stage.constraints, pool);
  if (broken !== null) return `${id} may not run in ${pool.id}: its constraint ${broken} excludes that`;
  return fits(need, pool.type.capacity) ? null : `${id} does not fit on an instance of ${pool.id}`;
}

export function readOffer(given: unknown, group: PendingGroup, pools: Pools): Offer {
  const of = fields(given, `an offer to ${group.id}`);
  const view = poolNamed(of['pool'], pools);
  const { id: pool } = view.pool;
  const why = whyNotIn(view, group);
  if (why !== null) return refuse(why);
  const at = `the offer of ${pool} to ${group.id}`;
  if (of['group'] !== group.id) return refuse(`${at} names the group ${shown(of['group'])}`);
  const amountOf = (name: keyof Offer): number => amount(of[name], `${name} of ${at}`);
  const shareOf = (name: keyof Offer): number => {
    const is = amountOf(name);
    return is > 0 ? is : refuse(`${name} of ${at} is 0`);
  };
  const { opens, preferenceUsd } = of;
  return {
    group: group.id,
    pool,
    bid: bidIn(view, of['bid'], at),
    priceUsdPerHour: usdPerHour(amountOf('priceUsdPerHour')),
    share: shareOf('share'),
    roomShare: shareOf('roomShare'),
    newShare: shareOf('newShare'),
    startDelayS: seconds(amountOf('startDelayS')),
    pInterrupted: chance(of['pInterrupted'], `pInterrupted of ${at}`),
    pLate: chance(of['pLate'], `pLate of ${at}`),
    expectedLostS: seconds(amountOf('expectedLostS')),
    expectedDurationS: seconds(amountOf('expectedDurationS')),
    expectedCostUsd: figure(of['expectedCostUsd'], `expectedCostUsd of ${at}`),
    ...slowdownKey(group.stage.preferences, view.pool),
    ...(opens !== undefined && { opens: opening(opens, at) }),
    ...(preferenceUsd !== undefined && { preferenceUsd: figure(preferenceUsd, `preferenceUsd of ${at}`) }),
  };
}

function opening(given: unknown, at: string): NonNullable<Offer['opens']> {
  const { atMs, p } = fields(given, `opens of ${at}`);
  return { atMs: instant(atMs, `opens.atMs of ${at}`), p: chance(p, `opens.p of ${at}`) };
}

export const readOffers = (given: unknown, group: PendingGroup, pools: Pools): readonly Offer[] =>
  list(given, { what: `the list of offers to ${group.id}`, most: MOST_OFFERS }).map((o) => readOffer(o, group, pools));

/** All but `considered`, which may be built on first use. */
export function readGroupOffers(
  given: unknown,
  group: PendingGroup,
  pools: Pools,
): Pick<GroupOffers, 'offers' | 'excluded'> {
  const of = fields(given, `what is offered to ${group.id}`);
  const what = `excluded of ${group.id}`;
  return {
    offers: readOffers(of['offers'], group, pools),
    excluded: list(of['excluded'], { what, most: MOST_OFFERS }).map((one) => {
      const { constraint, pools: count } = fields(one, what);
      return { constraint: text(constraint, `a constraint of ${what}`), pools: whole(count, `pools of ${what}`) };
    }),
  };
}

/** For explanations alone: pools may have left the market since. */
export const readConsidered = (given: unknown): GroupOffers['considered'] =>
  list(given, { what: 'what was considered', most: MOST_CONSIDERED }).map((one): ConsideredOffer => {
    const of = fields(one, 'an offer that was considered');
    const { bid } = of;
    const at = 'an offer that was considered';
    return {
      pool: text(of['pool'], `pool of ${at}`) as PoolId,
      bid: bid === 'uncapped' ? bid : usdPerHour(amount(bid, `bid of ${at}`)),
      priceUsdPerHour: amount(of['priceUsdPerHour'], `priceUsdPerHour of ${at}`),
      pInterrupted: chance(of['pInterrupted'], `pInterrupted of ${at}`),
      pLate: chance(of['pLate'], `pLate of ${at}`),
      expectedCostUsd: figure(of['expectedCostUsd'], `expectedCostUsd of ${at}`),
      verdict: text(of['verdict'], `verdict of ${at}`),
    };
  });

/** Records that the policy was given: handed back, they are taken as they are, because others know them by identity. */
export interface Given {
  readonly pools: Pools;
  readonly offers?: ReadonlyMap<PendingGroup['id'], GroupOffers>;
  readonly options?: ReadonlySet<unknown>;
}

export function readOption(given: unknown, group: PendingGroup, { pools, offers, options }: Given): StartOption {
  const of = fields(given, `an option of ${group.id}`);
  const { offer } = of;
  const known = offers?.get(group.id)?.offers.find((o) => o === offer);
  if (options?.has(given) === true && of['group'] === group.id) return given as StartOption;
  const at = `a start of ${group.id}`;
  if (of['group'] !== group.id) return refuse(`${at} names the group ${shown(of['group'])}`);
  return {
    group: group.id,
    offer: known ?? readOffer(offer, group, pools),
    slot: whole(of['slot'], `slot of ${at}`),
    startMs: instant(of['startMs'], `startMs of ${at}`),
    worthUsd: figure(of['worthUsd'], `worthUsd of ${at}`),
    costUsd: figure(of['costUsd'], `costUsd of ${at}`),
  };
}

/** Offers by group, `considered` unread. */
export type ReadOffers = ReadonlyMap<GroupId, Pick<GroupOffers, 'offers' | 'excluded'> & { readonly of: GroupOffers }>;

export function offersByGroup(answer: unknown, groups: ReadonlyMap<GroupId, PendingGroup>, pools: Pools): ReadOffers {
  return byGroup(answer, groups, {
    what: 'the map of offers by group',
    read: (of, group) => ({ ...readGroupOffers(of, group, pools), of: of as GroupOffers }),
  });
}
