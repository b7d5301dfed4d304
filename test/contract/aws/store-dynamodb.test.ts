import { storeContract } from '../store.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';

describeOnLocalStack('DynamoDB store', (on) => {
  storeContract('dynamodb', async (retention, nowMs) => on.store({ ...(await on.place()), retention, nowMs }), {
    none: 'at each of the same calls processes die on the double',
  });
});
