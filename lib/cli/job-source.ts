import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { userInfo } from 'node:os';
import { parseJobFile } from '../domain/job-file/job-file.ts';
import { readText as readJobText } from '../domain/job-file/text.ts';
import { isS3Uri } from '../domain/s3-uri.ts';
import { EbbError } from '../kernel/errors.ts';

/** A job file as data, in the form in which it is sent. The engine checks it again, wherever it runs. */
export interface JobSource {
  /** What messages call it: the path as given, or `standard input`. */
  readonly label: string;
  readonly document: unknown;
}

/** More is a mistake, and refused by the API as well (lib/api/requests.ts). */
const MAX_BYTES = 1_048_576;

/** Reads a job file; `-` is standard input. Relative working directories are relative to the file. */
export async function readJobSource(path: string, cwd: string, stdin: NodeJS.ReadableStream): Promise<JobSource> {
  const label = path === '-' ? 'standard input' : path;
  const source = path === '-' ? await text(stdin) : await readBytes(resolve(cwd, path), label);
  const folder = path === '-' ? cwd : dirname(resolve(cwd, path));
  // Checked here as well, because only here findings can be given their line and column.
  parseJobFile(source, { path: label, baseDir: folder, defaultOwner: currentUser() });
  const { json } = readJobText(source, { path: label });
  return { label, document: complete(json, folder) };
}

function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user that has no name.
    return 'unknown';
  }
}

async function readBytes(path: string, label: string): Promise<string> {
  try {
    const bytes = await readFile(path);
    if (bytes.length <= MAX_BYTES) return bytes.toString('utf8');
    throw new EbbError('body-too-large', {
      what: 'this is too large for a job file',
      got: `${label}: ${bytes.length} bytes`,
      allowed: `at most ${MAX_BYTES} bytes`,
      next: 'a stage of many tasks is one line: `tasks: N`',
    });
  } catch (error) {
    if (error instanceof EbbError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const got = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'a folder' : String(code ?? error);
    throw new EbbError('usage', {
      what: 'the job file cannot be read',
      got: `${label}: ${got}`,
      allowed: 'a YAML or JSON file, or - for standard input',
      next: 'check the path; examples/hello.yaml is a small job file',
      cause: error,
    });
  }
}

/** The engine may run elsewhere than the command, so it gets absolute paths; where nothing is said, the file's folder. */
function complete(document: unknown, folder: string): unknown {
  const job = document as Record<string, unknown>;
  const workdir = absolute(job['workdir'], folder) ?? folder;
  const stages = Array.isArray(job['stages'])
    ? job['stages'].map((stage: unknown) => withStageWorkdir(stage, folder))
    : job['stages'];
  return { owner: currentUser(), ...job, workdir, ...(stages === undefined ? {} : { stages }) };
}

function withStageWorkdir(stage: unknown, folder: string): unknown {
  if (typeof stage !== 'object' || stage === null) return stage;
  const workdir = absolute((stage as Record<string, unknown>)['workdir'], folder);
  return workdir === undefined ? stage : { ...stage, workdir };
}

/** Values of another type are left to the schema, which names them. */
const absolute = (workdir: unknown, folder: string): unknown =>
  typeof workdir === 'string' && !isAbsolute(workdir) && !isS3Uri(workdir) ? resolve(folder, workdir) : workdir;

/** Puts the file's name before the places that the engine names within it. */
export async function namingFile<T>(label: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EbbError) || !/^(job-file\.|job\.)/.test(error.code)) throw error;
    const { at } = error.facts;
    throw new EbbError(error.code, { ...error.facts, at: at === undefined ? label : `${label} ${at}` });
  }
}
