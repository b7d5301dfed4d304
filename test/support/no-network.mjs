/**
 * `node --import`: nothing in the process gets to the network. Who tries is told that there is none, and written into the file
 * that EBB_TRIED names.
 */
import dgram from 'node:dgram';
import dns from 'node:dns';
import { appendFileSync } from 'node:fs';
import net from 'node:net';
import { syncBuiltinESMExports } from 'node:module';

function refuse(what) {
  if (process.env.EBB_TRIED !== undefined) appendFileSync(process.env.EBB_TRIED, `${what}\n`);
  throw Object.assign(new Error(`${what}: there is no network`), { code: 'ENETUNREACH' });
}

net.Socket.prototype.connect = (...to) => refuse(`connect ${JSON.stringify(to)}`);
dgram.Socket.prototype.send = () => refuse('send');
for (const name of Object.keys(dns).filter((each) => /^(?:lookup|resolve|reverse)/.test(each))) {
  dns[name] = (host) => refuse(`dns ${host}`);
  if (name in dns.promises) dns.promises[name] = async (host) => refuse(`dns ${host}`);
}
syncBuiltinESMExports();
