// `npm start`: installs what is missing, then does the main job on the example that ships with the project.
// Each start has a folder of its own, so that it begins with the market's first day; `--dir` names another one.
// Arguments are passed on: `npm start -- --speed 120`. `npm start -- --resume` goes on with the newest unfinished
// start.
import { spawnSync } from 'node:child_process';
import { join, relative } from 'node:path';
import { ensureInstalled, projectEnv, projectNode, ROOT, run } from './toolchain.mjs';

await ensureInstalled();
const node = projectNode();
const given = process.argv.slice(2);
const resume = given.includes('--resume');
const ownFolder = given.some((arg) => arg === '--dir' || arg.startsWith('--dir='));
const what = resume ? [] : [join('examples', 'factor', 'job.yaml'), '--speed', '60'];
const args = ['run', ...what, ...(ownFolder ? [] : ['--dir', folder()]), ...given];
const env = projectEnv(node);
// What the note after Ctrl-C names: there is no `ebb` on the PATH of a clone.
if (!ownFolder) env.EBB_RESUME_COMMAND = 'npm start -- --resume';
process.exitCode = await run(node, [join(ROOT, 'bin', 'ebb.mjs'), ...args], { env });

function folder() {
  const script = join(ROOT, 'scripts', 'start-folder.ts');
  const asked = ['--disable-warning=ExperimentalWarning', script, join(ROOT, '.ebb', 'start')];
  const { status, stdout } = spawnSync(node, resume ? [...asked, '--resume'] : asked, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) process.exit(status ?? 1);
  return relative(ROOT, stdout);
}
