/**
 * Fuzzes the HTTP API from its own OpenAPI document with schemathesis, against a server that it starts on a temporary
 * folder. Fails when any answer is a 5xx or contradicts the document. Needs Python 3.11; schemathesis and what it needs
 * are installed once, pinned by hash.
 *
 *   node scripts/fuzz-api.ts [--examples 50] [--seed 1]
 *
 * The last line has the counts: `fuzz-api: N answers, 2xx A, 4xx B, 5xx 0`.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { pythonPrograms } from './installation.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const REQUIREMENTS = join(ROOT, 'scripts', 'schemathesis-requirements.txt');

const { values } = parseArgs({
  options: { examples: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
});

/**
 * What must hold of every answer. Left out: checks that a generated value is refused or taken (a document cannot say
 * that a deadline must lie ahead or that a job must exist), and those of authentication (this server has no token).
 */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'unsupported_method',
  'allow_header_conformance',
];

const programs = await pythonPrograms('schemathesis', REQUIREMENTS);
const dir = await mkdtemp(join(tmpdir(), 'ebb-fuzz-'));
const server = spawn(process.execPath, [join(ROOT, 'scripts', 'serve-api.ts'), '--dir', dir], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const lines = createInterface({ input: server.stdout });
const { url } = (await nextLine(lines)) as { url: string };
const fuzzer = spawn(join(programs, 'schemathesis'), fuzzArguments(url), { stdio: 'inherit', cwd: dir });
const [code] = (await once(fuzzer, 'exit')) as [number | null];
const answers = await stop(server);
await rm(dir, { recursive: true });

const total = (digit: string): number =>
  Object.entries(answers).reduce((sum, [status, n]) => sum + (status.startsWith(digit) ? n : 0), 0);
const all = total('');
process.stdout.write(`fuzz-api: ${all} answers, 2xx ${total('2')}, 4xx ${total('4')}, 5xx ${total('5')}\n`);
// Without answers of both kinds the fuzzer has not reached what it is to test.
if (code !== 0 || total('5') > 0 || total('2') === 0 || total('4') === 0) process.exitCode = 1;

function fuzzArguments(base: string): string[] {
  return [
    'run',
    `${base}/api/openapi.json`,
    ...['--checks', CHECKS.join(',')],
    ...['--max-examples', values.examples],
    ...['--seed', values.seed],
    ...['--phases', 'examples,coverage,fuzzing,stateful'],
    ...['--request-timeout', '20'],
    ...['--suppress-health-check', 'all'],
    ...['--generation-database', 'none'],
    '--continue-on-failure',
    '--no-color',
  ];
}

async function nextLine(from: Interface): Promise<unknown> {
  const [line] = (await once(from, 'line')) as [string];
  return JSON.parse(line);
}

/** Ends the server; what it counted. */
async function stop(process: ChildProcess): Promise<Record<string, number>> {
  const counted = nextLine(lines);
  process.kill('SIGTERM');
  return ((await counted) as { answers: Record<string, number> }).answers;
}
