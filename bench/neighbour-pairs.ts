/**
 * Pairs of real programs on this machine: how much they slow one another down, and what the engine has learned of it.
 *   npm run bench:neighbour-pairs -- [--rounds 6] [--seconds 4]
 *
 * Linux. A local engine has one machine of two vCPUs. Programs, each of about `--seconds` alone: `cruncher` counts,
 * `streamer` reads memory that no cache holds, `writer` writes to the disk and waits for it. They run alone and in
 * every pair, `--rounds` times; a pair begins at once. Then a queue with all programs of a kind behind one another, in
 * the order of submission and in that of Hugo, with what was learned.
 *
 * Times of a busy machine say nothing: nothing else should run.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { neighboursView } from '../lib/api/schemas.ts';
import { machine } from './figures.ts';

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '6' }, seconds: { type: 'string', default: '4' } },
});
const [rounds, wantedS] = [Number(options.rounds), Number(options.seconds)];
const EBB = [process.execPath, join(import.meta.dirname, '..', 'bin', 'ebb.ts')] as const;
const folder = mkdtempSync(join(tmpdir(), 'ebb-pairs-'));

/** Commands that do `n` units of work. */
const PROGRAMS: Readonly<Record<string, (n: number) => readonly string[]>> = {
  cruncher: (n) => [process.execPath, '-e', `let x = 0; for (let i = 0; i < ${n} * 1e7; i++) x = (x * 31 + i) | 0;`],
  streamer: (n) => [
    process.execPath,
    '-e',
    `const a = new Float64Array(24e6).fill(1); let x = 0; for (let k = 0; k < ${n}; k++) for (let i = k % 8; i < a.length; i += 8) x += a[i];`,
  ],
  writer: (n) => [
    'sh',
    '-c',
    `i=0; while [ $i -lt ${n} ]; do dd if=/dev/zero of=out bs=1M count=16 conv=fsync 2>/dev/null; i=$((i+1)); done; rm out`,
  ],
};
const NAMES = Object.keys(PROGRAMS);

/** Units that take about the wanted time alone. */
function calibrated(name: string): number {
  const tookS = (n: number): number => {
    const [program = '', ...args] = PROGRAMS[name]?.(n) ?? [];
    const began = performance.now();
    spawnSync(program, args, { cwd: folder });
    return (performance.now() - began) / 1000;
  };
  let n = 8;
  while (tookS(n) < 0.5 && n < 1e6) n *= 2;
  return Math.max(1, Math.round((n * wantedS) / tookS(n)));
}

const job = z.looseObject({ job: z.looseObject({ id: z.string() }) });
const ended = z.looseObject({ startedAt: z.string(), finishedAt: z.string(), state: z.literal('succeeded') });

interface Engine {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

async function engineWith(preset: string): Promise<Engine> {
  const args = ['up', '--port', '0', '--no-token', '--json', '--dir', join(folder, 'ebb'), '--preset', preset];
  const [program, script] = EBB;
  const child = spawn(program, [script, ...args, '--cluster', '1x{cpu: 2, memory: 4GiB}'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for await (const line of createInterface({ input: child.stdout })) {
    const { url } = z.looseObject({ url: z.string().optional() }).parse(JSON.parse(line));
    if (url === undefined) continue;
    return {
      url,
      stop: () => {
        child.kill('SIGTERM');
        return exited;
      },
    };
  }
  throw new Error('the engine ended before it listened');
}

async function asked(url: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer;
}

const submit = async ({ url }: Engine, name: string, n: number): Promise<string> => {
  const file = { name, command: PROGRAMS[name]?.(n), resources: { cpu: 1, memory: '512MiB' } };
  return job.parse(await asked(url, '/api/jobs', file)).job.id;
};

/** Start and end of each, seconds since 1970. */
async function done({ url }: Engine, ids: readonly string[]): Promise<readonly (readonly [number, number])[]> {
  for (;;) {
    const all = await Promise.all(ids.map(async (id) => asked(url, `/api/jobs/${id}`)));
    const states = all.map((a) => z.looseObject({ state: z.string() }).parse(a).state);
    if (states.every((s) => s === 'succeeded')) {
      return all.map((a) => {
        const { startedAt, finishedAt } = ended.parse(a);
        return [Date.parse(startedAt) / 1000, Date.parse(finishedAt) / 1000];
      });
    }
    if (states.some((s) => s === 'failed' || s === 'cancelled'))
      throw new Error(`a job did not succeed: ${states.join()}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

const mean = (of: readonly number[]): number => of.reduce((a, b) => a + b, 0) / of.length;

console.log(machine());
const units = new Map(NAMES.map((name) => [name, calibrated(name)]));
console.log(`units of work: ${[...units].map(([name, n]) => `${name} ${n}`).join(', ')}\n`);
const run = (engine: Engine, name: string): Promise<string> => submit(engine, name, units.get(name) ?? 1);

try {
  const engine = await engineWith('fifo');
  const aloneS = new Map<string, number[]>(NAMES.map((name) => [name, []]));
  const besideS = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    for (const name of NAMES) {
      const [[from, to] = [0, 0]] = await done(engine, [await run(engine, name)]);
      aloneS.get(name)?.push(to - from);
    }
    for (const [i, a] of NAMES.entries()) {
      for (const b of NAMES.slice(i)) {
        const [x, y] = await done(engine, await Promise.all([run(engine, a), run(engine, b)]));
        besideS.set(`${a} ${b}`, [...(besideS.get(`${a} ${b}`) ?? []), (x?.[1] ?? 0) - (x?.[0] ?? 0)]);
        besideS.set(`${b} ${a}`, [...(besideS.get(`${b} ${a}`) ?? []), (y?.[1] ?? 0) - (y?.[0] ?? 0)]);
      }
    }
    console.error(`round ${round + 1} of ${rounds}`);
  }
  const { groups, pairs } = neighboursView.parse(await asked(engine.url, '/api/neighbours'));
  await engine.stop();

  const groupOf = (name: string): string | undefined =>
    groups.find((g) => g.templates.some((t) => t.includes(`/${name}/`)))?.id;
  const rows = NAMES.flatMap((a) =>
    NAMES.map((b) => {
      const measured = mean(besideS.get(`${a} ${b}`) ?? []) / mean(aloneS.get(a) ?? []);
      const pair = pairs.find((p) => p.running === groupOf(a) && p.next === groupOf(b));
      return { a, b, measured, learned: pair?.slowdown?.factor ?? 1 };
    }),
  );
  console.log('running   beside    measured  learned (beside one that takes all of a device)');
  for (const { a, b, measured, learned } of rows)
    console.log(`${a.padEnd(9)} ${b.padEnd(9)} ${measured.toFixed(2).padStart(7)}x ${learned.toFixed(2).padStart(7)}x`);
  /** Pairs whose measured slow-downs differ by more than noise, in the same order as learned. */
  const CLEAR = 0.1;
  let [same, all] = [0, 0];
  for (const [i, x] of rows.entries()) {
    for (const y of rows.slice(i + 1)) {
      if (Math.abs(x.measured - y.measured) <= CLEAR) continue;
      all++;
      if (x.measured > y.measured === x.learned > y.learned) same++;
    }
  }
  console.log(
    `\npairs of pairs that differ by more than ${CLEAR}: ${all}, in the learned order as in the measured one: ${same}`,
  );

  const queue = NAMES.flatMap((name) => [name, name, name, name]);
  for (const preset of ['fifo', 'hugo', 'fifo', 'hugo']) {
    const of = await engineWith(preset);
    const ids: string[] = [];
    for (const name of queue) ids.push(await run(of, name));
    const times = await done(of, ids);
    const makespanS = Math.max(...times.map(([, to]) => to)) - Math.min(...times.map(([from]) => from));
    console.log(`makespan of ${queue.length} jobs under ${preset}: ${makespanS.toFixed(1)} s`);
    await of.stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
