/**
 * Asks the function that has the model, in a process of its own, for the reason that ask-model.ts has.
 * `node test/support/ask-function.ts < FunctionQuestions` prints a FunctionAnswer for each.
 */
import { readFileSync } from 'node:fs';
import { handler } from '../../lambdas/forecast/handler.ts';
import { Carrier } from '../../lib/drivers/aws/cycle/blobs.ts';
import { provideDeployment, type Deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import type { PlainForecasts } from '../../lib/drivers/aws/cycle/plain-forecasts.ts';
import { Blobs } from '../../lib/drivers/aws/store/blobs.ts';
import { DynamoStore } from '../../lib/drivers/aws/store/dynamo-store.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import type { ForecastOrigin } from '../../lib/domain/forecast.ts';
import type { PoolView } from '../../lib/domain/pool.ts';
import { plus, raw, seconds, type EpochMs } from '../../lib/kernel/units.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { WARM_UP_MS } from '../../lib/market/features/price-window.ts';
import type { ForecastTable } from '../../lib/market/forecast/forecast-data.ts';
import type { Market } from '../../lib/ports/market.ts';
import { ObjectsDouble } from '../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../doubles/dynamodb/table.ts';
import { invoke } from '../unit/drivers/aws/lambda.ts';
import { smallMarket } from './generated-market.ts';

export interface FunctionQuestions {
  /** Folder of models. */
  readonly models: string;
  /** A decision of a cycle that looked then, or the API's question then, s from the beginning. */
  readonly asked: readonly { readonly by: 'decision' | 'question'; readonly atS: number }[];
}

export interface FunctionAnswer {
  readonly version: string | null;
  readonly refused: string | null;
  /** Pools of which all was read that features look at: more than anything else that a forecast reads of one. */
  readonly weeksRead: number;
}

const { trace, startMs } = smallMarket(1);
const objects = new ObjectsDouble();
const carrier = new Carrier(new Blobs({ client: objects.client(), bucket: 'bucket' }), 'test');
const dynamodb = new DynamoDouble().client();
const store = new DynamoStore({ dynamodb, s3: objects.client(), table: 'table', bucket: 'bucket' });
let now = startMs;
let weeksRead = 0;
const replayed = replayMarket(trace, () => now);
const market: Market = {
  pools: () => replayed.pools(),
  quote: (...of) => replayed.quote(...of),
  completeUntil: () => now,
  history: (pool, from, to) => {
    if (raw(to) - raw(from) > WARM_UP_MS) weeksRead += 1;
    return replayed.history(pool, from, to);
  },
};

async function decided(nowMs: EpochMs): Promise<ForecastOrigin | undefined> {
  const pools = market.pools().map((pool): PoolView => {
    return { pool, quote: market.quote(pool.id, nowMs), open: true, closedReason: null };
  });
  const snapshot = { nowMs, pools, instances: new Map(), jobs: new Map([['j-1', {}]]) };
  const observation = await carrier.put({ snapshot, draining: false }, 'observation');
  const answer = await invoke<{ market: string }>(handler, { execution: 'c-1', round: 0, observation });
  return (await carrier.get<ForecastTable>(answer.market)).origin;
}

async function answered(): Promise<ForecastOrigin | null> {
  return (await invoke<PlainForecasts>(handler, { pools: market.pools().map((p) => p.id) })).origin;
}

const { models, asked } = JSON.parse(readFileSync(0, 'utf8')) as FunctionQuestions;
provideDeployment({
  store,
  clock: { now: () => now },
  config: schedulerConfig.parse({ forecast: 'model' }),
  carrier,
  models,
  market: async () => ({ market, checkedMs: null }),
} as unknown as Deployment);
const answers: FunctionAnswer[] = [];
for (const { by, atS } of asked) {
  const atMs = plus(startMs, seconds(atS));
  if (raw(atMs) > raw(now)) now = atMs;
  weeksRead = 0;
  const { version = null, refused = null } = (await (by === 'decision' ? decided(atMs) : answered())) ?? {};
  answers.push({ version, refused, weeksRead });
}
// Metrics are on standard output, too.
process.stdout.write(`\n${JSON.stringify(answers)}`);
