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
import { tickAt } from '../cycle/tick.ts';

/** Multiple of the longest planned start-up after which an instance is taken to never come up. */
const START_PATIENCE = 5;

export function composeObserving(): Observing {
  const of = processParts();
  const { EBB_CONFIG: config } = of.environment;
  return {
    observe: (events) => observeEvents(of.fleet(), events, of.serviceWake() !== null),
    sweep: (tickMs) => sweep(sweepParts(of, tickMs, config.settings.startDelayMaxS * START_PATIENCE)),
    fetchPrices: (asked) => pricesWhenDue(of, asked),
    wake: () => of.wake().wake(),
  };
}

/** Greatest age of prices with nothing to do, ms. Spot prices change a few times a day. */
const IDLE_PRICES_MS = 50 * 60_000;

async function pricesWhenDue(of: Parts, asked: Parameters<Observing['fetchPrices']>[0]): Promise<FetchedPrices | null> {
  const isDeploying = asked === 'deploying';
  const now = isDeploying ? of.clock.now() : tickAt(asked.tickMs, of.environment.EBB_CLOCK);
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
 * Kinds of observations that were expected and start nothing. The next cycle shows them, at most `cyclePeriodS` later.
 * A ready instance is none of them: the next cycle starts tasks on it.
 */
const FORESEEN: ReadonlySet<Observation['kind']> = new Set([
  'instance-launched',
  'attempt-started',
  'attempt-checkpointed',
]);
/** The same where there are services: a replica that has started is to get requests. */
const FORESEEN_WITH_SERVICES: ReadonlySet<Observation['kind']> = new Set(['instance-launched', 'attempt-checkpointed']);

/** Applies events; those of one instance together. `hasServices`: the deployment may have replicas. */
export async function observeEvents(
  { watch, inbox }: Pick<ReturnType<Parts['fleet']>, 'watch' | 'inbox'>,
  events: readonly FleetEvent[],
  hasServices = false,
): Promise<Observed> {
  const foreseen = hasServices ? FORESEEN_WITH_SERVICES : FORESEEN;
  const told = events.flatMap((event, at) => {
    const notice = noticeOf(event);
    return notice === null ? [] : [{ at, notice }];
  });
  let isNews = false;
  let isDue = false;
  const stop = inbox.onNews((news) => {
    isNews = true;
    isDue ||= news.some((o) => !foreseen.has(o.kind));
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

function sweepParts(of: Parts, tickMs: number, startPatienceS: number): SweepParts {
  const { inbox, ec2, ecs, hosts, watch } = of.fleet();
  return {
    inbox,
    ec2,
    ecs,
    hosts,
    watch,
    store: of.store(),
    now: tickAt(tickMs, of.environment.EBB_CLOCK),
    startPatienceS,
  };
}
