/** Second part of `npm run build`: code of the Lambdas for the package. */
import { prebuild } from '../lib/infra/bundle.ts';

console.log(`dist/functions: ${prebuild('dist/functions')} functions`);
