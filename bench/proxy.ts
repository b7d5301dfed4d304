/**
 * The reverse proxy of local services, beside the same server asked directly.
 *   npm run bench:proxy -- [--connections 50] [--for 10] [--rounds 3] [--rate 500] [--json]
 *
 * One server (a Node process that answers 2 bytes), the proxy in its thread, and the client in this process share the
 * machine. First as many requests as get through; then the latency at `--rate` requests per second, for both. Rounds
 * alternate; the middle one of each is printed. `--json` prints records for bench/results, and everything else on
 * standard error.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { LocalTraffic } from '../lib/drivers/local/traffic/local-traffic.ts';
import type { Route } from '../lib/ports/traffic.ts';
import { attemptId, instanceId } from '../lib/kernel/ids.ts';
import { seconds } from '../lib/kernel/units.ts';
import { machine, percentile } from './figures.ts';
import { printRecords } from './record.ts';

const { values: args } = parseArgs({
  options: {
    connections: { type: 'string', default: '50' },
    for: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    rate: { type: 'string', default: '500' },
    json: { type: 'boolean', default: false },
  },
});
const say = args.json ? console.error : console.log;
const COMMAND = 'npm run bench:proxy';
const [TARGET_RPS, TARGET_P99_MS] = [10_000, 5];
const SERVER = `
  const { createServer } = require('node:http');
  const server = createServer((_, answer) => answer.end('ok'));
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

const server = spawn(process.execPath, ['-e', SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
const traffic = new LocalTraffic();
try {
  const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
  await measure(`http://127.0.0.1:${line}`, await behindProxy(Number(line)));
} finally {
  await traffic.close();
  server.kill();
}

/** Address of the service once its replica is healthy. */
async function behindProxy(port: number): Promise<string> {
  const route: Route = {
    service: 'bench',
    target: { latencyS: seconds(1), percent: 95 },
    health: { path: '/', intervalS: seconds(1), timeoutS: seconds(1), graceS: seconds(10), failures: 3 },
    concurrency: null,
    drainS: seconds(1),
    port: null,
    targets: [{ replica: 1, instance: instanceId('i-bench'), attempt: attemptId('a-bench'), port, mode: 'serve' }],
  };
  await traffic.route([route]);
  while ((await traffic.states('bench', route.targets)).get(1)?.health !== 'healthy') await delay(100);
  const address = await traffic.address('bench');
  if (address === null) throw new Error('the proxy has no address');
  return address;
}

interface Seen {
  readonly rps: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

async function ask(url: string, rate?: number): Promise<Seen> {
  const { requests, latency, errors, non2xx } = await autocannon({
    url,
    connections: Number(args.connections),
    duration: Number(args.for),
    ...(rate === undefined ? {} : { overallRate: rate }),
  });
  if (errors + non2xx > 0) throw new Error(`${errors} errors and ${non2xx} answers other than 2xx from ${url}`);
  return { rps: requests.average, p50Ms: latency.p50, p99Ms: latency.p99 };
}

async function measure(direct: string, proxied: string): Promise<void> {
  const rate = Number(args.rate);
  say(
    `proxy: ${machine()}\n  ${args.connections} connections, ${args.for} s, ${args.rounds} rounds; latency at ${rate} rps`,
  );
  const most: Record<'direct' | 'proxied', Seen[]> = { direct: [], proxied: [] };
  const calm: typeof most = { direct: [], proxied: [] };
  for (let round = 0; round < Number(args.rounds); round++) {
    most.direct.push(await ask(direct));
    most.proxied.push(await ask(proxied));
    calm.direct.push(await ask(direct, rate));
    calm.proxied.push(await ask(proxied, rate));
  }
  const middle = (seen: readonly Seen[], of: keyof Seen): number =>
    percentile(
      seen.map((s) => s[of]),
      0.5,
    );
  const rps = { direct: middle(most.direct, 'rps'), proxied: middle(most.proxied, 'rps') };
  const p99 = { direct: middle(calm.direct, 'p99Ms'), proxied: middle(calm.proxied, 'p99Ms') };
  const added = p99.proxied - p99.direct;
  say(
    `  most requests per second: ${Math.round(rps.proxied)} through the proxy, ${Math.round(rps.direct)} directly (${(rps.proxied / rps.direct).toFixed(2)})`,
  );
  say(`  at ${rate} rps, p50: ${middle(calm.proxied, 'p50Ms')} ms and ${middle(calm.direct, 'p50Ms')} ms`);
  say(`  at ${rate} rps, p99: ${p99.proxied} ms and ${p99.direct} ms, so ${added} ms are added`);
  if (!args.json) return;
  printRecords([
    {
      what: 'Local proxy: most requests per second, one replica and the client on the same machine',
      reach: `>= ${TARGET_RPS}`,
      seen: `${Math.round(rps.proxied)} (directly ${Math.round(rps.direct)})`,
      met: rps.proxied >= TARGET_RPS,
      command: COMMAND,
    },
    {
      what: `Local proxy: latency that it adds at ${rate} requests per second, 99th percentile`,
      reach: `< ${TARGET_P99_MS} ms`,
      seen: `${added} ms`,
      met: added < TARGET_P99_MS,
      command: COMMAND,
    },
  ]);
}
