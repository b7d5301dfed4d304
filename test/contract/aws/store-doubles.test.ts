import { randomUUID } from 'node:crypto';
import { DynamoStore } from '../../../lib/drivers/aws/store/dynamo-store.ts';
import { ObjectsDouble } from '../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { dynamoCrashes } from '../../support/dynamo-crashes.ts';
import { storeContract } from '../store.ts';

// Shows that the doubles do what the store asks of DynamoDB and S3, so that tests of faults may stand on them.
storeContract(
  'dynamodb, on its double',
  async (retention, nowMs) => {
    const [dynamodb, s3] = [new DynamoDouble().client(), new ObjectsDouble().client()];
    return new DynamoStore({ dynamodb, s3, table: randomUUID(), bucket: 'bucket', retention, nowMs });
  },
  async () => dynamoCrashes(),
);
