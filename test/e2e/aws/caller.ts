import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Fields of /proc/net/tcp that count here: addresses and the number of the socket (proc(5)). */
const LOCAL = 1;
const REMOTE = 2;
const INODE = 9;

/**
 * The process of this machine whose end of a connection to port `to` is port `from`; null when there is none. Linux
 * only.
 */
export function callerAt(from: number, to: number): number | null {
  const ends = [hex(from), hex(to)];
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((text) => text.trim().split(/\s+/))
    .find((f) => ends[0] === f[LOCAL]?.split(':')[1] && ends[1] === f[REMOTE]?.split(':')[1]);
  if (line === undefined) return null;
  const socket = `socket:[${line[INODE] ?? ''}]`;
  const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && linksOf(`/proc/${name}/fd`).has(socket));
  return pid === undefined ? null : Number(pid);
}

const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');

/** Of a process that has ended meanwhile: none. */
function linksOf(folder: string): ReadonlySet<string> {
  try {
    return new Set(readdirSync(folder).map((name) => linkAt(`${folder}/${name}`)));
  } catch {
    return new Set();
  }
}

function linkAt(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
