import { join } from 'node:path';

interface TaskName {
  readonly job: string;
  readonly stage: string;
  readonly index: number;
}

/**
 * Files of a local fleet. Supervisors and engines communicate only through these files, so that either may die at any
 * time.
 *   engine.heartbeat                    touched by the engine; its age tells supervisors that no engine is left
 *   doorbell                            written by supervisors after each journal entry; the one file the engine watches
 *   instances/<id>/spec.json            request and answer of the market; written once, before the spawn
 *   instances/<id>/lock                 the one supervisor that this instance ever has (pid and process start)
 *   instances/<id>/heartbeat            engine and wall time, about once a second
 *   instances/<id>/journal.jsonl        observations, append-only
 *   instances/<id>/inbox/<key>.json     commands; the name is the effect's key
 *   instances/<id>/tasks/<attempt>.pid  written by the task's own process before it becomes the program
 *   instances/<id>/work/<attempt>/      working directory of the attempt, removed at its end
 *   checkpoints/<job>/<stage>/<index>/  shared by all attempts of a task, removed when it has succeeded
 *   checkpoints/<job>/<stage>/<index>.copy-<number>/       of one copy, removed at its end
 *   checkpoints/<job>/<stage>/<index>.publisher-<round>    names the attempt of the round that publishes outputs; a small
 *                                       file per round, removed with the checkpoints of a job that has aged out
 *   logs/<xx>/<attempt>.out|err         <xx>: 256 folders, so that no folder grows without bound
 *   supervisor/<hash>/                  the supervisor's program, where Node would have to strip types at each start
 * Imported by the supervisor: node: imports only.
 */
export const layout = {
  engineHeartbeat: (dir: string) => join(dir, 'engine.heartbeat'),
  doorbell: (dir: string) => join(dir, 'doorbell'),
  instances: (dir: string) => join(dir, 'instances'),
  instance: (dir: string, id: string) => join(dir, 'instances', fileName(id)),
  program: (dir: string) => join(dir, 'supervisor'),
  logs: (dir: string) => join(dir, 'logs'),
  checkpointsOfAll: (dir: string) => join(dir, 'checkpoints'),
  checkpoints: (dir: string, task: TaskName) => ofTask(dir, task),
  /** Checkpoint folder of a copy, which is its own. */
  ownCheckpoints: (dir: string, task: TaskName & { readonly number: number }) =>
    `${ofTask(dir, task)}.copy-${task.number}`,
  publisher: (dir: string, task: TaskName, round: number) => `${ofTask(dir, task)}.publisher-${round}`,
  log: (dir: string, attempt: string, stream: 'stdout' | 'stderr') =>
    join(dir, 'logs', digest(attempt).slice(-2), `${fileName(attempt)}.${stream === 'stdout' ? 'out' : 'err'}`),
} as const;

function ofTask(dir: string, { job, stage, index }: TaskName): string {
  return join(dir, 'checkpoints', fileName(job), fileName(stage), String(index));
}

/** Files of one instance, below `layout.instance`. */
export const inside = {
  spec: (instanceDir: string) => join(instanceDir, 'spec.json'),
  lock: (instanceDir: string) => join(instanceDir, 'lock'),
  heartbeat: (instanceDir: string) => join(instanceDir, 'heartbeat'),
  journal: (instanceDir: string) => join(instanceDir, 'journal.jsonl'),
  crashLog: (instanceDir: string) => join(instanceDir, 'supervisor.log'),
  inbox: (instanceDir: string) => join(instanceDir, 'inbox'),
  command: (instanceDir: string, key: string) => join(instanceDir, 'inbox', `${commandName(key)}.json`),
  pids: (instanceDir: string) => join(instanceDir, 'tasks'),
  pid: (instanceDir: string, attempt: string) => join(instanceDir, 'tasks', `${fileName(attempt)}.pid`),
  work: (instanceDir: string) => join(instanceDir, 'work'),
  scratch: (instanceDir: string, attempt: string) => join(instanceDir, 'work', fileName(attempt)),
} as const;

/** Name of an effect's command: the same key gives the same file, which makes sending it again harmless. */
export const commandName = (key: string): string => fileName(key);

/** The key that the name of a command's file was made of; null where it was too long to be kept whole. */
export function keyOfCommand(name: string): string | null {
  if (name.includes('~')) return null;
  try {
    return decodeURIComponent(name.replace(/\.json$/, ''));
  } catch {
    return null;
  }
}

/** Longest name made from an id as it is; file systems take 255 bytes, suffixes included. */
const MAX_NAME = 160;

/** A file name out of an id: readable where the id is plain, never a path, distinct for distinct ids. */
export function fileName(id: string): string {
  const name = encodeURIComponent(id).replaceAll('*', '%2A');
  if (name.length > MAX_NAME) return `${name.slice(0, 80)}~${digest(id)}`;
  return /^\.+$/.test(name) || name === '' ? `~${digest(id)}` : name;
}

/** 64 bits of FNV-1a over both directions. Not for security; node:crypto would add 3 MiB to every supervisor. */
function digest(text: string): string {
  const hash = (characters: string): string => {
    let h = 0x811c9dc5;
    for (let i = 0; i < characters.length; i++) h = Math.imul(h ^ characters.charCodeAt(i), 0x01000193);
    return (h >>> 0).toString(16).padStart(8, '0');
  };
  return hash(text) + hash([...text].reverse().join(''));
}
