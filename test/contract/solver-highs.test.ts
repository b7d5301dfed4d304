import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { highsSolver } from '../../lib/drivers/solver/highs-solver.ts';
import { solverContract } from './solver.ts';
import { knapsack } from './solver-models.ts';

solverContract('HiGHS in a worker thread', () => highsSolver());

const EXACT = { relativeGap: 0, maxNodes: null, maxSeconds: null };

describe('the HiGHS thread', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ebb-highs-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** A worker that dies at its first message and, the next time it is started, answers. */
  async function dyingWorker(): Promise<URL> {
    const file = join(folder, 'dying.mjs');
    await writeFile(
      file,
      `import { parentPort } from 'node:worker_threads';
       import { existsSync, writeFileSync } from 'node:fs';
       const mark = ${JSON.stringify(join(folder, 'died'))};
       parentPort.on('message', () => {
         if (!existsSync(mark)) { writeFileSync(mark, ''); process.exit(7); }
         parentPort.postMessage({ kind: 'solve', outcome: { status: 'infeasible' } });
       });`,
    );
    return pathToFileURL(file);
  }

  it('fails the call it dies in; the next call has a new one', async () => {
    const solver = highsSolver({ worker: await dyingWorker() });
    const first = await solver.solve(knapsack, EXACT, null);
    expect(first).toEqual({ status: 'failed', detail: "the solver's thread ended with 7" });
    expect(await solver.solve(knapsack, EXACT, null)).toEqual({ status: 'infeasible' });
    await solver.close();
  });

  it('is given up when it is far past its limit', async () => {
    const file = join(folder, 'silent.mjs');
    await writeFile(file, `import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {});`);
    const solver = highsSolver({ worker: pathToFileURL(file), graceS: 0.05 });
    const outcome = await solver.solve(knapsack, { ...EXACT, maxSeconds: 0.05 }, null);
    expect(outcome).toEqual({ status: 'no-solution', bound: null, limit: 'time' });
    await solver.close();
  });

  it('ends when idle and starts again when asked', async () => {
    const solver = highsSolver({ idleS: 0.02 });
    expect((await solver.solve(knapsack, EXACT, null)).status).toBe('optimal');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await solver.solve(knapsack, EXACT, null)).status).toBe('optimal');
    await solver.close();
  });

  it('answers failed once closed', async () => {
    const solver = highsSolver();
    await solver.close();
    expect((await solver.solve(knapsack, EXACT, null)).status).toBe('failed');
  });
});
