import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { handler } from '../../../../lambdas/forecast/handler.ts';
import { provideDeployment, type Deployment } from '../../../../lib/drivers/aws/compose/deployment.ts';
import { readEnvironment } from '../../../../lib/drivers/aws/compose/environment.ts';
import { forecastsOf } from '../../../../lib/api/on-aws/deployment-forecasts.ts';
import { takeTime } from '../../../../lib/drivers/aws/lambda/remaining.ts';
import { DynamoStore } from '../../../../lib/drivers/aws/store/dynamo-store.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { replayMarket } from '../../../../lib/drivers/local/market/replay.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { lambdaEnvironment } from '../../../support/lambda-environment.ts';
import { mixedTrace, START_MS } from '../../../support/mixed-workload.ts';
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
  const logged: string[] = [];
  let lambda: Server;
  let does: 'answer' | 'fail' | 'hang' = 'answer';

  async function answerTo(request: IncomingMessage): Promise<unknown> {
    const asking = JSON.parse(await readText(request)) as unknown;
    return does === 'fail' ? { errorMessage: 'out of memory' } : invoke(handler, asking);
  }

  beforeAll(async () => {
    provideDeployment({
      store,
      clock,
      config: schedulerConfig.parse({ forecast: 'model' }),
      market: async () => ({ market, checkedMs: null }),
    } as unknown as Deployment);
    // What the Lambda service does with "Invoke" (its API reference).
    lambda = createServer((request, response) => {
      calls.push(request.url ?? '');
      if (does === 'hang') return;
      if (does === 'fail') response.setHeader('x-amz-function-error', 'Unhandled');
      void answerTo(request).then((answer) => response.end(JSON.stringify(answer)));
    });
    await new Promise<void>((resolve) => void lambda.listen(0, '127.0.0.1', resolve));
    Object.assign(process.env, {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(lambda.address() as AddressInfo).port}`,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    });
    // The log goes where CloudWatch reads it.
    for (const stream of [process.stdout, process.stderr]) {
      jest.spyOn(stream, 'write').mockImplementation((line) => logged.push(String(line)) > 0);
    }
  });
  beforeEach(() => {
    [calls.length, logged.length] = [0, 0];
    does = 'answer';
  });
  afterAll(() => {
    jest.restoreAllMocks();
    lambda.closeAllConnections();
    lambda.close();
    provideDeployment(null);
    takeTime({});
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
    does = 'fail';
    const { origin, pools } = await asked('model');
    expect(origin).toMatchObject({
      chosen: 'model',
      version: null,
      refused: 'the function that asks the model gave no answer: out of memory',
    });
    expect(pools).toEqual((await asked('history')).pools);
    expect(logged.join('')).toMatch(/gave no answer: out of memory/);
    expect((await asked('model', false)).origin?.refused).toMatch(/does not name the function/);
  });

  it('are refused to an event that is none of the two, which says what each of them misses', async () => {
    await expect(invoke(handler, { execution: 'c-1', round: 0 })).rejects.toThrow(
      /observation: .*expected string.*; or pools: /,
    );
    await expect(invoke(handler, { pools: ['a', ''] })).rejects.toThrow(/pools\.1: Too small/);
    expect(logged.join('')).toContain('forecast was given an event that it does not understand');
  });

  it('are from history where the function takes longer than the caller waits', async () => {
    does = 'hang';
    // Of API Gateway's 29 s what a busy process may have left.
    takeTime({ getRemainingTimeInMillis: () => 8_100 });
    const { origin, pools } = await asked('model');
    expect(calls).toHaveLength(1);
    expect(origin?.refused).toMatch(/gave no answer/);
    expect(pools).toEqual((await asked('history')).pools);
  });
});
