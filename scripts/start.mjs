// `npm start`: installs what is missing, then does the main job on the example that ships with the project.
// Arguments are passed on: `npm start -- --speed 120`.
import { join } from 'node:path';
import { ensureInstalled, projectEnv, projectNode, ROOT, run } from './toolchain.mjs';

await ensureInstalled();
const node = projectNode();
const job = join('examples', 'factor', 'job.yaml');
const args = ['run', job, '--speed', '60', ...process.argv.slice(2)];
process.exitCode = await run(node, [join(ROOT, 'bin', 'ebb.mjs'), ...args], { env: projectEnv(node) });
