/**
 * Cost of a deployment's control plane: dollars per 1,000 single-task jobs, and dollars a month without work.
 *
 *   npm run bench:aws-cost [-- --jobs 60 --over 0 --idle 130 --keep FILE]
 *
 * The app is deployed on LocalStack with EC2 and ECS in the double, as in the rehearsal (test/e2e/aws). Jobs are
 * submitted one by one through API Gateway, at full speed or spread over `--over` wall seconds, and run to their
 * settlement.
 *
 * Counted: invocations and processor time of each function, and bytes printed. Also calls of S3, SQS and Step
 * Functions, and of DynamoDB with their consumed units. LocalStack's durations are not used: duration is processor time
 * by the memory's share of a CPU, plus usual waits per call (bench/aws/bill.ts). Takes 6 minutes, and 3 more than
 * `--over`.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DescribeTableCommand, DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { ListBucketsCommand, S3Client } from '@aws-sdk/client-s3';
import { fleetEvent, noticeOf } from '../lib/drivers/aws/fleet/event-notices.ts';
import { DynamoStore } from '../lib/drivers/aws/store/dynamo-store.ts';
import { NEW } from '../lib/drivers/aws/store/keys.ts';
import { Table } from '../lib/drivers/aws/store/dynamo-table.ts';
import { METRICS } from '../lib/drivers/aws/metrics/metrics.ts';
import { FUNCTIONS } from '../lib/infra/functions.ts';
import { EVERY } from '../lib/infra/triggers.ts';
import { PURCHASE_OPTIONS } from '../lib/infra/metrics.ts';
import { epochMs, plus, raw, seconds } from '../lib/kernel/units.ts';
import { builtInCatalogue } from '../lib/market/catalogue.ts';
import { traceOf } from '../lib/market/price-steps.ts';
import type { MarketTrace } from '../lib/market/trace.ts';
import { folderOf, start, stop } from '../scripts/localstack/server.ts';
import { wayToRun } from '../scripts/localstack/install.ts';
import { Rehearsal } from '../scripts/rehearsal/rehearsal.ts';
import {
  aroundThem,
  dearestFirst,
  functionOf,
  isWrite,
  scaled,
  summed,
  totalUsd,
  usesOf,
  type Answer,
  type FunctionUse,
} from './aws/bill.ts';
import { CallMeter, type MeteredCall } from './aws/meter.ts';
import { PRICES, PRICES_OF, type Usage } from './aws/price-list.ts';
import { machine } from './figures.ts';
import { onDemandUsdOf } from '../lib/domain/pool.ts';

const REGION = 'us-east-1';
const TYPE = 'c5.4xlarge';
const SPEED = 20;
const START_MS = epochMs(Date.UTC(2026, 0, 5));
const HISTORY_S = 8 * 86_400;
/** Wall seconds of a task: five minutes of the market. */
const TASK_S = 15;
const REACH = { per1000Jobs: 0.02, idleMonth: 1 } as const;
const MONTH_S = 730 * 3600;
/** Size of the table of a deployment that has done some work (docs/deploy.md): 50 MB. */
const STORED_GB = 0.05;
const CYCLE = ['snapshot', 'estimate', 'forecast', 'solve', 'record', 'act', 'confirm'] as const;

const { values: args } = parseArgs({
  options: {
    jobs: { type: 'string', default: '60' },
    over: { type: 'string', default: '0' },
    idle: { type: 'string', default: '130' },
    keep: { type: 'string' },
    from: { type: 'string' },
  },
});

/** Measurements of a run: all inputs of the bill. */
interface Metered {
  readonly jobs: number;
  /** Wall seconds of the submissions; 0: at full speed. Absent in earlier runs. */
  readonly overS?: number;
  readonly machine: string;
  readonly calls: readonly MeteredCall[];
  readonly answers: readonly Answer[];
  readonly requests: number;
  /** Events that rules send to the queue of `observe`; absent in runs before the queue. */
  readonly gathered?: number;
  /** Start and end of the work: jobs were submitted, run and settled. The idle time follows. */
  readonly fromMs: number;
  readonly doneMs: number;
  readonly endMs: number;
  readonly engineHours: number;
  readonly alarms: number;
  readonly dashboards: number;
}

/** Market with constant prices and unlimited capacity: only the control plane matters. */
function calmMarket(): MarketTrace {
  const entry = builtInCatalogue().entry(TYPE, START_MS);
  if (entry === null) throw new Error(`${TYPE} is not in the catalogue`);
  const onDemandUsdPerHour = onDemandUsdOf(entry);
  const markets = ['a', 'b'].map((letter) => ({
    type: entry.type,
    zone: `${REGION}${letter}`,
    onDemandUsdPerHour,
    prices: { atMs: Float64Array.of(raw(START_MS)), usdPerHour: Float64Array.of(onDemandUsdPerHour * 0.3) },
    availability: null,
  }));
  const endMs = plus(START_MS, seconds(HISTORY_S + 2 * 86_400));
  return traceOf({ name: 'calm', startMs: START_MS, endMs }, markets);
}

async function meteredRun(): Promise<Metered> {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-bench-meter-'));
  const way = wayToRun('functions');
  if (way.mode === null) throw new Error(`LocalStack cannot run here: ${way.missing}`);
  const localstack = await start(folderOf(process.pid, way.mode), process.pid, 'functions');
  const meter = new CallMeter();
  try {
    const trace = calmMarket();
    const { endpoint } = localstack;
    const aws = await meter.before(endpoint);
    const rehearsal = await meteredRehearsal(endpoint, { meter, folder, aws, trace });
    try {
      return await measured(rehearsal, { endpoint, meter, folder });
    } finally {
      await rehearsal.end();
    }
  } finally {
    meter.close();
    await stop(localstack);
    rmSync(folder, { recursive: true, force: true });
  }
}

function meteredRehearsal(
  endpoint: string,
  of: { readonly meter: CallMeter; readonly folder: string; readonly aws: string; readonly trace: MarketTrace },
): Promise<Rehearsal> {
  const { meter, folder, aws, trace } = of;
  return Rehearsal.begin(endpoint, {
    trace,
    from: plus(START_MS, seconds(HISTORY_S)),
    speed: SPEED,
    region: REGION,
    families: ['c5'],
    functions: async (double) => ({
      ...Object.fromEntries(['DYNAMODB', 'S3', 'SQS', 'SFN'].map((s) => [`AWS_ENDPOINT_URL_${s}`, aws])),
      ...Object.fromEntries(
        await Promise.all(
          ['EC2', 'ECS', 'CLOUDWATCH_LOGS'].map(
            async (s) => [`AWS_ENDPOINT_URL_${s}`, await meter.before(double)] as const,
          ),
        ),
      ),
      NODE_OPTIONS: `--import=${fileURLToPath(new URL('aws/preload.mjs', import.meta.url))}`,
      METER_FOLDER: folder,
    }),
  });
}

/** Submits the jobs, waits until all are over, and observes the idle deployment. */
async function measured(
  rehearsal: Rehearsal,
  { endpoint, meter, folder }: { readonly endpoint: string; readonly meter: CallMeter; readonly folder: string },
): Promise<Metered> {
  const jobs = Number(args.jobs);
  const { store, isAnyNew } = await storeOf(endpoint);
  await until('prices are known', 240, () => {
    const loaded = readdirSync(folder).map(nameIn);
    console.error(`loaded so far: ${loaded.join(', ')}`);
    return loaded.some((name) => functionOf(name) === 'prices');
  });
  await sleep(5_000);
  const fromMs = Date.now();
  const requests = await submitted(rehearsal, jobs);
  console.error(`${jobs} jobs submitted in ${((Date.now() - fromMs) / 1000).toFixed(0)} s`);
  await until('all jobs have ended', 900, async () => {
    // A request for jobs would commit the new ones, which is the task of the functions.
    if (await isAnyNew()) return false;
    const { items } = await store.jobs({ states: ['pending', 'running'] }, 200, null);
    console.error(`${items.length} jobs are not over`);
    return items.length === 0;
  });
  await until('all instances are given back', 400, async () => {
    return (await store.instances(true, 10, null)).items.length === 0;
  });
  await sleep(20_000);
  const doneMs = Date.now();
  console.error('idle');
  await sleep(Number(args.idle) * 1000);
  const { alarms, dashboards } = resourcesIn(rehearsal);
  return {
    jobs,
    overS: Number(args.over),
    machine: machine(),
    calls: meter.calls,
    answers: answersIn(folder),
    requests,
    fromMs,
    doneMs,
    endMs: Date.now(),
    gathered: rehearsal.double.events.filter(isGathered).length,
    engineHours: ((doneMs - fromMs) / 3_600_000) * SPEED,
    alarms,
    dashboards,
  };
}

/**
 * True for events of the queue, as in the rules (lib/infra/triggers.ts): warnings take another way, and empty events
 * none.
 */
function isGathered(event: unknown): boolean {
  const understood = fleetEvent.safeParse(event);
  const notice = understood.success ? noticeOf(understood.data) : null;
  return notice !== null && notice.is !== 'warned' && notice.is !== 'rebalance';
}

const nameIn = (file: string): string => file.replace(/-\d+\.jsonl$/, '');

function answersIn(folder: string): readonly Answer[] {
  return readdirSync(folder).flatMap((file) =>
    readFileSync(join(folder, file), 'utf8')
      .trim()
      .split('\n')
      .map((line, n) => ({ ...(JSON.parse(line) as Omit<Answer, 'isLoad'>), isLoad: n === 0 })),
  );
}

/** Store on LocalStack itself: these reads are not metered. */
async function storeOf(
  endpoint: string,
): Promise<{ readonly store: DynamoStore; readonly isAnyNew: () => Promise<boolean> }> {
  const at = { endpoint, region: REGION, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
  const dynamodb = new DynamoDBClient(at);
  const s3 = new S3Client({ ...at, forcePathStyle: true });
  const { TableNames = [] } = await dynamodb.send(new ListTablesCommand({}));
  for (const table of TableNames) {
    const { Table: described } = await dynamodb.send(new DescribeTableCommand({ TableName: table }));
    if (described?.GlobalSecondaryIndexes === undefined) continue;
    const { Buckets = [] } = await s3.send(new ListBucketsCommand({}));
    const bucket = Buckets.find((b) => /blobs/i.test(b.Name ?? ''))?.Name ?? '';
    const reader = new Table({ client: dynamodb, name: table });
    return {
      store: new DynamoStore({ dynamodb, s3, table, bucket }),
      isAnyNew: async () => (await reader.range({ pk: NEW, limit: 1 })).length > 0,
    };
  }
  throw new Error('the deployment has no table');
}

/** One request per job with its own key, as `ebb submit` sends it when it may repeat. */
async function submitted(rehearsal: Rehearsal, jobs: number): Promise<number> {
  const queue = Array.from({ length: jobs }, (_, n) => n);
  const beganMs = Date.now();
  const gapMs = (Number(args.over) * 1000) / jobs;
  const worker = async (): Promise<void> => {
    for (let n = queue.shift(); n !== undefined; n = queue.shift()) {
      await sleep(Math.max(0, beganMs + n * gapMs - Date.now()));
      if (n > 0 && n % 20 === 0) console.error(`${n} jobs submitted`);
      const answer = await fetch(`${rehearsal.apiUrl}/api/jobs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': `bench-${n}` },
        body: JSON.stringify({
          name: `simulate-${n % 10}`,
          owner: 'bench',
          command: ['sleep', String(TASK_S)],
          workdir: '/',
          resources: { cpu: 1, memory: '1GiB' },
          expectedRuntime: `${(TASK_S * SPEED) / 60}m`,
          deadline: '6h',
        }),
      });
      if (answer.status !== 201) throw new Error(`submission ${n}: ${answer.status} ${await answer.text()}`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  return jobs;
}

async function until(what: string, withinS: number, look: () => boolean | Promise<boolean>): Promise<void> {
  const patience = Date.now() + withinS * 1000;
  while (!(await look())) {
    if (Date.now() > patience) throw new Error(`not within ${withinS} s: ${what}`);
    await sleep(3000);
  }
}

/** Resources of the synthesised template, because LocalStack skips dashboards. */
function resourcesIn(rehearsal: Rehearsal): { readonly alarms: number; readonly dashboards: number } {
  const resources = Object.values(rehearsal.template.Resources);
  const alarms = resources.filter((r) => r.Type === 'AWS::CloudWatch::Alarm');
  // An alarm is billed by the metrics that it evaluates.
  const metrics = alarms.reduce((sum, { Properties = {} }) => {
    const of = Properties['Metrics'];
    return sum + (Array.isArray(of) ? of.filter((m: { Expression?: string }) => m.Expression === undefined).length : 1);
  }, 0);
  return { alarms: metrics, dashboards: resources.filter((r) => r.Type === 'AWS::CloudWatch::Dashboard').length };
}

/**
 * Idle sweeps compact the log of these jobs; that cost is theirs, whenever it happens. A sweep with nothing to compact
 * writes nothing.
 */
const isCompaction = (call: MeteredCall): boolean =>
  functionOf(call.caller) === 'sweep' && call.service === 'dynamodb' && isWrite(call);

function report(of: Metered): void {
  const within = (from: number, to: number) => (x: { readonly atMs: number }) => x.atMs >= from && x.atMs < to;
  const busy = within(of.fromMs, of.doneMs);
  // Scheduled functions run with or without jobs: they are part of the month.
  const isClocks = (name: string): boolean => ['prices', 'sweep'].includes(functionOf(name) ?? '');
  const calls = of.calls.filter((c) => (busy(c) && !isClocks(c.caller)) || (c.atMs >= of.fromMs && isCompaction(c)));
  const uses = usesOf(
    of.answers.filter((a) => busy(a) && !isClocks(a.name)),
    calls,
  );
  const observed = uses.find((u) => u.name === 'observe')?.invocations ?? 0;
  const around = aroundThem({
    requests: of.requests,
    queueBatches: observed,
    gathered: of.gathered ?? 0,
    cycles: uses.filter((u) => CYCLE.some((name) => name === u.name)),
    checkpoints: 0,
    reports: of.jobs,
  });
  const per1000 = scaled(summed([...uses.map((u) => u.usage), around]), 1000 / of.jobs);
  const month = idleMonth(of);
  console.log(`Cost of the control plane, prices of ${PRICES_OF} (bench/aws/price-list.ts), free tiers left out`);
  console.log(`  ${of.machine}`);
  const cycles = uses.find((u) => u.name === 'confirm')?.invocations ?? 0;
  console.log(
    `  ${of.jobs} jobs of one task, submitted one by one${of.overS === undefined || of.overS === 0 ? '' : ` over ${of.overS} s`}; ${cycles} cycles; ${((of.doneMs - of.fromMs) / 1000).toFixed(0)} s of the wall at ${SPEED} times`,
  );
  line('per 1,000 jobs', totalUsd(per1000), REACH.per1000Jobs);
  const taking = totalUsd(
    summed([...uses.filter((u) => u.name === 'intake').map((u) => u.usage), { apiRequests: of.requests }]),
  );
  const perCycle = (totalUsd(per1000) * (of.jobs / 1000) - taking) / cycles;
  const savedGbS = uses.reduce(
    (s, u) => s + ((u.waitApartMs - u.waitMs) / 1000) * (FUNCTIONS[u.name].memoryMiB / 1024),
    0,
  );
  const apart = totalUsd(scaled({ lambdaGbS: savedGbS }, 1000 / of.jobs));
  console.log(`  ${(totalUsd(per1000) + apart).toFixed(4)} USD if concurrent calls had waited one after another`);
  console.log(
    `  of which taking a job ${((taking / of.jobs) * 1000).toFixed(4)}; all else, cycle by cycle, ${(perCycle * 1000).toFixed(4)} USD per 1,000 cycles of ${(of.jobs / cycles).toFixed(1)} jobs`,
  );
  line('idle, per month', totalUsd(month), REACH.idleMonth);
  line('idle, per month, with the permanent free tier', totalUsd(beyondFree(month)), REACH.idleMonth);
  console.log('\nPer 1,000 jobs, by billed unit');
  table(per1000);
  console.log('\nIdle, per month, by billed unit');
  table(month);
  console.log('\nPer job, by function');
  console.log('  function    calls   wu     ru     invocations  cpu ms/inv  waits ms/inv  USD per 1,000 jobs');
  for (const use of [...uses].sort((a, b) => totalUsd(b.usage) - totalUsd(a.usage))) functionLine(use, of.jobs);
  console.log('\nPer job, write units by kind of item');
  for (const [items, units, indexUnits] of written(calls).slice(0, 24))
    console.log(`  ${(units / of.jobs).toFixed(2).padStart(6)} + ${(indexUnits / of.jobs).toFixed(2)} ${items}`);
  const hourly = (Object.keys(METRICS).length + PURCHASE_OPTIONS.length - 1) * (PRICES.metricMonths.usd / 730);
  console.log(
    `\nBesides: an hour in which there is work writes at most ${Object.keys(METRICS).length + 1} metrics, ${hourly.toFixed(4)} USD beyond the ten that are free;` +
      ` loading functions (cold starts) took ${uses.reduce((s, u) => s + u.loadCpuMs, 0).toFixed(0)} ms of processor time in ${uses.reduce((s, u) => s + u.loads, 0)} loads, not counted per job.`,
  );
}

/** Monthly usage: invocations of scheduled functions in the idle stretch, scaled, and permanent resources. */
function idleMonth(of: Metered): Usage {
  const idle = (x: { readonly atMs: number }): boolean => x.atMs >= of.doneMs;
  const calls = of.calls.filter((c) => idle(c) && !isCompaction(c));
  const uses = usesOf(of.answers.filter(idle), calls);
  const pace = { acquire: EVERY.clock, prices: EVERY.prices, sweep: EVERY.sweep } as const;
  const clocked = Object.entries(pace).map(([name, every]) => {
    const use = uses.find((u) => u.name === name);
    if (use === undefined || use.invocations === 0) throw new Error(`${name} did not run while nothing was to do`);
    return scaled(use.usage, MONTH_S / every.toSeconds() / use.invocations);
  });
  return summed([
    ...clocked,
    { alarmMonths: of.alarms, dashboardMonths: of.dashboards },
    { storageGbMonths: STORED_GB, backupGbMonths: STORED_GB },
    // The consumer of a queue runs five polls of 20 seconds at a time ("Using Lambda with Amazon SQS", polling).
    { queueRequests: (5 * MONTH_S) / 20 },
  ]);
}

const beyondFree = (usage: Usage): Usage =>
  Object.fromEntries(
    Object.entries(usage).map(([item, amount]) => {
      const price: { readonly free?: number } = PRICES[item as keyof typeof PRICES];
      return [item, Math.max(0, amount - (price.free ?? 0))];
    }),
  );

function line(what: string, usd: number, reach: number): void {
  const verdict = usd <= reach ? 'within' : 'ABOVE';
  console.log(
    `  ${what.padEnd(44)} ${usd.toFixed(4)} USD, ${(usd / reach).toFixed(2)} of the reach (${reach}): ${verdict}`,
  );
}

function table(usage: Usage): void {
  for (const [item, amount, usd] of dearestFirst(usage)) {
    console.log(`  ${usd.toFixed(5).padStart(9)} USD  ${amount.toPrecision(5).padStart(10)} ${PRICES[item].of}`);
  }
}

function functionLine(use: FunctionUse, jobs: number): void {
  const per = (x: number, by: number, digits: number): string => (by === 0 ? 0 : x / by).toFixed(digits);
  const usd = (totalUsd(use.usage) / jobs) * 1000;
  console.log(
    `  ${use.name.padEnd(10)} ${per(use.calls, jobs, 2).padStart(6)} ${per(use.writeUnits, jobs, 2).padStart(6)} ${per(use.readUnits, jobs, 2).padStart(6)}` +
      ` ${per(use.invocations, jobs, 2).padStart(10)} ${per(use.cpuMs, use.invocations, 0).padStart(12)} ${per(use.waitMs, use.invocations, 0).padStart(12)} ${usd.toFixed(5).padStart(16)}`,
  );
}

function written(calls: readonly MeteredCall[]): (readonly [string, number, number])[] {
  const by = new Map<string, readonly [number, number]>();
  for (const call of calls.filter((c) => c.service === 'dynamodb' && isWrite(c))) {
    const what = `${functionOf(call.caller) ?? '?'}: ${call.operation} ${call.items}`;
    const [units, indexUnits] = by.get(what) ?? [0, 0];
    by.set(what, [units + call.units, indexUnits + call.indexUnits]);
  }
  return [...by].map(([what, [u, i]]) => [what, u, i] as const).sort(([, a], [, b]) => b - a);
}

const run = args.from === undefined ? await meteredRun() : (JSON.parse(readFileSync(args.from, 'utf8')) as Metered);
if (args.keep !== undefined) writeFileSync(args.keep, JSON.stringify(run));
report(run);
