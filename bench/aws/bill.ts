/** Bill of AWS from the measurements. Each assumption is named here; everything else is counted. */
import { deploymentConfig } from '../../lib/infra/config.ts';
import { FUNCTIONS, FUNCTION_NAMES, SERVICE_LOG_LEVEL, factsOf, type FunctionName } from '../../lib/infra/functions.ts';
import type { MeteredCall } from './meter.ts';
import { totalUsd, usdOf, type Item, type Usage } from './price-list.ts';

/** Answer of a function. */
export interface Answer {
  readonly name: string;
  readonly cpuMs: number;
  readonly printed: number;
  readonly atMs: number;
  /** True for the loading of a function, false for an invocation. */
  readonly isLoad: boolean;
}

/** "1,769 MB has the equivalent of one vCPU" (Lambda documentation): with less, the same work takes longer. */
const VCPU_MIB = 1769;
/** Wait of a call, ms: usual times within a region. */
const WAITS_MS: Readonly<Record<string, number>> = { dynamodb: 5, s3: 25, amazonsqs: 10, awsstepfunctions: 30 };
const OTHER_WAIT_MS = 100;
const TRANSACTION_WAIT_MS = 12;
/** Bytes of START, END and REPORT, which Lambda logs for a successful invocation unless told not to. */
const LAMBDA_LOG_BYTES = SERVICE_LOG_LEVEL === 'INFO' ? 450 : 0;
/** Bytes of an entry in the API's access log. */
const ACCESS_LOG_BYTES = 400;
/**
 * Bytes of a task's report (lib/drivers/aws/fleet/report.ts) with 10 digits each. CloudWatch Logs adds 26 bytes ("plus
 * 26 bytes for each log event", API_PutLogEvents). Reading it (GetLogEvents) is in no price list: it costs time only.
 */
const REPORT_BYTES = 94 + 26;
/** Billed memory of express executions: 64 MB. */
const EXECUTION_GB = 64 / 1024;
/**
 * Share of traced requests: X-Ray's default beyond the first one per second, if the default configuration has traces.
 */
const SAMPLED = deploymentConfig.parse({}).traces ? 0.05 : 0;

/** Function of ours behind a deployed name: `<stack>-<construct>Functions<Name><part of a hash>-<random>`. */
export function functionOf(deployed: string): FunctionName | null {
  const name = /Functions([A-Z][a-z]+)/.exec(deployed)?.[1]?.toLowerCase();
  return FUNCTION_NAMES.find((f) => f === name) ?? null;
}

const waitOf = ({ service, operation }: MeteredCall): number =>
  operation === 'TransactWriteItems' ? TRANSACTION_WAIT_MS : (WAITS_MS[service] ?? OTHER_WAIT_MS);

/**
 * Waiting time of a process's calls, ms. A call starts after those that had ended before it started in the run, so
 * calls in flight together wait together.
 */
function waitTogether(calls: readonly MeteredCall[]): number {
  const done: { readonly endMs: number; readonly virtualMs: number }[] = [];
  let lastMs = 0;
  for (const call of calls.toSorted((a, b) => a.atMs - b.atMs)) {
    const before = done.filter((d) => d.endMs <= call.atMs);
    const beginMs = before.reduce((most, d) => Math.max(most, d.virtualMs), 0);
    const virtualMs = beginMs + waitOf(call);
    done.push({ endMs: call.endMs ?? call.atMs, virtualMs });
    lastMs = Math.max(lastMs, virtualMs);
  }
  return lastMs;
}

const waitOfAll = (calls: readonly MeteredCall[]): number =>
  [...Map.groupBy(calls, (c) => `${c.caller} ${c.pid ?? 0}`).values()].reduce((s, own) => s + waitTogether(own), 0);

export interface FunctionUse {
  readonly name: FunctionName;
  readonly invocations: number;
  readonly loads: number;
  readonly cpuMs: number;
  readonly loadCpuMs: number;
  readonly calls: number;
  readonly waitMs: number;
  /** The same if calls never overlapped. */
  readonly waitApartMs: number;
  readonly writeUnits: number;
  readonly readUnits: number;
  readonly logBytes: number;
  readonly usage: Usage;
}

const WRITES = new Set(['TransactWriteItems', 'UpdateItem', 'DeleteItem', 'PutItem', 'BatchWriteItem']);
export const isWrite = (call: MeteredCall): boolean => WRITES.has(call.operation);

/** Usage of each function in a stretch of the run. */
export function usesOf(answers: readonly Answer[], calls: readonly MeteredCall[]): readonly FunctionUse[] {
  return FUNCTION_NAMES.map((name): FunctionUse => {
    const own = answers.filter((a) => functionOf(a.name) === name);
    const invoked = own.filter((a) => !a.isLoad);
    const called = calls.filter((c) => functionOf(c.caller) === name);
    const sum = (list: readonly Answer[], of: (a: Answer) => number): number => list.reduce((s, a) => s + of(a), 0);
    const units = (isIt: (c: MeteredCall) => boolean): number =>
      called.filter(isIt).reduce((s, c) => s + c.units + c.indexUnits, 0);
    const { memoryMiB } = FUNCTIONS[name];
    const share = Math.min(1, memoryMiB / VCPU_MIB);
    const cpuMs = sum(invoked, (a) => a.cpuMs);
    const waitMs = waitOfAll(called);
    const logBytes = sum(own, (a) => a.printed) + invoked.length * LAMBDA_LOG_BYTES;
    const count = (service: string, operations?: readonly string[]): number =>
      called.filter((c) => c.service === service && (operations?.includes(c.operation) ?? true)).length;
    const isOfDynamo = (c: MeteredCall): boolean => c.service === 'dynamodb';
    const writeUnits = units((c) => isOfDynamo(c) && isWrite(c));
    const readUnits = units((c) => isOfDynamo(c) && !isWrite(c));
    return {
      name,
      invocations: invoked.length,
      loads: own.length - invoked.length,
      cpuMs,
      loadCpuMs: sum(
        own.filter((a) => a.isLoad),
        (a) => a.cpuMs,
      ),
      calls: called.length,
      waitMs,
      waitApartMs: called.reduce((s, c) => s + waitOf(c), 0),
      writeUnits,
      readUnits,
      logBytes,
      usage: {
        invocations: invoked.length,
        lambdaGbS: ((cpuMs / share + waitMs) / 1000) * (factsOf(name).memoryMiB / 1024),
        writeUnits,
        readUnits,
        puts: count('s3', ['PUT', 'POST']),
        gets: count('s3', ['GET', 'HEAD']),
        queueRequests: count('amazonsqs'),
        executions: count('awsstepfunctions'),
        logGb: logBytes / 2 ** 30,
        traces: invoked.length * SAMPLED,
      },
    };
  });
}

/** Usage outside the functions: the API, the queue's consumer, the state machine. */
export function aroundThem(of: {
  readonly requests: number;
  readonly queueBatches: number;
  /** Events that EventBridge puts into a queue, one request each. */
  readonly gathered: number;
  readonly cycles: readonly FunctionUse[];
  readonly checkpoints: number;
  /** Tasks that log their usage: those of ten seconds and more. */
  readonly reports: number;
}): Usage {
  const cycleS = of.cycles.reduce((sum, f) => sum + (f.cpuMs + f.waitMs) / 1000, 0);
  return {
    apiRequests: of.requests,
    logGb: (of.requests * ACCESS_LOG_BYTES + of.reports * REPORT_BYTES) / 2 ** 30,
    // A batch is received and deleted; a request holds at most ten messages.
    queueRequests: of.gathered + 2 * Math.max(of.queueBatches, of.gathered / 10),
    executionGbS: cycleS * EXECUTION_GB,
    s3Events: of.checkpoints,
  };
}

export function summed(usages: readonly Usage[]): Record<Item, number> {
  const all: Partial<Record<Item, number>> = {};
  for (const usage of usages) {
    for (const [item, amount] of Object.entries(usage)) all[item as Item] = (all[item as Item] ?? 0) + amount;
  }
  return all as Record<Item, number>;
}

export const scaled = (usage: Usage, by: number): Usage =>
  Object.fromEntries(Object.entries(usage).map(([item, amount]) => [item, amount * by]));

export const dearestFirst = (usage: Usage): readonly (readonly [Item, number, number])[] =>
  Object.entries(usage)
    .map(([item, amount]) => [item as Item, amount, usdOf(item as Item, amount)] as const)
    .filter(([, amount]) => amount > 0)
    .sort(([, , a], [, , b]) => b - a);

export { totalUsd };
