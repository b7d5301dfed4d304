// `npm start`: installs missing dependencies, then runs the example of the project. Each start has its own folder, so
// that it begins on the market's first day; `--dir` names another one. Arguments are passed on: `npm start -- --speed
// 120`. `npm start -- --resume` resumes the newest unfinished start.
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
// Command in the note after Ctrl-C: a clone has no `ebb` on the PATH.
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
