import { setTimeout as delay } from 'node:timers/promises';
import type { CostReport, EventView, HealthView, InstanceView, JobView, PoolView } from '../api/schemas.ts';
import { all, type Client } from './client.ts';
import type { Output } from './output.ts';
import { routes } from './routes.ts';
import { minusMoney, type Money } from '../api/money.ts';
import { eventLines } from './views/event-lines.ts';
import { progressLine, renderFrame, worthALine, type Frame } from './views/live.ts';

/** Wall time between two frames; nobody reads faster. */
const REFRESH_MS = 500;
/** Wall time between two progress lines without a live display. */
const PROGRESS_MS = 15_000;
const KEPT_EVENTS = 20;

export interface Watching {
  readonly client: Client;
  readonly output: Output;
  /** Ids of the jobs to follow until they are over; null: everything, until `signal` aborts. */
  readonly jobs: readonly string[] | null;
  readonly signal: AbortSignal;
  /** Sequence number after which events are shown. */
  readonly after: number;
  /** Costs before the watched run; absent: none. */
  readonly before?: Money;
  /** Called with the dollars of each refund. */
  readonly onRefund?: (usd: number) => void;
  /** Output of plain lines. */
  readonly line: (text: string) => void;
  /** Called with each event, in place of plain lines. */
  readonly onEvent?: (event: EventView) => void;
}

/** Progress until the jobs are over or the signal aborts: redrawn on a terminal, else one line per event. */
export async function watchJobs(watching: Watching): Promise<void> {
  const { client, output, jobs, signal } = watching;
  const recent: EventView[] = [];
  /** Events not yet printed: those of one refresh interval are sorted first. */
  let waiting: EventView[] = [];
  const names = new JobNaming(client, jobs === null || jobs.length > 1);
  let tasksInAll = 0;
  let refundedUsd = 0;
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const redraw = output.live && watching.onEvent === undefined ? (await import('log-update')).default : null;

  const reader = (async () => {
    for await (const event of client.events(watching.after, both)) {
      if (jobs !== null && event.job !== null && !jobs.includes(event.job)) continue;
      recent.push(event);
      const refund = event.type === 'instance-refunded' ? Number(event.data['usd']) : 0;
      if (refund > 0) {
        refundedUsd += refund;
        watching.onRefund?.(refund);
      }
      if (recent.length > KEPT_EVENTS) recent.shift();
      if (watching.onEvent !== undefined) watching.onEvent(event);
      else {
        await names.learn(event);
        if (redraw === null && worthALine(event, tasksInAll)) waiting.push(event);
      }
    }
  })();
  const print = (): void => {
    const lines = eventLines(waiting, names.known);
    waiting = [];
    for (const line of lines) watching.line(line);
  };

  const painter = (async () => {
    let saidAt = Date.now();
    for (;;) {
      const frame = await takeFrame(client, { jobs, recent, before: watching.before ?? null });
      tasksInAll = frame.jobs.reduce((sum, j) => sum + j.tasks.total, 0);
      redraw?.(output.drawn(renderFrame(output, { ...frame, refundedUsd, names: names.known })));
      print();
      if (redraw === null && watching.onEvent === undefined && Date.now() - saidAt >= PROGRESS_MS) {
        saidAt = Date.now();
        watching.line(progressLine({ ...frame, refundedUsd }));
      }
      if (jobs !== null && frame.jobs.every(isAtItsEnd)) return;
      if (signal.aborted) return;
      await delay(REFRESH_MS, undefined, { signal }).catch(() => undefined);
    }
  })();

  try {
    // The reader settles only with a failure, which is then the result.
    await Promise.race([painter, reader]);
    // One more refresh for the events that ended the job.
    if (!signal.aborted) await delay(REFRESH_MS, undefined, { signal }).catch(() => undefined);
  } finally {
    stop.abort();
    await Promise.allSettled([reader, painter]);
    print();
    redraw?.done();
  }
}

/** True for a job that is over, or held with nothing running: it waits for a person. */
const isAtItsEnd = ({ finishedAt, state, tasks }: JobView): boolean =>
  finishedAt !== null || (state === 'held' && tasks.running === 0);

/** Names of jobs in events, each fetched once; none if one job is watched. */
class JobNaming {
  readonly known = new Map<string, string>();
  readonly #client: Client;
  readonly #needed: boolean;

  constructor(client: Client, needed: boolean) {
    this.#client = client;
    this.#needed = needed;
  }

  async learn({ job }: EventView): Promise<void> {
    if (!this.#needed || job === null || this.known.has(job)) return;
    // A missing name is no failure: a stopping engine may not answer.
    const name = await this.#client.get<JobView>(routes.job(job)).then(
      (view) => view.name,
      () => job,
    );
    this.known.set(job, name);
  }
}

/** All data of one frame, fetched together. */
export async function takeFrame(
  client: Client,
  of: {
    readonly jobs: readonly string[] | null;
    readonly recent: readonly EventView[];
    readonly before: Money | null;
  },
): Promise<Frame> {
  const { jobs, recent, before } = of;
  const ids = jobs ?? (await openJobs(client));
  const [health, instances, costs, ...views] = await Promise.all([
    client.get<HealthView>(routes.health),
    all<InstanceView>(client, routes.instances, { live: true }),
    client.get<CostReport>(routes.costs, { by: 'pool' }),
    ...ids.map((id) => client.get<JobView>(routes.job(id))),
  ]);
  const prices = await pricesOf(client, instances);
  const spent = before === null ? costs.total : minusMoney(costs.total, before);
  return { health, instances, prices, spent, jobs: views, recent };
}

async function openJobs(client: Client): Promise<string[]> {
  const open = await client.get<{ items: { id: string }[] }>(routes.jobs, {
    state: ['running', 'pending', 'held'],
    limit: 50,
  });
  return open.items.map((j) => j.id);
}

/** Prices of pools with instances only: a market has thousands of pools. */
async function pricesOf(client: Client, instances: readonly InstanceView[]): Promise<Map<string, number>> {
  const types = [...new Set(instances.map((i) => i.instanceType))];
  const lists = await Promise.all(types.map((type) => all<PoolView>(client, routes.pools, { type })));
  return new Map(lists.flat().flatMap((p) => (p.priceUsdPerHour === null ? [] : [[p.id, p.priceUsdPerHour]])));
}
