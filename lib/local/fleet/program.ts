import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolder } from './files.ts';
import { inside, layout } from './layout.ts';

const SUPERVISOR = fileURLToPath(new URL('./supervisor.ts', import.meta.url));

/**
 * The V8 heap is bounded because the supervisor's own state is small and there may be hundreds of them; the young
 * generation at 1 MiB instead of 16 keeps a busy log from growing it.
 */
const NODE_FLAGS = ['--max-old-space-size=96', '--max-semi-space-size=1', '--disable-warning=ExperimentalWarning'];

/** Starts the supervisor of the instance in a session of its own, so that it outlives the engine and its terminal. */
export function spawnSupervisor(dir: string, instanceDir: string, program: string): ChildProcess {
  const crashLog = openSync(inside.crashLog(instanceDir), 'a');
  try {
    const child = spawn(process.execPath, [...NODE_FLAGS, program, dir, instanceDir, SUPERVISOR], {
      cwd: dir,
      env: withoutNodeOptions(process.env),
      stdio: ['ignore', crashLog, crashLog],
      detached: true,
    });
    child.unref();
    return child;
  } finally {
    closeSync(crashLog);
  }
}

/** Options meant for this process (a test runner's, a debugger's) would change the supervisor, not the tasks. */
function withoutNodeOptions(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const copy = { ...env };
  delete copy['NODE_OPTIONS'];
  delete copy['NODE_CHANNEL_FD'];
  return copy;
}

/**
 * The file to run as supervisor. A built package has it as JavaScript. In a checkout Node could strip the types itself,
 * but its stripper takes 15 MiB in each supervisor, so they are stripped once, into the fleet's directory.
 */
export function supervisorProgram(dir: string): string {
  if (!SUPERVISOR.endsWith('.ts')) return SUPERVISOR;
  const sources = reachable(SUPERVISOR);
  const hash = createHash('sha256')
    .update(JSON.stringify([...sources]))
    .digest('hex')
    .slice(0, 12);
  const folder = join(layout.program(dir), hash);
  const entry = join(folder, 'supervisor.mjs');
  makeFolder(layout.program(dir));
  if (!readdirSync(layout.program(dir)).includes(hash)) {
    const building = `${folder}.${process.pid}`;
    rmSync(building, { recursive: true, force: true });
    makeFolder(building);
    const { stripTypeScriptTypes } = process.getBuiltinModule('node:module');
    for (const [name, source] of sources) {
      const code = stripTypeScriptTypes(source).replaceAll(IMPORT, "from './$1.mjs'");
      writeFileSync(join(building, name.replace(/\.ts$/, '.mjs')), code);
    }
    renameSync(building, folder);
  }
  return entry;
}

const IMPORT = /from '\.\/([\w-]+)\.ts'/g;

/** Source of the file and of what it imports from its folder, by name. Types are imported from anywhere and vanish. */
function reachable(file: string): Map<string, string> {
  const sources = new Map<string, string>();
  const open = [basename(file)];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (sources.has(name)) continue;
    const source = readFileSync(join(dirname(file), name), 'utf8');
    sources.set(name, source);
    for (const [, found = ''] of source.matchAll(IMPORT)) open.push(`${found}.ts`);
  }
  return sources;
}
