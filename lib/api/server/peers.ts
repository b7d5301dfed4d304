import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { userInfo } from 'node:os';
import type { Identity } from '../../domain/caller.ts';
import { isLoopback } from './guard.ts';

/** User of this process. */
export function ownUser(): Identity {
  const { uid, username } = userInfo();
  // Windows has no user numbers.
  return uid < 0 ? { id: `user:${username}` } : { id: `uid:${uid}`, name: username };
}

/** Columns of /proc/net/tcp: the user, and the addresses of both ends (proc(5)). */
const LOCAL = 1;
const REMOTE = 2;
const UID = 7;
/** Column of the inode: 0 if no process holds the near end any more; its user is then 0 as well. */
const INODE = 9;

/**
 * Users behind connections from this machine. Linux lists every connection with its user; on other systems, and for
 * other machines, only the address is known. Each connection is looked up once: O(connections of the machine).
 */
export class Peers {
  readonly #known = new WeakMap<Socket, Promise<Identity>>();

  userOf(socket: Socket): Promise<Identity> {
    let user = this.#known.get(socket);
    if (user === undefined) {
      user = lookedUp(socket);
      this.#known.set(socket, user);
    }
    return user;
  }
}

async function lookedUp({ remoteAddress, remotePort, localAddress, localPort }: Socket): Promise<Identity> {
  const address = unmapped(remoteAddress ?? '');
  const unknown = { id: `address:${address}` };
  if (!isLoopback(address) || remotePort === undefined || localAddress === undefined || localPort === undefined)
    return unknown;
  const ends = { theirs: endOf(address, remotePort), ours: endOf(unmapped(localAddress), localPort) };
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const text = await readFile(table, 'latin1').catch(() => '');
    const uid = uidIn(text, ends);
    if (uid !== null) return named(uid);
  }
  return unknown;
}

const unmapped = (address: string): string => address.replace(/^::ffff:(?=[\d.]+$)/, '');

/** End of a connection in both notations: IPv4, and IPv4 mapped into IPv6. */
type End = readonly string[];

function endOf(address: string, port: number): End {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  if (address === '::1') return [`00000000000000000000000001000000:${hexPort}`];
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const hex = [d, c, b, a].map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join('');
  return [`${hex}:${hexPort}`, `0000000000000000FFFF0000${hex}:${hexPort}`];
}

/** User of the connection with their near end; null if it is not listed or no process holds it any more. */
export function uidIn(table: string, { theirs, ours }: { readonly theirs: End; readonly ours: End }): number | null {
  for (const line of table.split('\n')) {
    if (!theirs.some((end) => line.includes(end))) continue;
    const columns = line.trim().split(/\s+/);
    const uid = Number(columns[UID]);
    if (!theirs.includes(columns[LOCAL] ?? '') || !ours.includes(columns[REMOTE] ?? '')) continue;
    return Number.isInteger(uid) && columns[INODE] !== '0' ? uid : null;
  }
  return null;
}

async function named(uid: number): Promise<Identity> {
  const own = userInfo();
  if (uid === own.uid) return ownUser();
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const name = passwd
    .split('\n')
    .map((line) => line.split(':'))
    .find((fields) => fields[2] === String(uid))?.[0];
  return name === undefined || name === '' ? { id: `uid:${uid}` } : { id: `uid:${uid}`, name };
}
