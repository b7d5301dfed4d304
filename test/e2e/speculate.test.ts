import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';

/** A speculating policy in a module of the user's own, on real processes: what is put back is the winner's, once. */

const EBB = join(process.cwd(), 'bin', 'ebb.mjs');
const cwd = mkdtempSync(join(tmpdir(), 'ebb-speculate-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const MODULE = `
export default ({ policy }) =>
  policy({
    stage: 'speculate',
    name: 'eager',
    about: 'a copy of every original',
    decide: () => ({ snapshot }) =>
      snapshot.running.flatMap(({ attempt }) => {
        const pool = snapshot.pools.find((p) => p.pool.option === 'spot' && p.open)?.pool.id;
        if (pool === undefined || attempt.role === 'copy' || attempt.state !== 'running') return [];
        return [{ of: attempt.id, reason: 'to be sure', to: { pool, bid: 'uncapped' } }];
      }),
  });
`;
/** The original would take for ever; a copy ends at once. */
const COMMAND = 'test "$EBB_TASK_ATTEMPT" -gt 1 || sleep 600; echo $EBB_ATTEMPT > who';

it('a copy wins, its output is put back, and the original is stopped and accounted as speculative', () => {
  writeFileSync(join(cwd, 'eager.mjs'), MODULE);
  writeFileSync(
    join(cwd, 'settings.yaml'),
    'policyModules: [eager.mjs]\npresets:\n  mine: { about: with copies, extends: ebbtide, speculate: eager }\n',
  );
  const job = { name: 'slow', owner: 'e2e', command: COMMAND, outputs: ['who'] };
  const rest = { resources: { cpu: 1, memory: '128MiB' }, expectedRuntime: '10m' };
  writeFileSync(join(cwd, 'job.json'), JSON.stringify({ ...job, ...rest }));
  const args = ['--settings', 'settings.yaml', '--preset', 'mine', '--speed', '60', '--seed', '3', '--json'];
  const given = [EBB, 'run', ...args, 'job.json'];
  const ran = spawnSync(process.execPath, given, { cwd, encoding: 'utf8', timeout: 100_000 });
  expect(ran.stderr).not.toContain('refused');
  expect(ran.status).toBe(0);
  const summary = JSON.parse(ran.stdout) as {
    copies: number;
    costUsd: number;
    speculativeUsd: number;
    jobs: readonly { job: { state: string } }[];
  };
  expect(summary).toMatchObject({ copies: 1, failures: 0, jobs: [{ job: { state: 'succeeded' } }] });
  expect(summary.speculativeUsd).toBeGreaterThan(0);
  expect(summary.costUsd).toBeGreaterThan(summary.speculativeUsd);
  expect(readFileSync(join(cwd, 'who'), 'utf8')).toMatch(/\.main\.0\.2\n$/);
}, 120_000);
