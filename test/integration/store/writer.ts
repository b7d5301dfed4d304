/**
 * A process that writes until it is killed. For each round n: a submission, then a commit that moves job, task,
 * instance, ledger, event and memory to n together. Prints n once both have been acknowledged.
 */
import { writeSync } from 'node:fs';
import { openSqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import { instanceId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import { instance, job, ledgerRow, submission, task } from '../../contract/store-samples.ts';

const [path = '', from = '0'] = process.argv.slice(2);
const store = openSqliteStore({ path });
const token = await store.takeLease('writer');
for (let n = Number(from); ; n++) {
  await store.submit([submission(`j${n}a`, `k${n}a`), submission(`j${n}b`, `k${n}b`)]);
  const at = epochMs(n);
  await store.commit(token, [
    { put: 'job', value: job(`j${n}a`, { state: 'running', startedMs: at }) },
    { put: 'task', value: task('shared', 0, { attempts: n }) },
    { put: 'instance', value: instance('i-1', { requestedMs: at }) },
    { put: 'ledger', instance: instanceId('i-1'), value: [ledgerRow({ usd: n }), ledgerRow({ usd: n })] },
    { put: 'event', value: { atMs: at, type: 'round', job: null, text: String(n), data: {} } },
    { put: 'memory', key: 'round', value: String(n) },
    { put: 'memory', key: 'pad', value: 'x'.repeat((n * 977) % 20_000) },
  ]);
  writeSync(1, `${n}\n`);
}
