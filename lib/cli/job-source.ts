import { readFile } from 'node:fs/promises';
import { basename, dirname, isAbsolute, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { LineCounter, parseDocument } from 'yaml';
import { EbbError, type Issue } from '../kernel/errors.ts';

/** A job file as data, not yet checked against the schema: that is the engine's to do, wherever it runs. */
export interface JobSource {
  /** What messages call it: the path as given, or `standard input`. */
  readonly label: string;
  readonly document: unknown;
}

/** More is a mistake, and refused by the API as well (lib/api/requests.ts). */
const MAX_BYTES = 1_048_576;
const MAX_SYNTAX_ISSUES = 10;

/** Reads a job file; `-` is standard input. Relative working directories are relative to the file. */
export async function readJobSource(path: string, cwd: string, stdin: NodeJS.ReadableStream): Promise<JobSource> {
  const label = path === '-' ? 'standard input' : path;
  const source = path === '-' ? await text(stdin) : await readText(resolve(cwd, path), label);
  const folder = path === '-' ? cwd : dirname(resolve(cwd, path));
  return { label, document: withWorkdir(parseJobText(source, label), folder) };
}

async function readText(path: string, label: string): Promise<string> {
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

/** YAML or JSON (which is YAML). Every syntax error is reported with its place: `file:line:column`. */
export function parseJobText(source: string, label: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${label}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    const issues: Issue[] = document.errors
      .slice(0, MAX_SYNTAX_ISSUES)
      .map((e) => ({ at: place(e.pos[0]), message: e.message }));
    throw new EbbError('job-file.syntax', {
      what: 'the job file is not valid YAML or JSON',
      issues,
      next: 'correct the places above; `ebb config --schema` gives editors the schema',
    });
  }
  try {
    // Aliases that multiply into gigabytes ("billion laughs") are refused by the library at this count.
    return document.toJS({ maxAliasCount: 100 }) as unknown;
  } catch (cause) {
    throw new EbbError('job-file.syntax', {
      what: 'the job file cannot be expanded',
      got: `${label}: ${(cause as Error).message}`,
      next: 'use fewer YAML aliases',
      cause,
    });
  }
}

/** The engine may run elsewhere than the command, so it gets absolute paths; where nothing is said, the file's folder. */
function withWorkdir(document: unknown, folder: string): unknown {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return document;
  const job = document as Record<string, unknown>;
  const workdir = absolute(job['workdir'], folder) ?? folder;
  const stages = Array.isArray(job['stages'])
    ? job['stages'].map((stage: unknown) => withStageWorkdir(stage, folder))
    : job['stages'];
  return { ...job, workdir, ...(stages === undefined ? {} : { stages }) };
}

function withStageWorkdir(stage: unknown, folder: string): unknown {
  if (typeof stage !== 'object' || stage === null) return stage;
  const workdir = absolute((stage as Record<string, unknown>)['workdir'], folder);
  return workdir === undefined ? stage : { ...stage, workdir };
}

/** Values of another type are left to the schema, which names them. */
const absolute = (workdir: unknown, folder: string): unknown =>
  typeof workdir === 'string' && !isAbsolute(workdir) ? resolve(folder, workdir) : workdir;

/** Puts the file's name before the places that the engine names within it. */
export async function namingFile<T>(label: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EbbError) || !/^(job-file\.|job\.)/.test(error.code)) throw error;
    const { at } = error.facts;
    throw new EbbError(error.code, { ...error.facts, at: at === undefined ? label : `${basename(label)} ${at}` });
  }
}
