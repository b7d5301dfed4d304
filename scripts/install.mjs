// Installs missing dependencies exactly as in the lockfile: the first step of `npm start` and `npm test`.
import { ensureInstalled } from './toolchain.mjs';

await ensureInstalled();
