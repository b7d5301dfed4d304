/**
 * A stand-in for the AWS CLI: `s3 cp`, `sync` and `rm`, and `s3api put-object` on condition, as its command reference
 * describes them, with the folder `EBB_S3_ROOT` for S3 (`<bucket>/<key>`). Started as a program of its own, by the
 * wrapper that `awsCliIn` writes. Anything else is refused. While `EBB_S3_ROOT/.refuse` exists, calls whose arguments
 * hold the text in it fail; `.calls` has a line for each call.
 */
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** Makes a folder for PATH with an `aws` in it that works on `root`. */
export function awsCliIn(folder: string, root: string): string {
  mkdirSync(folder, { recursive: true });
  mkdirSync(root, { recursive: true });
  const file = join(folder, 'aws');
  const program = fileURLToPath(import.meta.url);
  const warnings = '--disable-warning=ExperimentalWarning';
  writeFileSync(file, `#!/bin/sh\nEBB_S3_ROOT='${root}' exec '${process.execPath}' ${warnings} '${program}' "$@"\n`);
  chmodSync(file, 0o755);
  return folder;
}

interface Asked {
  readonly places: readonly string[];
  readonly flags: ReadonlySet<string>;
  readonly filters: readonly { readonly isIncluded: boolean; readonly pattern: RegExp }[];
}

const FLAGS = new Set(['--recursive', '--only-show-errors', '--no-progress', '--no-follow-symlinks', '--delete']);
/** S3 keeps whole seconds. */
const wholeSeconds = (ms: number): number => Math.floor(ms / 1000) * 1000;

function parsed(args: readonly string[]): Asked {
  const places: string[] = [];
  const flags = new Set<string>();
  const filters: { isIncluded: boolean; pattern: RegExp }[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    if (arg === '--include' || arg === '--exclude') {
      filters.push({ isIncluded: arg === '--include', pattern: fnmatch(args[++i] ?? '') });
    } else if (FLAGS.has(arg)) flags.add(arg);
    else if (arg.startsWith('--')) throw new Error(`Unknown options: ${arg}`);
    else places.push(arg);
  }
  return { places, flags, filters };
}

/** Python's fnmatch, by which the CLI filters: wildcards match slashes. */
export function fnmatch(pattern: string): RegExp {
  const body = pattern.replace(
    /\[(!?)([^\]]*)\]|[*?]|[.+^${}()|\\[\]]/g,
    (all, not: string | undefined, set?: string) => {
      if (set !== undefined) return `[${not === '!' ? '^' : ''}${set}]`;
      if (all === '*') return '[^]*';
      return all === '?' ? '[^]' : `\\${all}`;
    },
  );
  return new RegExp(`^${body}$`);
}

class Cli {
  readonly #root: string;
  readonly #asked: Asked;

  constructor(root: string, asked: Asked) {
    this.#root = root;
    this.#asked = asked;
  }

  run(command: string): number {
    const [from = '', to = ''] = this.#asked.places;
    if (command === 'rm') return this.#remove(from);
    if (command === 'sync') return this.#sync(from, to);
    if (command !== 'cp') throw new Error(`the stand-in has no s3 ${command}`);
    if (this.#asked.flags.has('--recursive')) {
      for (const path of this.#found(from))
        this.#copy(join(this.#local(from), path), join(this.#local(to), path), path);
      return 0;
    }
    if (from === '-') {
      this.#write(this.#local(to), () => writeFileSync(this.#temporary(to), readFileSync(0)), to);
      return 0;
    }
    if (!existsSync(this.#local(from)) || statSync(this.#local(from)).isDirectory()) {
      process.stderr.write(`fatal error: An error occurred (404) when calling the HeadObject operation: ${from}\n`);
      return 1;
    }
    if (to === '-') {
      process.stdout.write(readFileSync(this.#local(from)));
      return 0;
    }
    const target = to.endsWith('/') ? join(this.#local(to), basename(from)) : this.#local(to);
    this.#copy(this.#local(from), target, from);
    return 0;
  }

  #sync(from: string, to: string): number {
    const isUpload = to.startsWith('s3:');
    const there = new Set(existsSync(this.#local(to)) ? this.#found(to) : []);
    for (const path of this.#found(from)) {
      const [a, b] = [join(this.#local(from), path), join(this.#local(to), path)];
      if (there.delete(path)) {
        const [source, target] = [statSync(a), statSync(b)];
        const [sourceMs, targetMs] = isUpload
          ? [source.mtimeMs, wholeSeconds(target.mtimeMs)]
          : [wholeSeconds(source.mtimeMs), target.mtimeMs];
        // For an upload: not newer. For a download: the file here is older than the object, or its age.
        const isSame = source.size === target.size && (isUpload ? sourceMs <= targetMs : targetMs <= sourceMs);
        if (isSame) continue;
      }
      this.#copy(a, b, path);
      if (!isUpload) utimesSync(b, statSync(a).mtimeMs / 1000, statSync(a).mtimeMs / 1000);
    }
    if (this.#asked.flags.has('--delete')) for (const path of there) rmSync(join(this.#local(to), path));
    return 0;
  }

  #remove(at: string): number {
    if (!this.#asked.flags.has('--recursive')) {
      rmSync(this.#local(at), { force: true });
      return 0;
    }
    for (const path of this.#found(at)) rmSync(join(this.#local(at), path));
    return 0;
  }

  /** Files below a place, filtered, relative to it. */
  #found(place: string): readonly string[] {
    const folder = this.#local(place);
    if (!existsSync(folder)) {
      if (place.startsWith('s3:')) return [];
      throw new Error(`The user-provided path ${place} does not exist.`);
    }
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
      .filter((path) => this.#asked.filters.reduce((is, f) => (f.pattern.test(path) ? f.isIncluded : is), true))
      .sort();
  }

  #local(place: string): string {
    const path = place.startsWith('s3://') ? join(this.#root, place.slice('s3://'.length)) : join(place);
    return path.replace(/\/$/, '');
  }

  #temporary(place: string): string {
    return join(this.#root, `.part-${process.pid}-${basename(place)}`);
  }

  #copy(from: string, to: string, label: string): void {
    this.#write(to, () => copyFileSync(from, this.#temporary(to)), label);
  }

  /** An object is there whole or not at all. */
  #write(to: string, make: () => void, label: string): void {
    mkdirSync(dirname(to), { recursive: true });
    make();
    renameSync(this.#temporary(to), to);
    if (!this.#asked.flags.has('--only-show-errors')) process.stdout.write(`copy: ${label}\n`);
  }
}

/** `s3api put-object`, which writes where nothing is. With a skeleton asked for, nothing is sent. */
function putObject(root: string, args: readonly string[]): number {
  const text = { type: 'string' } as const;
  const options = {
    bucket: text,
    key: text,
    body: text,
    'if-none-match': text,
    'generate-cli-skeleton': { type: 'boolean' },
  } as const;
  const { values } = parseArgs({ args: [...args], options, strict: true });
  if (values['generate-cli-skeleton'] === true) return 0;
  const target = join(root, values.bucket ?? '', values.key ?? '');
  mkdirSync(dirname(target), { recursive: true });
  const own = join(root, `.part-${process.pid}`);
  copyFileSync(values.body ?? '', own);
  try {
    linkSync(own, target);
    return 0;
  } catch {
    process.stderr.write('An error occurred (PreconditionFailed) when calling the PutObject operation\n');
    return 254;
  } finally {
    rmSync(own);
  }
}

function main(args: readonly string[]): number {
  const root = process.env['EBB_S3_ROOT'] ?? '';
  const line = args.join(' ').replaceAll('\n', ' ');
  appendFileSync(join(root, '.calls'), `${line}\n`);
  const refuse = join(root, '.refuse');
  if (existsSync(refuse) && line.includes(readFileSync(refuse, 'utf8'))) {
    process.stderr.write('fatal error: An error occurred (AccessDenied)\n');
    return 1;
  }
  const [service, command = '', ...rest] = args;
  if (service === 's3api' && command === 'put-object') return putObject(root, rest);
  if (service !== 's3') throw new Error(`the stand-in has no ${service ?? 'such service'}`);
  return new Cli(root, parsed(rest)).run(command);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2));
