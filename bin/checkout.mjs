// A checkout runs from a compiled copy of its sources: what strips types would otherwise stay in memory, once per
// thread (some 30 MiB of an engine that does nothing). node: imports only.
//
// Copies lie in .cache/checkout/<digest>, the digest being over name, size and times of every source and over what
// compiles them. A copy is made whole, put in place by one rename and never changed, so it cannot be stale: other
// sources have another digest. A running engine goes on with its own copy, from which it may still load a file; copies
// that no process uses go when a new one is made.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compiledName, compileFile, sources } from './compile.mjs';

const SELF = fileURLToPath(import.meta.url);
const HERE = dirname(SELF);
/** What decides how a source is compiled. */
const COMPILERS = ['compile.mjs', 'checkout.mjs'];
const STAMPS = 'stamps.json';
/** A copy that was used lately stays even if nobody seems to use it: its user may just be starting. */
const KEPT_MS = 3_600_000;

/**
 * Folder of the compiled copy of what is there now; null where there can be none (then the sources run as they are).
 */
export function compiledCopy(root) {
  try {
    const known = join(copiesOf(root), digestOf(stampsOf(root)));
    const copy = fs.existsSync(known) ? known : compileApart(root);
    if (copy !== null) use(copy);
    return copy;
  } catch {
    return null;
  }
}

/** In a process of its own, so that this one never loads what strips types. */
function compileApart(root) {
  const { status, stdout } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', SELF, root], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return status === 0 ? stdout : null;
}

/** Makes the copy of what is there now, from an earlier copy where a file is the same. Returns its folder. */
function makeCopy(root) {
  const copies = copiesOf(root);
  fs.mkdirSync(copies, { recursive: true });
  // Stamps are taken before the files are read: a file that changes in between makes another digest next time.
  const stamps = stampsOf(root);
  const copy = join(copies, digestOf(stamps));
  const building = join(copies, `building.${process.pid}`);
  fs.rmSync(building, { recursive: true, force: true });
  const earlier = newestCopy(copies, stamps.compiler);
  for (const [file, stamp] of Object.entries(stamps.files)) {
    const target = join(building, compiledName(file));
    if (earlier?.stamps.files[file] !== stamp) compileFile(join(root, file), target);
    else {
      fs.mkdirSync(dirname(target), { recursive: true });
      fs.copyFileSync(join(earlier.folder, compiledName(file)), target);
    }
  }
  fs.writeFileSync(join(building, STAMPS), JSON.stringify(stamps));
  try {
    fs.renameSync(building, copy);
  } catch (error) {
    fs.rmSync(building, { recursive: true, force: true });
    // Another process was as quick: its copy is the same.
    if (!fs.existsSync(copy)) throw error;
  }
  clear(copies, copy);
  return copy;
}

const copiesOf = (root) => join(root, '.cache', 'checkout');

function stampsOf(root) {
  // ctime, too: it changes even where a tool puts the old modification time back.
  const stamp = (path) => {
    const { mtimeMs, ctimeMs, size, ino } = fs.statSync(path);
    return `${mtimeMs} ${ctimeMs} ${size} ${ino}`;
  };
  const compiler = [process.version, ...COMPILERS.map((name) => stamp(join(HERE, name)))].join(' ');
  const files = Object.fromEntries(
    sources(root)
      .sort()
      .map((file) => [file, stamp(join(root, file))]),
  );
  return { compiler, files };
}

const digestOf = (stamps) => createHash('sha256').update(JSON.stringify(stamps)).digest('hex').slice(0, 24);

const foldersIn = (copies) =>
  fs
    .readdirSync(copies, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(copies, entry.name));

function newestCopy(copies, compiler) {
  const newestFirst = foldersIn(copies)
    .filter((folder) => fs.existsSync(join(folder, STAMPS)))
    .map((folder) => ({ folder, usedMs: fs.statSync(folder).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const { folder } of newestFirst) {
    const stamps = JSON.parse(fs.readFileSync(join(folder, STAMPS), 'utf8'));
    if (stamps.compiler === compiler) return { folder, stamps };
  }
  return null;
}

/**
 * Each user is a file `user.<pid>` in the copy for as long as its process lives. Making it also renews the copy's time.
 */
function use(copy) {
  const mark = join(copy, `user.${process.pid}`);
  fs.writeFileSync(mark, '');
  process.on('exit', () => fs.rmSync(mark, { force: true }));
}

function clear(copies, current) {
  for (const folder of foldersIn(copies)) {
    if (folder === current || Date.now() - fs.statSync(folder).mtimeMs < KEPT_MS) continue;
    const users = fs.readdirSync(folder).flatMap((name) => (name.startsWith('user.') ? [Number(name.slice(5))] : []));
    if (!users.some(lives)) fs.rmSync(folder, { recursive: true, force: true });
  }
}

function lives(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

// Run as a program: makes the copy of the checkout named as the argument and prints its folder.
if (process.argv[1] === SELF) process.stdout.write(makeCopy(process.argv[2]));
