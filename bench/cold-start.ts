/**
 * Size and cold start of each Lambda.
 *
 *   node bench/cold-start.ts [--runs 10] [--only intake,forecast]
 *
 * Sizes are those of the deployed zip (linux/arm64). A start is a new process with a Lambda's environment and without
 * network, away from the checkout. It imports the bundle for this machine. Measured are time since the process began,
 * Node's start included, and processor time, which other work on the machine disturbs less.
 *
 * "answer" is the first invocation, with an event that is refused before any call of AWS: through middleware, logger
 * and schema. The forecast function also loads and runs its model, with the ONNX Runtime of its asset.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { deflateRawSync } from 'node:zlib';
import type { DeployedEnvironment } from '../lib/infra/functions.ts';
import { factsOf, FUNCTION_NAMES, type FunctionName } from '../lib/infra/functions.ts';
import { assemble } from '../lib/infra/bundle.ts';
import { PLATFORMS, type Platform } from '../lib/infra/packages.ts';
import { asMs, machine, percentile } from './figures.ts';

const { values: args } = parseArgs({
  options: { runs: { type: 'string', default: '10' }, only: { type: 'string' } },
});

/** Targets: milliseconds since the process began, megabytes of zip. */
const REACH: Partial<Record<FunctionName, { readonly ms: number; readonly mb: number }>> = {
  intake: { ms: 300, mb: 5 },
  forecast: { ms: 1500, mb: 50 },
};

/** Functions that refuse an empty event without a call. */
const REFUSING: ReadonlySet<FunctionName> = new Set([
  'snapshot',
  'estimate',
  'forecast',
  'solve',
  'record',
  'act',
  'confirm',
]);

const ENVIRONMENT = {
  EBB_TABLE: 'table',
  EBB_BUCKET: 'bucket',
  EBB_CLUSTER: 'cluster',
  EBB_LAUNCH_TEMPLATE: 'lt-0',
  EBB_LAUNCH_TEMPLATE_VERSION: '1',
  EBB_SUBNETS: 'eu-central-1a=subnet-0',
  EBB_STATE_MACHINE: 'arn:aws:states:eu-central-1:123456789012:stateMachine:ebbtide-cycle',
  EBB_TRIGGER_QUEUE: 'https://sqs.eu-central-1.amazonaws.com/123456789012/trigger',
  EBB_REGION: 'eu-central-1',
  EBB_CONFIG: JSON.stringify({ name: 'ebbtide', families: ['c7g'], vcpus: 64, image: 'debian' }),
  EBB_LOG_GROUP: 'tasks',
  EBB_EXECUTION_ROLE: 'arn:aws:iam::123456789012:role/execution',
  EBB_TASK_ROLE: 'arn:aws:iam::123456789012:role/task',
  EBB_VERSION: '0.0.0',
  POWERTOOLS_SERVICE_NAME: 'ebbtide',
  POWERTOOLS_METRICS_NAMESPACE: 'Ebbtide',
  POWERTOOLS_LOG_LEVEL: 'ERROR',
  POWERTOOLS_TRACE_ENABLED: 'false',
} satisfies Partial<DeployedEnvironment>;

/** Environment of Lambda's runtime ("Defined runtime environment variables"), without credentials. */
const RUNTIME = {
  AWS_REGION: 'eu-central-1',
  AWS_DEFAULT_REGION: 'eu-central-1',
  AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
  AWS_LAMBDA_FUNCTION_NAME: 'bench',
  AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
  AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '1769',
  AWS_EC2_METADATA_DISABLED: 'true',
  _HANDLER: 'index.handler',
};

interface Start {
  readonly readyMs: number;
  readonly cpuMs: number;
  readonly answeredMs: number | null;
  readonly modelMs: number | null;
  readonly memoryMiB: number;
}

const PROGRAM = `
const { handler } = await import('./index.mjs');
if (typeof handler !== 'function') throw new Error('no handler');
const readyMs = performance.now();
const { user, system } = process.cpuUsage();
let modelMs = null;
if (process.argv[2] !== '') {
  const { default: onnx } = await import('onnxruntime-node');
  const session = await onnx.InferenceSession.create(process.argv[2], { intraOpNumThreads: 1 });
  const [{ name, shape }] = session.inputMetadata;
  await session.run({ [name]: new onnx.Tensor('float32', new Float32Array(10 * shape[1]), [10, shape[1]]) });
  modelMs = performance.now();
}
let answeredMs = null;
if (process.argv[3] === 'ask') {
  const beganMs = performance.now();
  const code = await handler({}, { awsRequestId: '1', getRemainingTimeInMillis: () => 10_000 }).then(() => '', (e) => e.name);
  if (code !== 'usage') throw new Error('not refused: ' + code);
  answeredMs = performance.now() - beganMs;
}
process.stdout.write('\\n' + JSON.stringify({ readyMs, cpuMs: (user + system) / 1000, answeredMs, modelMs, memoryMiB: process.memoryUsage.rss() / 2 ** 20 }));
process.exit(0);
`;

function start(name: FunctionName, folder: string, model: string): Start {
  const flags = [join(folder, 'bench.mjs'), model, REFUSING.has(name) ? 'ask' : ''];
  const env = { ...ENVIRONMENT, ...RUNTIME, LAMBDA_TASK_ROOT: folder };
  const { stdout, stderr, status } = spawnSync(process.execPath, flags, { cwd: folder, encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${name}: ${stderr}`);
  return JSON.parse(stdout.split('\n').at(-1) ?? '') as Start;
}

function assembled(name: FunctionName, folder: string, platform: Platform): string {
  const { packaged = [], models = [] } = factsOf(name);
  assemble(name, folder, { packaged, models, platform });
  return folder;
}

/** Compressed size in a zip file, without its directory of some hundred bytes per file. */
function zippedMb(folder: string): number {
  const files = (readdirSync(folder, { recursive: true }) as string[]).map((file) => join(folder, file));
  const bytes = files
    .filter((file) => statSync(file).isFile())
    .map((file) => deflateRawSync(readFileSync(file)).length);
  return bytes.reduce((sum, n) => sum + n, 0) / 1e6;
}

const newestIn = (models: string): string => join(models, readdirSync(models).sort().at(-1) ?? '', 'model.onnx');

function measure(name: FunctionName, root: string): void {
  const mb = zippedMb(assembled(name, join(root, 'deployed', name), PLATFORMS.arm64));
  const folder = assembled(name, join(root, name), { os: process.platform, arch: process.arch });
  writeFileSync(join(folder, 'bench.mjs'), PROGRAM);
  // No capacity model is shipped.
  const shipped = (factsOf(name).models ?? []).map((of) => join(folder, 'models', of)).filter((of) => existsSync(of));
  const model = shipped.map(newestIn).join('');
  start(name, folder, model);
  const starts = Array.from({ length: Number(args.runs) }, () => start(name, folder, model));
  const column = (of: (s: Start) => number | null): readonly number[] => starts.flatMap((s) => of(s) ?? []);
  const shown = (values: readonly number[], q: number): string =>
    values.length === 0 ? '-' : asMs(percentile(values, q));
  const ready = column((s) => s.modelMs ?? s.readyMs);
  const reach = REACH[name];
  console.log(
    [
      name.padEnd(9),
      `${mb.toFixed(2)} MB`.padStart(9),
      shown(
        column((s) => s.readyMs),
        0.5,
      ).padStart(9),
      shown(
        column((s) => s.readyMs),
        0.9,
      ).padStart(9),
      shown(
        column((s) => s.cpuMs),
        0.5,
      ).padStart(9),
      shown(
        column((s) => s.answeredMs),
        0.5,
      ).padStart(9),
      shown(
        column((s) => s.modelMs),
        0.5,
      ).padStart(10),
      `${percentile(
        column((s) => s.memoryMiB),
        0.5,
      ).toFixed(0)} of ${factsOf(name).memoryMiB} MiB`.padStart(15),
      reach === undefined
        ? ''
        : `${((100 * mb) / reach.mb).toFixed(0)} % of ${reach.mb} MB, ${((100 * percentile(ready, 0.5)) / reach.ms).toFixed(0)} % of ${reach.ms} ms`,
    ].join('  '),
  );
}

console.log(`cold starts: ${machine()}\n  ${args.runs} runs each`);
console.log(
  'function         zip  ready p50  ready p90   CPU p50     answer  with model           memory  of the targets',
);
const root = mkdtempSync(join(tmpdir(), 'ebb-cold-'));
try {
  const only = args.only?.split(',');
  for (const name of FUNCTION_NAMES) if (only?.includes(name) ?? true) measure(name, root);
} finally {
  rmSync(root, { recursive: true, force: true });
}
