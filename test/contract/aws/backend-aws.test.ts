import { composeBackend } from '../../../lib/api/on-aws/aws-backend.ts';
import { partsOf } from '../../../lib/drivers/aws/compose/compose.ts';
import { readEnvironment } from '../../../lib/drivers/aws/compose/environment.ts';
import { AwsMarket } from '../../../lib/drivers/aws/market/aws-market.ts';
import { PriceBook } from '../../../lib/drivers/aws/market/price-book.ts';
import { fetchPrices } from '../../../lib/drivers/aws/market/prices.ts';
import { DynamoStore } from '../../../lib/drivers/aws/store/dynamo-store.ts';
import { Table } from '../../../lib/drivers/aws/store/dynamo-table.ts';
import { Wake } from '../../../lib/drivers/aws/cycle/wake.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { raw } from '../../../lib/kernel/units.ts';
import { ObjectsDouble } from '../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { smallMarket } from '../../support/generated-market.ts';
import { lambdaEnvironment } from '../../support/lambda-environment.ts';
import { publishedPrices } from '../../support/published-prices.ts';
import { backendContract, type BackendDriver, type BackendProcess } from '../backend.ts';

/** Nothing listens there: the queue takes no message. */
const NOWHERE = 'http://127.0.0.1:1';
const HOUR_MS = 3_600_000;
const HISTORY_S = 7 * 86_400;
const kept = { ...process.env };

/** Processes of the API on one table and one bucket, over prices that EC2 told. */
async function make(): Promise<BackendDriver> {
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: NOWHERE,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_MAX_ATTEMPTS: '1',
  });
  const [tables, objects] = [new DynamoDouble(), new ObjectsDouble()];
  const { trace, startMs } = smallMarket(3);
  const settings = { preset: 'greedy', forecast: 'history' };
  const environment = readEnvironment(
    lambdaEnvironment({
      EBB_CLOCK: JSON.stringify({ wallMs: Date.now(), engineMs: raw(startMs), speed: 1 }),
      config: { settings },
    }),
  );
  const of = partsOf(environment);
  const asked = {
    zones: [...new Set(trace.pools.map((p) => p.zone))],
    types: [...new Set(trace.pools.map((p) => p.type.name))],
    historyS: HISTORY_S,
  };
  const table = new Table({ client: tables.client(), name: 'table' });
  const client = publishedPrices(trace, (at) => at <= raw(of.clock.now()));
  await fetchPrices({ ...asked, client, table }, of.clock.now());
  let processes = 0;
  const waking = (started: string[], nowMs: () => number): Wake =>
    new Wake({
      table,
      nowMs,
      random: randomStream(++processes, 'wake'),
      start: async (execution) => void started.push(execution),
    });
  return {
    process: async (): Promise<BackendProcess> => {
      const store = new DynamoStore({
        dynamodb: tables.client(),
        s3: objects.client(),
        table: 'table',
        bucket: 'bucket',
      });
      const market = new AwsMarket({ ...asked, book: new PriceBook(table), now: () => of.clock.now() });
      const started: string[] = [];
      const wake = waking(started, Date.now);
      const deployed = composeBackend({
        ...of,
        table: () => table,
        store: () => store,
        wake: () => wake,
        market: () => market,
      });
      return {
        backend: deployed.backend,
        before: () => deployed.refresh(),
        after: () => deployed.settle(),
        cycleComes: async () => (await wake.wakeIfDue(Date.now())) === 'started' && started.length === 1,
        hang: async () => void (await waking([], () => Date.now() - HOUR_MS).begin('hanging')),
        close: async () => {
          // Whatever runs comes to its end.
          for (const execution of [...started, 'hanging']) await wake.gaveUp(execution);
        },
      };
    },
    close: async () => {
      process.env = { ...kept };
    },
  };
}

backendContract('a deployment, on doubles', { make, reaches: 's3' });
