import type { ForecastList, PlanView, PoolForecastView } from '../../api/schemas.ts';
import { duration, percent, plural, rate } from '../format.ts';
import type { Output } from '../output.ts';
import { table, text } from './text-table.ts';

/** Columns by horizon, seconds, and their rank when columns are left out. */
const SHOWN = [
  ['5 MIN', 300, 2],
  ['15 MIN', 900, 6],
  ['1 H', 3600, null],
  ['3 H', 10_800, 5],
  ['6 H', 21_600, 4],
  ['24 H', 86_400, null],
] as const;
const LEVELS = ' ▁▂▃▄▅▆▇█';
/** Points of the drawn curve, an hour apart. */
const DRAWN_HOURS = 24;

interface Row {
  readonly pool: string;
  readonly price: string;
  readonly bid: PoolForecastView['bids'][number];
}

/** P(kept) by pool and bid: a curve over a day, and its values at some horizons. */
export function forecastsTable(output: Pick<Output, 'colors' | 'columns'>, items: ForecastList['items']): string {
  const rows = items.flatMap(({ pool, priceUsdPerHour, bids }) =>
    bids.map((bid, i): Row => ({ pool: i === 0 ? pool : '', price: i === 0 ? rate(priceUsdPerHour) : '', bid })),
  );
  return table(
    output,
    [
      { title: 'POOL', cell: (r) => r.pool, wrap: 22 },
      { title: 'PRICE', cell: (r) => r.price, right: true, optional: 7 },
      { title: 'BID', cell: (r) => (r.bid.bid === 'uncapped' ? 'uncapped' : rate(r.bid.bid)), right: true },
      { title: 'KEPT, 1 TO 24 H', cell: (r) => drawn(r.bid), optional: 3 },
      ...SHOWN.map(([title, s, optional]) => ({
        title,
        cell: (r: Row): string => percent(1 - lostWithin(r.bid, s)),
        right: true,
        ...(optional === null ? {} : { optional }),
      })),
      { title: 'PASSED', cell: (r) => passedText(r.bid.drivers), right: true, optional: 8 },
    ],
    rows,
    'no spot pool matches',
  );
}

const drawn = (bid: Row['bid']): string =>
  Array.from({ length: DRAWN_HOURS }, (_, h) => {
    const kept = 1 - lostWithin(bid, 3600 * (h + 1));
    return LEVELS[Math.round(kept * (LEVELS.length - 1))] ?? '';
  }).join('');

/** Linear between horizons and from 0; the last value after them. */
function lostWithin({ horizonS, pInterrupted }: Row['bid'], s: number): number {
  const to = horizonS.findIndex((h) => h >= s);
  if (to < 0) return pInterrupted.at(-1) ?? 0;
  const [fromS, fromP] = to === 0 ? [0, 0] : [horizonS[to - 1] ?? 0, pInterrupted[to - 1] ?? 0];
  const [toS, toP] = [horizonS[to] ?? 1, pInterrupted[to] ?? 0];
  return fromP + ((toP - fromP) * (s - fromS)) / (toS - fromS);
}

function passedText(drivers: Row['bid']['drivers']): string {
  if (drivers === null) return '-';
  if (drivers.lastAboveS === null) return `not in ${duration(drivers.knownS)}`;
  return drivers.lastAboveS === 0 ? 'now' : `${duration(drivers.lastAboveS)} ago`;
}

/** Source of the forecast, and the part that history or observed interruptions replaced. */
export function originText(origin: PlanView['forecast']): string {
  if (origin === null) return 'forecast from history';
  const { capacity } = origin;
  return capacity === undefined ? priceOrigin(origin) : `${priceOrigin(origin)}; ${capacityOrigin(capacity)}`;
}

type Origin = NonNullable<PlanView['forecast']>;

function priceOrigin({ chosen, refused, version, byHistory }: Origin): string {
  if (refused !== null) return `forecast from history, for ${chosen} cannot be asked: ${text(refused)}`;
  if (version === null && byHistory.length === 0) return 'forecast from history';
  const instead = byHistory.map(({ why, bids }) => `${plural(bids, 'bid')} from history: ${text(why)}`);
  return [version === null ? `${chosen} answered nothing` : `prices by the model ${version}`, ...instead].join('; ');
}

function capacityOrigin({ chosen, refused, version, byObserved }: NonNullable<Origin['capacity']>): string {
  if (refused !== null) return `capacity from observed interruptions, for ${chosen} cannot be asked: ${text(refused)}`;
  const instead = byObserved.map(
    ({ why, pools }) => `${plural(pools, 'pool')} from observed interruptions: ${text(why)}`,
  );
  return [version === null ? `${chosen} answered of no pool` : `capacity by the model ${version}`, ...instead].join(
    '; ',
  );
}
