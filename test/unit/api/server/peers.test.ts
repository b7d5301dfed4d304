import { createServer, connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { userInfo } from 'node:os';
import { describe, expect, it } from '@jest/globals';
import { ownUser, Peers, uidIn } from '../../../../lib/api/server/peers.ts';

/** As Linux writes them: 127.0.0.1:8080 asked from port 45000 by user 1001, and the server's own end. */
const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:AFC8 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100007F:AFC8 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 3 1 0 20 4 30 10 -1
`;

describe('the user behind a connection', () => {
  it('is the one of its far end, not of the server', () => {
    const ends = { theirs: ['0100007F:AFC8'], ours: ['0100007F:1F90'] };
    expect(uidIn(TABLE, ends)).toBe(1001);
    expect(uidIn(TABLE, { theirs: ends.ours, ours: ends.theirs })).toBe(0);
    expect(uidIn(TABLE, { theirs: ['0100007F:AFC9'], ours: ends.ours })).toBeNull();
    expect(uidIn('', ends)).toBeNull();
  });

  it('is unknown once its program has let go of the connection, which is then listed as user 0', () => {
    const closed = TABLE.replace('AFC8 0100007F:1F90 01', 'AFC8 0100007F:1F90 05').replace(
      '1001        0 3',
      '   0        0 0',
    );
    expect(uidIn(closed, { theirs: ['0100007F:AFC8'], ours: ['0100007F:1F90'] })).toBeNull();
  });

  it('is found for IPv4 and IPv6 on Linux; elsewhere the address is all that is known', async () => {
    for (const host of ['127.0.0.1', '::1']) {
      const server = createServer();
      const accepted = once(server, 'connection') as Promise<[Socket]>;
      server.listen(0, host);
      const listens = await Promise.race([
        once(server, 'listening').then(() => true),
        once(server, 'error').then(() => false),
      ]);
      // Containers often have no IPv6.
      if (!listens) continue;
      const client = connect((server.address() as { port: number }).port, host);
      const [socket] = await accepted;
      const user = await new Peers().userOf(socket);
      expect(user).toEqual(process.platform === 'linux' ? ownUser() : { id: `address:${host}` });
      client.destroy();
      socket.destroy();
      server.close();
    }
    if (process.platform !== 'win32') {
      expect(ownUser()).toEqual({ id: `uid:${process.getuid?.()}`, name: userInfo().username });
    }
  });
});
