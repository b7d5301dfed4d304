import { processParts, type Parts } from './compose.ts';
import { noticeOf, type FleetEvent } from '../fleet/event-notices.ts';
import { sweep, type SweepParts } from '../fleet/sweep.ts';
import type { Observation } from '../../../domain/observation.ts';
import { raw } from '../../../kernel/units.ts';
import { refreshListPrices } from '../market/fetch-on-demand-prices.ts';
import type { FetchedPrices, Observed, Observing } from './observing.ts';
import { PriceBook } from '../market/price-book.ts';
import { fetchPrices } from '../market/prices.ts';
import { refreshReservations } from '../market/reservations.ts';
import { struckAt } from '../cycle/strike.ts';

/** Times the longest start-up that is planned for, after which an instance is taken to never come up. */
const START_PATIENCE = 5;

export function composeObserving(): Observing {
  const of = processParts();
  const { EBB_CONFIG: config } = of.environment;
  return {
    observe: (events) => observeEvents(of.fleet(), events),
    sweep: (struckMs) => sweep(sweepParts(of, struckMs, config.settings.startDelayMaxS * START_PATIENCE)),
    fetchPrices: (asked) => pricesWhenDue(of, asked),
    wake: () => of.wake().wake(),
  };
}

/** With nothing to do, prices as old as this are good enough: spot prices change some times a day. */
const IDLE_PRICES_MS = 50 * 60_000;

async function pricesWhenDue(of: Parts, asked: Parameters<Observing['fetchPrices']>[0]): Promise<FetchedPrices | null> {
  const isDeploying = asked === 'deploying';
  const now = isDeploying ? of.clock.now() : struckAt(asked.struckMs, of.environment.EBB_CLOCK);
  const feed = of.feed();
  if (!isDeploying) {
    const [{ checkedMs }, isIdle] = await Promise.all([new PriceBook(feed.table).read(), of.wake().isIdle()]);
    if (isIdle && checkedMs !== null && Math.abs(raw(now) - checkedMs) < IDLE_PRICES_MS) return null;
  }
  const changes = await fetchPrices(feed, now);
  const onDemand = await refreshListPrices(of.priceList(), now);
  const reserved = await refreshReservations(of.reservations(), now);
  const pools = isDeploying ? (await of.market().prices()).trace.pools.length : null;
  return { changes, onDemand, reserved, pools };
}

/**
 * What comes about as it was decided, and lets nothing begin: it is shown with the next cycle, a cycle's period
 * (`cyclePeriodS`) later at most. An instance that is ready is no such thing: tasks start on it with the next cycle.
 */
const FORESEEN: ReadonlySet<Observation['kind']> = new Set([
  'instance-launched',
  'attempt-started',
  'attempt-checkpointed',
]);

/** Takes in events, those of one instance together. */
export async function observeEvents(
  { watch, inbox }: Pick<ReturnType<Parts['fleet']>, 'watch' | 'inbox'>,
  events: readonly FleetEvent[],
): Promise<Observed> {
  const told = events.flatMap((event, at) => {
    const notice = noticeOf(event);
    return notice === null ? [] : [{ at, notice }];
  });
  let isNews = false;
  let isDue = false;
  const stop = inbox.onNews((news) => {
    isNews = true;
    isDue ||= news.some((o) => !FORESEEN.has(o.kind));
  });
  try {
    const failed = await watch.notices(told.map((t) => t.notice));
    return {
      isNews,
      isDue,
      failed: new Map([...failed].flatMap(([n, error]) => told.slice(n, n + 1).map((t) => [t.at, error]))),
    };
  } finally {
    stop();
  }
}

function sweepParts(of: Parts, struckMs: number, startPatienceS: number): SweepParts {
  const { inbox, ec2, ecs, hosts, watch } = of.fleet();
  return {
    inbox,
    ec2,
    ecs,
    hosts,
    watch,
    store: of.store(),
    now: struckAt(struckMs, of.environment.EBB_CLOCK),
    startPatienceS,
  };
}
