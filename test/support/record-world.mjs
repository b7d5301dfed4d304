// Records what the present version of the DynamoDB store writes: `npm run record:store`, once its schema is raised.
import { SCHEMA_VERSION } from '../../lib/drivers/aws/store/upgrades.ts';
import { record } from './recorded-world.ts';
import { storedWorld } from './stored-world.ts';

await record(await storedWorld(), SCHEMA_VERSION);
console.log(`recorded version ${SCHEMA_VERSION}`);
