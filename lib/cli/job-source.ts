import { closeSync, createReadStream, fstatSync, openSync, readFileSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { userInfo } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { once } from '../kernel/once.ts';
import { normaliseLocated } from '../domain/job-file/job-file.ts';
import { isServiceFile, normaliseService } from '../domain/service-file/service-file.ts';
import { eachDocument, fileTooLarge, MAX_FILE_BYTES } from '../domain/job-file/text.ts';
import { isS3Uri } from '../domain/s3-uri.ts';
import { EbbError, type Issue } from '../kernel/errors.ts';

/** Job or service file as data, as it is sent. The engine checks it again. */
export interface JobSource {
  readonly kind: 'job' | 'service';
  /** Name in messages: the path as given, or `standard input`. */
  readonly label: string;
  /** JSON text. */
  readonly text: string;
}

/** Document without a valid job, or a file that cannot be read. */
export interface BadSource {
  readonly label: string;
  readonly error: EbbError;
}

const FILES_PER_TURN = 50;

/** What documents are called. */
const WORDS = {
  jobs: { one: 'job', several: 'jobs' },
  services: { one: 'service', several: 'services' },
  both: { one: 'document', several: 'jobs or services' },
} as const;

const EXAMPLES = {
  jobs: 'examples/hello.yaml is a small job file',
  services: 'examples/service/service.yaml is a service file',
  both: 'examples/ has job files and a service file',
} as const;

/** Folder of relative paths, standard input, and what the documents are. Default: jobs. */
export interface From {
  readonly cwd: string;
  readonly stdin: NodeJS.ReadableStream;
  readonly as?: 'jobs' | 'services' | 'both';
}

/**
 * Jobs from files, one per document, in order; `-` is standard input. Relative working directories are relative to the
 * file. `onFile` gets the number of files read.
 */
export async function readAllSources(
  paths: readonly string[],
  { cwd, stdin, as = 'jobs' }: From,
  onFile: (read: number) => void = () => undefined,
): Promise<readonly (JobSource | BadSource)[]> {
  const all: (JobSource | BadSource)[] = [];
  for (const [i, path] of paths.entries()) {
    const label = path === '-' ? 'standard input' : path;
    try {
      const source = path === '-' ? await readWhole(stdin, label) : await readText(resolve(cwd, path), { label, as });
      const folder = path === '-' ? cwd : dirname(resolve(cwd, path));
      for (const each of sourcesIn(source, { label, folder, as })) all.push(each);
    } catch (error) {
      if (!(error instanceof EbbError)) throw error;
      all.push({ label, error });
    }
    onFile(i + 1);
    // Signals are handled between two turns of the event loop.
    if (i % FILES_PER_TURN === FILES_PER_TURN - 1) await nextTurn();
  }
  return all;
}

/** Jobs from files that must all be valid. Throws the findings of all files, up to a limit. */
export async function readJobSources(paths: readonly string[], from: From): Promise<readonly JobSource[]> {
  return allGood(await readAllSources(paths, from), { as: from.as ?? 'jobs' });
}

/** The jobs, if all documents are valid. `wayOn`: further advice in the error. */
export function allGood(
  all: readonly (JobSource | BadSource)[],
  { as = 'jobs', wayOn = '' }: Pick<From, 'as'> & { readonly wayOn?: string } = {},
): readonly JobSource[] {
  const bad = all.filter((s) => 'error' in s);
  const [first] = bad;
  if (first === undefined) return all.filter((s) => 'text' in s);
  if (bad.length === 1) throw first.error;
  const issues = bad.flatMap(({ label, error }) => issuesOf(label, error)).slice(0, MAX_ISSUES);
  throw new EbbError(first.error.code, {
    what: `${bad.length} of ${all.length} ${WORDS[as].several} cannot be read or have faults; none was submitted`,
    issues,
    next: `correct the places named${wayOn}`,
  });
}

/** Most findings listed. */
const MAX_ISSUES = 50;

function issuesOf(label: string, { facts }: EbbError): readonly Issue[] {
  if (facts.issues !== undefined) return facts.issues;
  const got = facts.got?.replace(`${label}: `, '');
  return [{ at: facts.at ?? label, message: got === undefined ? facts.what : `${facts.what}: ${got}` }];
}

function* sourcesIn(
  source: string,
  { label, folder, as }: { readonly label: string; readonly folder: string; readonly as: NonNullable<From['as']> },
): Generator<JobSource | BadSource> {
  // A document has a number only if its file has several, which is known at the end.
  const documents: (JobSource | BadSource)[] = [];
  for (const document of eachDocument(source, { path: label })) {
    if ('error' in document) documents.push({ label, error: document.error });
    else {
      try {
        // Findings get line and column only here; the engine checks again.
        const options = { baseDir: folder, defaultOwner: currentUser() };
        const kind = as === 'services' || (as === 'both' && isServiceFile(document.json)) ? 'service' : 'job';
        if (kind === 'job') normaliseLocated(document, options);
        else normaliseService(document.json, { ...options, scalings: null }, document.locate);
        documents.push({ kind, label, text: JSON.stringify(complete(document.json, folder)) });
      } catch (error) {
        if (!(error instanceof EbbError)) throw error;
        documents.push({ label, error });
      }
    }
  }
  const several = documents.length > 1;
  for (const [i, each] of documents.entries()) {
    yield several ? { ...each, label: `${label} (${WORDS[as].one} ${i + 1} of ${documents.length})` } : each;
  }
}

const currentUser = once((): string => {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user without a name.
    return 'unknown';
  }
});

/**
 * Text of a file, read synchronously: another thread costs more than a small file, and there may be thousands. A pipe
 * or device may be empty for now, or endless.
 */
async function readText(
  path: string,
  { label, as }: { readonly label: string } & Required<Pick<From, 'as'>>,
): Promise<string> {
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
      what: `the ${as === 'services' ? 'service' : 'job'} file cannot be read`,
      got: `${label}: ${got}`,
      allowed: 'a YAML or JSON file, or - for standard input',
      next: `check the path; ${EXAMPLES[as]}`,
      cause: error,
    });
  }
}

/** Text of a stream. A pipe has no size: reading stops at the size limit of files. */
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

/** Document with absolute paths, since the engine may run elsewhere. Default: the folder of the file. */
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

/** Absolute working directory. The schema reports values of another type. */
const absolute = (workdir: unknown, folder: string): unknown =>
  typeof workdir === 'string' && !isAbsolute(workdir) && !isS3Uri(workdir) ? resolve(folder, workdir) : workdir;

/** Prefixes the places in the engine's findings with the file's name. */
export async function namingFile<T>(label: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EbbError) || !/^(job-file\.|job\.|service-file\.)/.test(error.code)) throw error;
    const { at } = error.facts;
    throw new EbbError(error.code, { ...error.facts, at: at === undefined ? label : `${label} ${at}` });
  }
}
