import type { z } from 'zod';
import { minus, raw, rawOrNull, seconds, type EpochMs } from '../kernel/units.ts';
import { isLive } from '../domain/instance.ts';
import type { Pool } from '../domain/pool.ts';
import type { Backend } from '../ports/backend.ts';
import { boundedPage } from './bounded.ts';
import { costOf } from './costs.ts';
import { liveInstances } from '../cycle/state/known-instances.ts';
import { slice } from './cursor.ts';
import type { instancesQuery, poolsQuery } from './requests.ts';
import type { InstanceList, PoolList } from './schemas.ts';
import { instanceView, iso, poolView, type PoolPrices } from './views.ts';

const DAY = seconds(86_400);

export async function listPools(of: Backend, query: z.output<typeof poolsQuery>): Promise<PoolList> {
  const now = of.clock.now();
  const live = Map.groupBy(await liveInstances(of.store), (i) => i.pool);
  const wanted = of.market
    .pools()
    .filter(
      (p) =>
        (query.option === undefined || p.option === query.option) &&
        (query.zone === undefined || p.zone === query.zone) &&
        (query.type === undefined || p.type.name === query.type),
    );
  const page = slice(wanted, query.limit, query.cursor);
  return {
    items: page.items.map((p) => poolView(p, pricesOf(of, p, now), live.get(p.id)?.length ?? 0)),
    next: page.next,
    asOf: iso(now),
  };
}

function pricesOf(of: Backend, pool: Pool, now: EpochMs): PoolPrices {
  const quote = of.market.quote(pool.id, now);
  const day = of.market.history(pool.id, minus(now, DAY), now).usdPerHour;
  let low = quote === null ? Infinity : raw(quote);
  let high = quote === null ? -Infinity : raw(quote);
  for (const price of day) {
    low = Math.min(low, price);
    high = Math.max(high, price);
  }
  const some = low <= high;
  return { now: rawOrNull(quote), low: some ? low : null, high: some ? high : null };
}

export async function listInstances(of: Backend, query: z.output<typeof instancesQuery>): Promise<InstanceList> {
  const now = of.clock.now();
  return boundedPage(query.limit, (limit) => instancesPage(of, { ...query, limit }, now));
}

async function instancesPage(of: Backend, query: z.output<typeof instancesQuery>, now: EpochMs): Promise<InstanceList> {
  const page = await of.store.instances(query.live ?? null, query.limit, query.cursor ?? null);
  const pools = new Map(of.market.pools().map((p) => [p.id, p]));
  const jobs = await of.store.findJobs([
    ...new Set(page.items.flatMap((i) => (i.boughtFor ?? []).map((b): string => b.job))),
  ]);
  const items: InstanceList['items'] = [];
  for (const i of page.items) {
    const running = isLive(i) ? (await of.store.attemptsOn(i.id)).filter((a) => a.state !== 'ended') : [];
    items.push(instanceView(i, { pool: pools.get(i.pool), costUsd: await costOf(of, i, now), running, jobs }));
  }
  return { items, next: page.next, asOf: iso(now) };
}
