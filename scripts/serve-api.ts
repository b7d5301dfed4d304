/**
 * API server on a SQLite database without an engine: jobs are stored and nothing runs. For the intake benchmark and the
 * fuzzer. Prints one line of JSON with its address. Ends on SIGTERM with its number of answers per status.
 *
 *   node scripts/serve-api.ts --dir FOLDER
 */
import { join } from 'node:path';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { VirtualClock } from '../lib/kernel/clock.ts';
import { EbbError } from '../lib/kernel/errors.ts';
import { randomStream } from '../lib/kernel/random.ts';
import { epochMs, raw, usd } from '../lib/kernel/units.ts';
import { provideBackend } from '../lib/api/provided-backend.ts';
import { dispatcher } from '../lib/api/dispatch.ts';
import { brokenConstraint } from '../lib/domain/constraints.ts';
import type { Admission, JobSpec } from '../lib/domain/job.ts';
import type { Pool } from '../lib/domain/pool.ts';
import { fits } from '../lib/domain/resources.ts';
import { serveApi } from '../lib/api/server/server.ts';
import { replayMarket } from '../lib/drivers/local/market/replay.ts';
import { SqliteStore } from '../lib/drivers/local/store/sqlite-store.ts';
import { wallTime } from '../lib/drivers/wall.ts';
import { builtInCatalogue } from '../lib/market/catalogue.ts';
import { traceOf } from '../lib/market/price-steps.ts';
import { handler as api } from '../lambdas/api/handler.ts';
import { handler as intake } from '../lambdas/intake/handler.ts';
import { counted } from './counted-answers.ts';

const { values } = parseArgs({ options: { dir: { type: 'string' } } });
if (values.dir === undefined) throw new EbbError('usage', { what: '--dir is missing', next: 'Name an empty folder.' });

const store = new SqliteStore({ path: join(values.dir, 'ebb.db') });
const clock = new VirtualClock(epochMs(wallTime.epochMs()));
const now = raw(clock.now());
const catalogue = builtInCatalogue();
const trace = traceOf(
  { name: 'flat', startMs: epochMs(now - 86_400_000), endMs: epochMs(now + 86_400_000) },
  catalogue.types().flatMap((name) => {
    const entry = catalogue.entry(name, clock.now());
    if (entry === null) return [];
    const onDemand = raw(entry.onDemandUsdPerHour);
    return {
      type: entry.type,
      zone: 'local-1a',
      onDemandUsdPerHour: onDemand,
      prices: { atMs: Float64Array.of(now - 86_400_000), usdPerHour: Float64Array.of(onDemand * 0.3) },
      availability: null,
    };
  }),
);

/** As in the engine: a job that no pool can hold is refused at once. */
function admit(spec: JobSpec, pools: readonly Pool[]): Admission {
  for (const stage of spec.stages) {
    const one = pools.some(
      (p) => fits(stage.resources, p.type.capacity) && brokenConstraint(stage.constraints, p) === null,
    );
    if (!one)
      throw new EbbError('job.unplaceable', { what: `no pool fits stage ${stage.name}`, next: 'Ask for less.' });
  }
  return { feasible: true, notes: [] };
}

provideBackend({
  store,
  clock,
  random: randomStream(Math.trunc(now) | 0, 'ids'),
  market: replayMarket(trace, () => clock.now()),
  fleet: {
    logs: async () => ({ text: '', nextOffset: 0, totalBytes: 0 }),
    bill: async () => ({ totalUsd: usd(0), pieces: [] }),
  },
  limits: { vcpus: 64 },
  admit: async (spec) => admit(spec, trace.pools),
  forecast: async () => ({ origin: null, pools: [] }),
  wake: () => undefined,
  health: async () => ({
    status: 'degraded',
    detail: 'this server has no engine',
    version: '0',
    engineStartedMs: now,
    lastCycleMs: null,
    market: { name: trace.name, fromMs: raw(trace.startMs), toMs: raw(trace.endMs), speed: 1 },
    preset: 'none',
    disk: null,
  }),
});

const { dispatch, answers } = counted(dispatcher({ intake, api }));

const server = await serveApi({ dispatch, port: 0 });
console.log(JSON.stringify({ url: server.url }));
await once(process, 'SIGTERM');
await server.close();
await store.close();
console.log(JSON.stringify({ answers }));
