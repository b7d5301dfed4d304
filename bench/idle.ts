/**
 * Cost of an idle engine: `ebb up` on a new folder and one tiny job. After its instance is gone, processor time and
 * resident memory of the whole process are measured.
 *
 *   node bench/idle.ts [--seconds 30] [--settle 20] [--form package|checkout]
 *
 * Measured as a package (the result of `npm install`) and as a checkout (run from a compiled copy of its sources).
 * Linux only. Prints figures; judges nothing.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { tokenIn } from '../lib/api/server/token.ts';
import { machine } from './figures.ts';
import { FORMS, productAs, temporaryFolder, usageOf, type Form } from './product.ts';

const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    settle: { type: 'string', default: '20' },
    form: { type: 'string' },
  },
});
/** Most wall time for the tiny job and the end of its instance. */
const BUSY_S = 60;

const TINY = {
  name: 'tiny',
  owner: 'bench',
  class: 'best-effort',
  stages: [{ name: 'main', command: ['true'], resources: { cpu: 1, memory: '256MiB' }, expectedRuntime: '10s' }],
};

async function untilQuiet(url: string, workdir: string): Promise<void> {
  const authorization = `Bearer ${tokenIn(join(workdir, 'ebb', 'token'))}`;
  const body = JSON.stringify({ ...TINY, stages: TINY.stages.map((s) => ({ ...s, workdir })) });
  const made = await fetch(`${url}/api/jobs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization },
    body,
  });
  if (made.status !== 201) throw new Error(`the tiny job was refused: ${await made.text()}`);
  const { job } = (await made.json()) as { job: { id: string } };
  const ask = async <T>(path: string): Promise<T> =>
    (await (await fetch(`${url}${path}`, { headers: { authorization } })).json()) as T;
  for (let waited = 0; waited < BUSY_S; waited++) {
    const { state } = await ask<{ state: string }>(`/api/jobs/${job.id}`);
    const { items } = await ask<{ items: unknown[] }>('/api/instances?live=true');
    if (state === 'succeeded' && items.length === 0) return;
    await sleep(1000);
  }
  throw new Error(`the tiny job and its instance were not over after ${BUSY_S} s`);
}

async function measure(form: Form): Promise<void> {
  const product = productAs(form);
  const dir = temporaryFolder('idle');
  const child = spawn(
    process.execPath,
    [product.launcher, 'up', '--json', '--dir', join(dir, 'ebb'), '--port', '0', '--speed', '60'],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, EBB_RELAUNCHED: '1' },
    },
  );
  try {
    let text = '';
    let url = '';
    for await (const line of createInterface({ input: child.stdout })) {
      text += line;
      url = /"url":\s*"([^"]+)"/.exec(text)?.[1] ?? '';
      if (url !== '') break;
    }
    if (url === '' || child.pid === undefined) throw new Error('the engine ended before it listened');
    await untilQuiet(url, dir);
    const busy = usageOf(child.pid);
    await sleep(Number(args.settle) * 1000);
    const before = usageOf(child.pid);
    const began = performance.now();
    await sleep(Number(args.seconds) * 1000);
    const after = usageOf(child.pid);
    const share = (after.cpuS - before.cpuS) / ((performance.now() - began) / 1000);
    console.log(
      `  ${form.padEnd(9)} ${(100 * share).toFixed(2)} % of one core, ${after.rssMiB.toFixed(0)} MiB resident ` +
        `(${after.anonMiB.toFixed(0)} MiB its own, the rest the program file; ${busy.rssMiB.toFixed(0)} MiB right after the job)`,
    );
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
    product.remove();
    rmSync(dir, { recursive: true });
  }
}

console.log(`idle: ${machine()}\n  over ${args.seconds} s, ${args.settle} s after the last work`);
for (const form of FORMS) if (args.form === undefined || args.form === form) await measure(form);
