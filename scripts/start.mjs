// `npm start`: installs what is missing, then does the main job on the example that ships with the project.
// Each start has a folder of its own, so that it begins with the market's first day; `--dir` names another one.
// Arguments are passed on: `npm start -- --speed 120`.
import { execFileSync } from 'node:child_process';
import { join, relative } from 'node:path';
import { ensureInstalled, projectEnv, projectNode, ROOT, run } from './toolchain.mjs';

await ensureInstalled();
const node = projectNode();
const job = join('examples', 'factor', 'job.yaml');
const given = process.argv.slice(2);
const ownFolder = given.some((arg) => arg === '--dir' || arg.startsWith('--dir='));
const args = ['run', job, '--speed', '60', ...(ownFolder ? [] : ['--dir', newFolder()]), ...given];
process.exitCode = await run(node, [join(ROOT, 'bin', 'ebb.mjs'), ...args], { env: projectEnv(node) });

function newFolder() {
  const quiet = '--disable-warning=ExperimentalWarning';
  const script = join(ROOT, 'scripts', 'start-folder.ts');
  const folder = execFileSync(node, [quiet, script, join(ROOT, '.ebb', 'start')], { encoding: 'utf8' });
  return relative(ROOT, folder);
}
