/**
 * Engines of this user that listen, one small file each in a private folder of the user: the address, and where the
 * token is. The command line finds the token of an engine by its address.
 *
 * Lifecycle: written when an engine listens, removed when it stops. A killed engine leaves its file; the process that
 * it names is gone then, the file counts as absent, and the next engine removes it. So a token never goes to another
 * program that took over the address.
 */
import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { readIfThere, replaceFile } from '../../drivers/local/fleet/files.ts';
import { processStart } from '../../drivers/local/fleet/processes.ts';
import { isLoopback } from './guard.ts';
import { tokenIn } from './token.ts';

const announcement = z.object({
  version: z.literal(1),
  url: z.url(),
  /** Absolute path of the engine's folder. */
  dir: z.string(),
  /** Absolute path; null: the engine asks for no token, or for one that its user keeps elsewhere. */
  tokenFile: z.string().nullable(),
  pid: z.int().positive(),
  /** Start of the process, which no later process of the same number shares. */
  started: z.string(),
});
type Announcement = z.infer<typeof announcement>;
type Env = Readonly<Record<string, string | undefined>>;

/** Folder of the announcements: `$XDG_STATE_HOME/ebbtide/engines`, by default in ~/.local/state. */
export function announcementsFolder(env: Env): string {
  const [given = '', home = ''] = [env['XDG_STATE_HOME'], env['HOME']];
  const state = isAbsolute(given) ? given : join(isAbsolute(home) ? home : homedir(), '.local', 'state');
  return join(state, 'ebbtide', 'engines');
}

/** Announces an engine of this process; the result takes it back. Throws what the file system throws. */
export function announce(engine: Pick<Announcement, 'url' | 'dir' | 'tokenFile'>, env: Env): () => void {
  const folder = announcementsFolder(env);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  for (const { path, is } of announcements(folder)) if (is === null || !isAlive(is)) rmSync(path, { force: true });
  const path = join(folder, `${new URL(engine.url).host.replaceAll(/[^\w.-]/g, '_')}.json`);
  const started = processStart(process.pid) ?? '';
  const text = JSON.stringify({ version: 1, ...engine, pid: process.pid, started } satisfies Announcement);
  replaceFile(path, text);
  return () => rmSync(path, { force: true });
}

/** An engine of this user, with the address at which to ask it. */
export interface AnnouncedEngine {
  readonly url: string;
  /** Null: it asks for no token, or for one that its user keeps elsewhere. */
  readonly token: string | null;
}

/**
 * The engine of this user that listens at an address; null: there is none. `localhost` has several addresses, of which
 * another user may listen at those that the engine has not taken: over plain HTTP it is replaced by the engine's own.
 */
export function announcedEngine(address: string, env: Env): AnnouncedEngine | null {
  const asked = new URL(address);
  const found = announcements(announcementsFolder(env)).find(({ is }) => is !== null && isAt(is, asked) && isAlive(is));
  const is = found?.is ?? null;
  if (is === null) return null;
  return { url: addressOf(is, asked), token: is.tokenFile === null ? null : tokenIn(is.tokenFile) };
}

function announcements(folder: string): { readonly path: string; readonly is: Announcement | null }[] {
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  } catch {
    // No engine was ever announced here, or the home of the user cannot be read.
    return [];
  }
  return names.map((name) => ({ path: join(folder, name), is: announcementIn(join(folder, name)) }));
}

function announcementIn(path: string): Announcement | null {
  try {
    return announcement.safeParse(JSON.parse(readIfThere(path) ?? 'null')).data ?? null;
  } catch {
    return null;
  }
}

const isAlive = ({ pid, started }: Announcement): boolean => processStart(pid) === started;

/**
 * An engine that listens on every address of the machine also listens on loopback. One loopback address is not another.
 */
function isAt({ url }: Announcement, asked: URL): boolean {
  const own = new URL(url);
  if (own.protocol !== asked.protocol || portOf(own) !== portOf(asked)) return false;
  const [listens, wanted] = [hostOf(own), hostOf(asked)];
  if (listens === wanted) return true;
  if (wanted === 'localhost') return isLoopback(listens) || listens in ANY;
  return isLoopback(wanted) && (listens === '::' || (listens === '0.0.0.0' && !wanted.includes(':')));
}

/** Addresses that stand for all of the machine, and one at which such an engine can be asked. */
const ANY: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };

function addressOf({ url }: Announcement, asked: URL): string {
  // A certificate tells an engine from an impostor, and names hosts, not addresses.
  if (asked.protocol === 'https:' || hostOf(asked) !== 'localhost') return asked.href;
  const own = new URL(url);
  const address = new URL(asked.href);
  address.hostname = ANY[hostOf(own)] ?? own.hostname;
  return address.href;
}

const portOf = ({ port, protocol }: URL): string => (port === '' ? (protocol === 'https:' ? '443' : '80') : port);
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');
