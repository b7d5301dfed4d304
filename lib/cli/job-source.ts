import { closeSync, createReadStream, fstatSync, openSync, readFileSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { userInfo } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { once } from '../kernel/once.ts';
import { normaliseLocated } from '../domain/job-file/job-file.ts';
import { eachDocument, fileTooLarge, MAX_FILE_BYTES } from '../domain/job-file/text.ts';
import { isS3Uri } from '../domain/s3-uri.ts';
import { EbbError, type Issue } from '../kernel/errors.ts';

/** A job file as data, in the form in which it is sent. The engine checks it again, wherever it runs. */
export interface JobSource {
  /** What messages call it: the path as given, or `standard input`. */
  readonly label: string;
  /** JSON. */
  readonly text: string;
}

/** A document that is no job, or a file that cannot be read. */
export interface BadSource {
  readonly label: string;
  readonly error: EbbError;
}

const FILES_PER_TURN = 50;

/**
 * Reads jobs from files, one for each document, in order; `-` is standard input. Relative working directories are
 * relative to the file. `onFile` is told how many files have been read.
 */
export async function readAllSources(
  paths: readonly string[],
  { cwd, stdin }: { readonly cwd: string; readonly stdin: NodeJS.ReadableStream },
  onFile: (read: number) => void = () => undefined,
): Promise<readonly (JobSource | BadSource)[]> {
  const all: (JobSource | BadSource)[] = [];
  for (const [i, path] of paths.entries()) {
    const label = path === '-' ? 'standard input' : path;
    try {
      const source = path === '-' ? await readWhole(stdin, label) : await readText(resolve(cwd, path), label);
      const folder = path === '-' ? cwd : dirname(resolve(cwd, path));
      for (const each of sourcesIn(source, label, folder)) all.push(each);
    } catch (error) {
      if (!(error instanceof EbbError)) throw error;
      all.push({ label, error });
    }
    onFile(i + 1);
    // A signal is heard between two turns.
    if (i % FILES_PER_TURN === FILES_PER_TURN - 1) await nextTurn();
  }
  return all;
}

/** The same where each of them must be a job: throws with all that is wrong, as far as anybody reads. */
export async function readJobSources(
  paths: readonly string[],
  from: { readonly cwd: string; readonly stdin: NodeJS.ReadableStream },
): Promise<readonly JobSource[]> {
  return allGood(await readAllSources(paths, from));
}

/** All of them, if all are jobs. `wayOn`: what else one may do. */
export function allGood(all: readonly (JobSource | BadSource)[], wayOn = ''): readonly JobSource[] {
  const bad = all.filter((s) => 'error' in s);
  const [first] = bad;
  if (first === undefined) return all.filter((s) => 'text' in s);
  if (bad.length === 1) throw first.error;
  const issues = bad.flatMap(({ label, error }) => issuesOf(label, error)).slice(0, MAX_ISSUES);
  throw new EbbError(first.error.code, {
    what: `${bad.length} of ${all.length} jobs cannot be read or have faults; none was submitted`,
    issues,
    next: `correct the places named${wayOn}`,
  });
}

/** More help nobody reads. */
const MAX_ISSUES = 50;

function issuesOf(label: string, { facts }: EbbError): readonly Issue[] {
  if (facts.issues !== undefined) return facts.issues;
  const got = facts.got?.replace(`${label}: `, '');
  return [{ at: facts.at ?? label, message: got === undefined ? facts.what : `${facts.what}: ${got}` }];
}

function* sourcesIn(source: string, label: string, folder: string): Generator<JobSource | BadSource> {
  // Whether it is one of several is known once all are there.
  const documents: (JobSource | BadSource)[] = [];
  for (const document of eachDocument(source, { path: label })) {
    if ('error' in document) documents.push({ label, error: document.error });
    else {
      try {
        // Checked here as well, because only here findings can be given their line and column.
        normaliseLocated(document, { baseDir: folder, defaultOwner: currentUser() });
        documents.push({ label, text: JSON.stringify(complete(document.json, folder)) });
      } catch (error) {
        if (!(error instanceof EbbError)) throw error;
        documents.push({ label, error });
      }
    }
  }
  const several = documents.length > 1;
  for (const [i, each] of documents.entries()) {
    yield several ? { ...each, label: `${label} (job ${i + 1} of ${documents.length})` } : each;
  }
}

const currentUser = once((): string => {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user that has no name.
    return 'unknown';
  }
});

/**
 * Files are read at once, in this thread: each hop to another one costs more than reading a small file, and there may
 * be thousands. A pipe or a device may have nothing to read yet, or no end.
 */
async function readText(path: string, label: string): Promise<string> {
  try {
    const file = openSync(path, 'r');
    try {
      const stat = fstatSync(file);
      if (stat.size > MAX_FILE_BYTES) throw fileTooLarge(label, stat.size);
      if (stat.isFile() || stat.isDirectory()) return readFileSync(file, 'utf8');
      return await readWhole(createReadStream(path, { fd: file, autoClose: false }), label);
    } finally {
      closeSync(file);
    }
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

/** A pipe has no size: what is larger than a file may be is not read to its end. */
async function readWhole(stream: NodeJS.ReadableStream, label: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const piece = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    bytes += piece.length;
    if (bytes > MAX_FILE_BYTES) throw fileTooLarge(label, bytes);
    chunks.push(piece);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * The engine may run elsewhere than the command, so it gets absolute paths; where nothing is said, the file's folder.
 */
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
