/**
 * Module for `node --import` that blocks the network. Attempts fail and are written into the file EBB_TRIED, and so are
 * processes left behind, which might try later.
 */
import childProcess from 'node:child_process';
import dgram from 'node:dgram';
import dns from 'node:dns';
import { appendFileSync } from 'node:fs';
import net from 'node:net';
import { syncBuiltinESMExports } from 'node:module';

function note(what) {
  if (process.env.EBB_TRIED !== undefined) appendFileSync(process.env.EBB_TRIED, `${what}\n`);
}

function refuse(what) {
  note(what);
  throw Object.assign(new Error(`${what}: there is no network`), { code: 'ENETUNREACH' });
}

const hostIn = ([first]) => {
  const [to] = Array.isArray(first) ? first : [first];
  return to?.host ?? to?.path ?? String(to);
};
net.Socket.prototype.connect = (...to) => refuse(`connect ${hostIn(to)}`);
dgram.Socket.prototype.send = () => refuse('send');
for (const name of Object.keys(dns).filter((each) => /^(?:lookup|resolve|reverse)/.test(each))) {
  dns[name] = (host) => refuse(`dns ${host}`);
  if (name in dns.promises) dns.promises[name] = async (host) => refuse(`dns ${host}`);
}
const { spawn } = childProcess;
childProcess.spawn = (command, ...rest) => {
  if (rest.some((each) => each?.detached === true)) note(`left behind ${command} ${rest[0]}`);
  return spawn(command, ...rest);
};
syncBuiltinESMExports();
