import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { handler } from '../../../lambdas/forecast/handler.ts';
import { provideDeployment, type Deployment } from '../../../lib/aws/deployment.ts';
import { readEnvironment } from '../../../lib/aws/environment.ts';
import { forecastsOf } from '../../../lib/aws/forecasts.ts';
import { DynamoStore } from '../../../lib/aws/store/dynamo-store.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { replayMarket } from '../../../lib/local/market-replay.ts';
import { ObjectsDouble } from '../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { lambdaEnvironment } from '../../support/lambda-environment.ts';
import { mixedTrace, START_MS } from '../../support/mixed-workload.ts';
import { invoke } from './lambda.ts';

const NAME = 'ebbtide-forecast';
const clock = { now: () => START_MS };
const market = replayMarket(mixedTrace, clock.now);
const store = new DynamoStore({
  dynamodb: new DynamoDouble().client(),
  s3: new ObjectsDouble().client(),
  table: 'table',
  bucket: 'bucket',
});

/** Of a deployment with this setting; the function is only named where there is one. */
const asked = (forecast: string, isNamed = true): ReturnType<typeof forecastsOf> => {
  const environment = readEnvironment({
    ...lambdaEnvironment({ config: { settings: { forecast } } }),
    ...(isNamed ? { EBB_FORECAST_FUNCTION: NAME } : {}),
  });
  return forecastsOf(
    { environment, store: () => store, clock } as Parameters<typeof forecastsOf>[0],
    market,
    market.pools(),
  );
};

describe('the API’s forecasts of pools in a deployment', () => {
  const kept = { ...process.env };
  const calls: string[] = [];
  let lambda: Server;
  let fails = false;

  async function answerTo(request: IncomingMessage): Promise<unknown> {
    const asking = JSON.parse(await readText(request)) as unknown;
    return fails ? { errorMessage: 'out of memory' } : invoke(handler, asking);
  }

  beforeEach(async () => {
    calls.length = 0;
    fails = false;
    provideDeployment({
      store,
      clock,
      config: schedulerConfig.parse({ forecast: 'model' }),
      market: async () => ({ market, checkedMs: null }),
    } as unknown as Deployment);
    // What the Lambda service does with "Invoke" (its API reference).
    lambda = createServer((request, response) => {
      calls.push(request.url ?? '');
      if (fails) response.setHeader('x-amz-function-error', 'Unhandled');
      void answerTo(request).then((answer) => response.end(JSON.stringify(answer)));
    });
    await new Promise<void>((resolve) => void lambda.listen(0, '127.0.0.1', resolve));
    Object.assign(process.env, {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(lambda.address() as AddressInfo).port}`,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    });
  });
  afterEach(() => {
    lambda.close();
    provideDeployment(null);
    process.env = { ...kept };
  });

  it('from history ask nobody', async () => {
    const { origin, pools } = await asked('history');
    expect(calls).toEqual([]);
    expect(origin).toMatchObject({ chosen: 'history', refused: null });
    expect(pools.map((p) => p.pool)).toEqual(market.pools().flatMap((p) => (p.option === 'spot' ? [p.id] : [])));
  });

  it('from a model are those of the function that decisions ask, and say what it says of itself', async () => {
    const { origin, pools } = await asked('model');
    expect(calls).toEqual([`/2015-03-31/functions/${NAME}/invocations`]);
    // Beside its source there is no model, and the function says so.
    expect(origin?.chosen).toBe('model');
    expect(origin?.refused).toMatch(/model/);
    expect(origin?.refused).not.toMatch(/gave no answer/);
    expect(pools).toEqual((await asked('history')).pools);
    expect(pools[0]?.bids[0]?.curve.pInterrupted).toBeInstanceOf(Float64Array);
  });

  it('are from history, with the reason, where the function fails or is not named', async () => {
    fails = true;
    const { origin, pools } = await asked('model');
    expect(origin).toMatchObject({
      chosen: 'model',
      version: null,
      refused: 'the function that asks the model gave no answer: out of memory',
    });
    expect(pools).toEqual((await asked('history')).pools);
    expect((await asked('model', false)).origin?.refused).toMatch(/does not name the function/);
  });
});
