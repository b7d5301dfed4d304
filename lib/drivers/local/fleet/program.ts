import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolder } from './files.ts';
import { inside, layout } from './layout.ts';
import { secretsIn } from './secrets.ts';
import { inheritedBy } from './task-environment.ts';

const SUPERVISOR = fileURLToPath(new URL('./supervisor.ts', import.meta.url));
/** Found by the supervisor beside itself. */
const STAGER = fileURLToPath(new URL('./stager.ts', import.meta.url));

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
      env: { ...inheritedBy(process.env), ...secretsIn(process.env) },
      stdio: ['ignore', crashLog, crashLog],
      detached: true,
    });
    child.unref();
    return child;
  } finally {
    closeSync(crashLog);
  }
}

/**
 * File of the supervisor. A built package has it as JavaScript. In a checkout Node could strip the types itself, but
 * its stripper takes 15 MiB in each supervisor, so they are stripped once, into the fleet's directory.
 */
export function supervisorProgram(dir: string): string {
  if (!SUPERVISOR.endsWith('.ts')) return SUPERVISOR;
  const sources = reachable([SUPERVISOR, STAGER]);
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
      const code = stripTypeScriptTypes(source).replaceAll(IMPORT, "$1'./$3.mjs'");
      writeFileSync(join(building, name.replace(/\.ts$/, '.mjs')), code);
    }
    renameSync(building, folder);
  }
  return entry;
}

/** Imports of files of this project; those of types alone vanish with the types. */
const IMPORT = /^(import (?!type )[^;]*? from )'((?:\.{1,2}\/)+(?:[\w-]+\/)*([\w-]+)\.ts)'/gm;

/** Sources of the files and of their imports, by their name in the one folder. */
function reachable(files: readonly string[]): Map<string, string> {
  const sources = new Map<string, string>();
  const open = [...files];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (sources.has(basename(file))) continue;
    const source = readFileSync(file, 'utf8');
    sources.set(basename(file), source);
    for (const [, , path = ''] of source.matchAll(IMPORT)) open.push(join(dirname(file), path));
  }
  return sources;
}
