import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { dirname, isAbsolute, join, normalize, sep } from 'node:path';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { EbbError } from '../../../kernel/errors.ts';
import { DATABASE } from './database-name.ts';
import { earlierLife } from './earlier-life.ts';
import { makeEngineFolder } from './engine-folder.ts';
import { hasCode, writeAll } from '../fleet/files.ts';
import { classify } from '../store/faults.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { wallTime } from '../../wall.ts';
import { readWorldRecord, writeWorldRecord } from '../market/world-record.ts';

/**
 * Backups of an engine's folder: one SQLite file, which is a copy of the engine's database with the other files in two
 * tables of their own. The copy is one state of the database, whatever the engine writes meanwhile. Checkpoints are
 * copied as they are: a program that saves by renaming (as it should) is saved whole.
 * Instances are not part of it: after a restore they are lost, and their tasks go on from their checkpoints elsewhere.
 */
const FILES = 'backup_files';
const CHUNKS = 'backup_chunks';
/** Folders and files of an engine's folder that are needed to go on. `logs` only where they are asked for. */
const NEEDED = ['world.json', 'run.json', 'checkpoints', 'models', 'markets'];
const LOGS = 'logs';
const CHUNK_BYTES = 2 ** 20;

export interface BackedUp {
  readonly files: number;
  readonly bytes: number;
  /** Path of the market that the engine replays, which is no part of a backup; null: the generated one. */
  readonly market: string | null;
}

/**
 * Throws `not-found` where `dir` is no engine's folder, `conflict` where `file` exists, `store.full`, `store.corrupt`.
 */
export function backUp(dir: string, file: string, options: { readonly logs: boolean }): BackedUp {
  const database = join(dir, DATABASE);
  if (!existsSync(database)) {
    throw new EbbError('not-found', { what: 'this is no folder of an engine', got: dir, next: 'name it with --dir' });
  }
  if (existsSync(file)) {
    throw new EbbError('conflict', { what: 'the file exists', got: file, next: 'name another, or move it away' });
  }
  const partial = `${file}.${process.pid}.part`;
  try {
    const found = writeBackup(partial, { dir, database, ...options });
    renameSync(partial, file);
    return { ...found, market: readWorldRecord(dir)?.market ?? null };
  } catch (error) {
    throw isSqlite(error) ? classify(error, file) : error;
  } finally {
    for (const left of [partial, `${partial}-journal`]) rmSync(left, { force: true });
  }
}

function writeBackup(
  to: string,
  of: { readonly dir: string; readonly database: string; readonly logs: boolean },
): { readonly files: number; readonly bytes: number } {
  // Made first, so that it is its owner's alone from the start. SQLite fills an empty file.
  closeSync(openSync(to, 'wx', 0o600));
  const source = new DatabaseSync(of.database, { readOnly: true, timeout: 30_000 });
  try {
    source.prepare('VACUUM INTO ?').run(to);
  } finally {
    source.close();
  }
  const db = new DatabaseSync(to);
  try {
    db.exec(`BEGIN;
      CREATE TABLE ${FILES} (id INTEGER PRIMARY KEY, path TEXT NOT NULL, mode INTEGER NOT NULL, link TEXT) STRICT;
      CREATE TABLE ${CHUNKS} (file INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (file, part)) STRICT;`);
    const count = { files: 0, bytes: 0 };
    for (const path of filesBelow(of.dir, of.logs ? [...NEEDED, LOGS] : NEEDED)) {
      const bytes = putFile(db, of.dir, path);
      if (bytes === null) continue;
      count.files++;
      count.bytes += bytes;
    }
    db.exec('COMMIT');
    return count;
  } finally {
    db.close();
  }
}

/** Paths relative to `dir` of files and links at or below the given places. */
function* filesBelow(dir: string, places: readonly string[]): Generator<string> {
  for (const place of places) {
    const stat = lstatSync(join(dir, place), { throwIfNoEntry: false });
    if (stat === undefined) continue;
    if (!stat.isDirectory()) yield place;
    else
      yield* filesBelow(
        dir,
        namesIn(join(dir, place)).map((name) => join(place, name)),
      );
  }
}

/** A folder may be removed while it is read, once its task has succeeded. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Size of the file; null if it was removed meanwhile, or is no file (a socket, say). */
function putFile(db: DatabaseSync, dir: string, path: string): number | null {
  const full = join(dir, path);
  const stat = lstatSync(full, { throwIfNoEntry: false });
  if (stat === undefined || !(stat.isFile() || stat.isSymbolicLink())) return null;
  const put = db.prepare(`INSERT INTO ${FILES} (path, mode, link) VALUES (?, ?, ?)`);
  if (stat.isSymbolicLink()) {
    put.run(path, 0, readlinkSync(full));
    return 0;
  }
  let fd: number;
  try {
    fd = openSync(full, 'r');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
  try {
    const id = put.run(path, stat.mode & 0o777, null).lastInsertRowid;
    const chunk = db.prepare(`INSERT INTO ${CHUNKS} VALUES (?, ?, ?)`);
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let bytes = 0;
    for (let part = 0, got = readSync(fd, buffer); got > 0; part++, got = readSync(fd, buffer)) {
      chunk.run(id, part, buffer.subarray(0, got));
      bytes += got;
    }
    return bytes;
  } finally {
    closeSync(fd);
  }
}

export interface Restored {
  readonly files: number;
  readonly unfinishedJobs: number;
  readonly market: string | null;
}

/**
 * Makes the folder of an engine out of a backup: whole or not at all. Its clock goes on where it stood. Throws
 * `not-found`, `store.corrupt` for a file that is no backup or is damaged, `store.newer`, `conflict` where `dir` holds
 * something, `store.full`.
 */
export async function restore(file: string, dir: string): Promise<Restored> {
  if (!existsSync(file)) throw new EbbError('not-found', { what: 'there is no such backup', got: file });
  const folder = makeEngineFolder(dir);
  if (readdirSync(dir).length > 0) {
    throw new EbbError('conflict', {
      what: 'a backup is restored into a new folder, and this one holds something',
      got: dir,
      next: 'name another with --dir, or move this one away',
    });
  }
  // Beside its place: on the same disk, so that it can be renamed.
  const partial = `${dir}.${process.pid}.restoring`;
  try {
    mkdirSync(partial, { mode: 0o700 });
    const files = unpack(file, partial);
    const found = await goOnIn(partial);
    rmdirSync(dir);
    renameSync(partial, dir);
    return { files, ...found };
  } catch (error) {
    folder.undo();
    throw isSqlite(error) ? unusable(classify(error, file)) : error;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/** Error for a damaged backup, as opposed to an engine's folder. */
const unusable = (fault: EbbError): EbbError =>
  fault.code === 'store.corrupt' ? new EbbError(fault.code, { ...fault.facts, next: ANOTHER }) : fault;
const ANOTHER = 'name another file that `ebb backup` wrote';

function unpack(file: string, dir: string): number {
  const database = join(dir, DATABASE);
  copyFileSync(file, database);
  chmodSync(database, 0o600);
  const db = new DatabaseSync(database);
  try {
    const check = db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check'];
    const isBackup = db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(FILES) !== undefined;
    if (check !== 'ok' || !isBackup) {
      throw new EbbError('store.corrupt', {
        what: isBackup ? 'the backup is damaged' : 'this is no backup of an engine',
        got: isBackup ? `${file}: ${String(check)}` : file,
        next: ANOTHER,
      });
    }
    const files = db.prepare(`SELECT id, path, mode, link FROM ${FILES} ORDER BY link IS NOT NULL, id`).all();
    for (const row of files) unpackFile(db, dir, row);
    db.exec(`DROP TABLE ${CHUNKS}; DROP TABLE ${FILES}; VACUUM;`);
    return files.length;
  } finally {
    db.close();
  }
}

/** Links come last: nothing is written through one. */
function unpackFile(db: DatabaseSync, dir: string, row: Readonly<Record<string, SQLOutputValue>>): void {
  const path = normalize(String(row['path']));
  if (isAbsolute(path) || path.split(sep)[0] === '..') {
    throw new EbbError('store.corrupt', { what: 'the backup holds a file outside of the folder', got: path });
  }
  const full = join(dir, path);
  mkdirSync(dirname(full), { recursive: true, mode: 0o700 });
  if (row['link'] !== null) {
    symlinkSync(String(row['link']), full);
    return;
  }
  const fd = openSync(full, 'wx', Number(row['mode']));
  try {
    for (const { data } of db
      .prepare(`SELECT data FROM ${CHUNKS} WHERE file = ? ORDER BY part`)
      .iterate(Number(row['id']))) {
      writeAll(fd, data as Uint8Array);
    }
  } finally {
    closeSync(fd);
  }
}

/** Sets the clock to where the engine stood: its jobs have not grown older while there was no engine. */
async function goOnIn(dir: string): Promise<Omit<Restored, 'files'>> {
  const store = openSqliteStore({ path: join(dir, DATABASE) });
  try {
    const { jobs } = await store.loadActive();
    const { lastMs } = await earlierLife(store);
    const world = readWorldRecord(dir);
    if (world !== null && lastMs !== null) {
      writeWorldRecord(dir, { ...world, wallMs: wallTime.epochMs(), engineMs: Math.max(lastMs, world.engineMs) });
    }
    return { unfinishedJobs: jobs.length, market: world?.market ?? null };
  } finally {
    await store.close();
  }
}

const isSqlite = (error: unknown): boolean => typeof (error as { errcode?: unknown } | null)?.errcode === 'number';
