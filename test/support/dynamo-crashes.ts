import { DynamoStore } from '../../lib/drivers/aws/store/dynamo-store.ts';
import type { CrashWorld } from '../contract/store-crashes.ts';
import { ObjectsDouble } from '../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../doubles/dynamodb/table.ts';
import { Faults } from './aws-faults.ts';

/** Processes that die between any two of their writes to DynamoDB and S3, or with one of them done and not answered. */
export function dynamoCrashes(): CrashWorld {
  const [table, objects] = [new DynamoDouble(), new ObjectsDouble()];
  return {
    process: async (diesAfter = Infinity) => {
      const faults = new Faults(async ({ ordinal, perform, die }) => {
        if (ordinal > diesAfter) return die();
        const answer = await perform();
        return ordinal === diesAfter ? die() : answer;
      });
      const store = new DynamoStore({
        dynamodb: faults.around(table.client()),
        s3: faults.around(objects.client()),
        table: 'table',
        bucket: 'bucket',
      });
      return { store, steps: () => faults.calls.length, isDead: () => faults.isDead };
    },
    close: async () => undefined,
  };
}
