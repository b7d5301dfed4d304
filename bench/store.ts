/**
 * Intake of the SQLite store: durable single-job submissions from concurrent callers. Then the cost of loading a
 * cycle's state with a history.
 *
 *   node bench/store.ts [jobs=20000] [callers=32] [history=20000]
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../lib/drivers/local/store/sqlite-store.ts';
import { jobId } from '../lib/kernel/ids.ts';
import type { Store } from '../lib/ports/store.ts';
import { job } from './load/values.ts';

const [jobs = 20_000, callers = 32, history = 20_000] = process.argv.slice(2).map(Number);
const folder = mkdtempSync(join(tmpdir(), 'ebb-bench-store-'));
const path = join(folder, 'ebb.db');

const quantile = (sorted: readonly number[], q: number): number => sorted[Math.floor(q * (sorted.length - 1))] ?? 0;
const say = (name: string, value: string): void => console.log(`${name.padEnd(52)} ${value}`);

async function submitAll(store: Store, from: number, count: number): Promise<number[]> {
  let next = from;
  const latencies: number[] = [];
  const caller = async (): Promise<void> => {
    while (next < from + count) {
      const id = `j${next++}`;
      const began = performance.now();
      await store.submit([{ job: job(id), idempotency: { key: id, digest: id } }]);
      latencies.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return latencies.sort((a, b) => a - b);
}

const store = openSqliteStore({ path });
try {
  console.log(
    `node ${process.version}, ${jobs} jobs, ${callers} callers, history of ${history} jobs, database in ${folder}`,
  );
  await submitAll(store, 0, 500);
  const began = performance.now();
  const latencies = await submitAll(store, 500, jobs);
  const tookS = (performance.now() - began) / 1000;
  say('submissions, durable before the answer', `${Math.round(jobs / tookS)} /s`);
  say('latency p50, p99, max', [0.5, 0.99, 1].map((q) => `${quantile(latencies, q).toFixed(1)} ms`).join(', '));
  say('bytes per job', String(Math.round(statSync(path).size / (jobs + 500))));

  const token = await store.takeLease('bench');
  const over = Array.from({ length: jobs + 400 }, (_, i) => `j${i}`);
  for (let i = 0; i < over.length; i += 5000) {
    const values = over.slice(i, i + 5000).map((id) => job(id, { state: 'succeeded' }));
    const start = performance.now();
    await store.commit(
      token,
      values.map((value) => ({ put: 'job' as const, value })),
    );
    if (i === 0) say('commit of 5000 job changes', `${(performance.now() - start).toFixed(0)} ms`);
  }
  await submitAll(store, jobs + 500, history);
  const more = Array.from({ length: history }, (_, i) => jobId(`j${jobs + 500 + i}`));
  await store.commit(
    token,
    more.map((id) => ({ put: 'job' as const, value: job(id, { state: 'succeeded' }) })),
  );
  for (const round of ['first', 'again']) {
    const start = performance.now();
    const active = await store.loadActive();
    say(
      `load of ${active.jobs.length} active of ${jobs + history + 500} jobs, ${round}`,
      `${(performance.now() - start).toFixed(1)} ms`,
    );
  }
  const start = performance.now();
  const page = await store.jobs({ states: ['pending'], owner: 'ana' }, 50, null);
  say(`page of ${page.items.length} pending jobs`, `${(performance.now() - start).toFixed(1)} ms`);
} finally {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
}
