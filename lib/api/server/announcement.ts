/**
 * Announcements of this user's listening engines: one small file each in a private folder, with the address and the
 * place of the token. The command line finds the token of an engine by its address.
 *
 * Lifecycle: written when an engine listens, removed when it stops. A killed engine leaves its file. Without the
 * process that it names the file does not count, and the next engine removes it. So a token never reaches another
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
  /** Absolute path; null: no token, or one that the user keeps elsewhere. */
  tokenFile: z.string().nullable(),
  pid: z.int().positive(),
  /** Start time of the process, which distinguishes it from later ones with its number. */
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

/** Announces an engine of this process; the result withdraws it. Throws errors of the file system. */
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

/** Engine of this user with the address for requests. */
export interface AnnouncedEngine {
  readonly url: string;
  /** Null: no token, or one that the user keeps elsewhere. */
  readonly token: string | null;
}

/**
 * Engine of this user at an address; null: none. Over plain HTTP `localhost` is replaced by the engine's own address:
 * another user may listen at the other addresses of the name.
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
    // No engine was announced yet, or the user's home is unreadable.
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
 * True for an engine at the address. One that listens on all addresses also listens on loopback; single loopback
 * addresses differ.
 */
function isAt({ url }: Announcement, asked: URL): boolean {
  const own = new URL(url);
  if (own.protocol !== asked.protocol || portOf(own) !== portOf(asked)) return false;
  const [listens, wanted] = [hostOf(own), hostOf(asked)];
  if (listens === wanted) return true;
  if (wanted === 'localhost') return isLoopback(listens) || listens in ANY;
  return isLoopback(wanted) && (listens === '::' || (listens === '0.0.0.0' && !wanted.includes(':')));
}

/** Wildcard addresses, and an address at which such an engine answers. */
const ANY: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };

function addressOf({ url }: Announcement, asked: URL): string {
  // A certificate identifies the engine, and it names hosts, not addresses.
  if (asked.protocol === 'https:' || hostOf(asked) !== 'localhost') return asked.href;
  const own = new URL(url);
  const address = new URL(asked.href);
  address.hostname = ANY[hostOf(own)] ?? own.hostname;
  return address.href;
}

const portOf = ({ port, protocol }: URL): string => (port === '' ? (protocol === 'https:' ? '443' : '80') : port);
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');
