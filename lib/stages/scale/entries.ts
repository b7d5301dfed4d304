/** Leftovers that the scaler need not tell apart, and how much of them still needs room. */
import { isUrgent } from '../../domain/job.ts';
import { compareText } from '../../kernel/compare.ts';
import { invariant } from '../../kernel/errors.ts';
import { descending, raw } from '../../kernel/units.ts';
import { capUsd, type Pool } from '../../domain/pool.ts';
import { vector } from '../../domain/resources.ts';
import type { AcquireInput, FurtherOffers, Leftover } from '../../policy/contracts.ts';
import { effectiveUsdPerHour, eligibleOffers, furtherOffers, type EligibleOffer } from './eligible.ts';
import type { Footprint } from './footprint.ts';

/** An offer with the price of useful work there, for the whole instance. */
export interface PricedOffer extends EligibleOffer {
  readonly usdPerHour: number;
}

/** Tasks with equal need, running time and offers, of any jobs. */
export class Entry {
  readonly need: readonly number[];
  readonly runtimeS: number;
  readonly isUrgent: boolean;
  readonly #input: AcquireInput;
  readonly #pools: ReadonlyMap<string, Pool>;
  readonly #members: readonly Leftover[];
  /** Ascending by pool and bid. */
  #offers: readonly PricedOffer[];
  readonly #added = new Set<keyof FurtherOffers>();
  #left: number;
  #at = 0;
  #ofMember = 0;

  constructor(
    members: readonly Leftover[],
    offers: readonly PricedOffer[],
    of: { readonly input: AcquireInput; readonly pools: ReadonlyMap<string, Pool> },
  ) {
    const first = invariant(members[0], 'an entry has a member');
    this.need = vector(first.group.need);
    this.runtimeS = raw(first.runtimeS);
    this.isUrgent = isUrgent(first.group.class);
    this.#members = members;
    this.#offers = offers;
    this.#input = of.input;
    this.#pools = of.pools;
    this.#left = members.reduce((n, l) => n + l.count, 0);
  }

  /** Tasks without room. */
  get left(): number {
    return this.#left;
  }

  get offers(): readonly PricedOffer[] {
    return this.#offers;
  }

  /** The leftover that gets room next. */
  get next(): Leftover {
    return invariant(this.#members[Math.min(this.#at, this.#members.length - 1)], 'an entry has a member');
  }

  /** Leftovers with tasks without room. */
  short(): readonly Leftover[] {
    return this.#left === 0 ? [] : this.#members.slice(this.#at);
  }

  /** Adds further offers. False: there are no others. */
  widen(which: keyof FurtherOffers): boolean {
    if (this.#added.has(which)) return false;
    this.#added.add(which);
    const known = new Set(this.#offers.map(nameOf));
    const of = { input: this.#input, pools: this.#pools };
    const others = furtherOffers(which, this.next, of).filter((o) => !known.has(nameOf(o)));
    if (others.length === 0) return false;
    this.#offers = [...this.#offers, ...priced(others, this.next, this.#input)].sort(byPoolAndBid);
    return true;
  }

  /** Gives room in a pool to tasks. */
  give(tasks: number, pool: Pool, footprint: Footprint): void {
    this.#left -= tasks;
    for (let left = tasks; left > 0;) {
      const { group, count } = this.next;
      const given = Math.min(left, count - this.#ofMember);
      footprint.give(group.job, pool, ((this.need[0] ?? 0) / 1000) * given);
      left -= given;
      this.#ofMember += given;
      if (this.#ofMember < count) return;
      this.#at++;
      this.#ofMember = 0;
    }
  }
}

/** Entries, the longest first, then by name: the order of the leftovers does not matter. O(leftovers x offers). */
export function entriesOf(
  leftovers: readonly Leftover[],
  input: AcquireInput,
  pools: ReadonlyMap<string, Pool>,
): readonly Entry[] {
  const sorted = leftovers
    .filter((l) => l.count > 0)
    .toSorted((a, b) => descending(a.runtimeS, b.runtimeS) || compareText(keyOf(a), keyOf(b)));
  const alike = new Map<string, { members: Leftover[]; offers: readonly PricedOffer[] }>();
  for (const leftover of sorted) {
    const offers = priced(eligibleOffers(leftover, input, pools), leftover, input).sort(byPoolAndBid);
    const key = alikeKey(leftover, offers);
    const known = alike.get(key);
    if (known === undefined) alike.set(key, { members: [leftover], offers });
    else known.members.push(leftover);
  }
  return [...alike.values()].map(({ members, offers }) => new Entry(members, offers, { input, pools }));
}

const priced = (offers: readonly EligibleOffer[], leftover: Leftover, { config }: AcquireInput): PricedOffer[] =>
  offers.map((o) => ({ ...o, usdPerHour: effectiveUsdPerHour(o.offer, leftover, config) }));

/** Gangs stay alone: each is bought whole or not at all. */
function alikeKey(leftover: Leftover, offers: readonly PricedOffer[]): string {
  const { group, runtimeS } = leftover;
  if (group.stage.gang) return keyOf(leftover);
  const where = offers.map((o) => `${nameOf(o)} ${o.usdPerHour.toPrecision(6)} ${o.offer.pLate.toPrecision(2)}`).join();
  return `${vector(group.need).join()} ${raw(runtimeS)} ${group.class} ${where}`;
}

const keyOf = ({ group, option: { offer } }: Leftover): string => `${group.id} ${offer.pool} ${capUsd(offer.bid)}`;
const nameOf = ({ pool, offer }: EligibleOffer): string => `${pool.id} ${capUsd(offer.bid)}`;
const byPoolAndBid = (a: EligibleOffer, b: EligibleOffer): number =>
  compareText(a.pool.id, b.pool.id) || capUsd(a.offer.bid) - capUsd(b.offer.bid) || 0;
