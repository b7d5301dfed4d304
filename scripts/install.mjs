// Installs what is missing, exactly as the lockfile says: what `npm start` and `npm test` do first.
import { ensureInstalled } from './toolchain.mjs';

await ensureInstalled();
