/**
 * `npm run localstack -- deploy`, as a newcomer has it: the variables that it prints, `ebb` without options, Ctrl-C.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import type { JobView } from '../../../lib/api/schemas.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';
import { ebb } from '../../../scripts/rehearsal/command-line.ts';

const DEPLOYED_WITHIN_MS = 420_000;
const DONE_WITHIN_MS = 180_000;
const GONE_WITHIN_MS = 60_000;

describeOnLocalStack(
  'a deployment by hand',
  () => {
    const scratch = mkdtempSync(join(tmpdir(), 'ebb-by-hand-'));
    afterAll(() => rmSync(scratch, { recursive: true, force: true }));

    /** With temporary files of its own, and in a group of its own, as a terminal has it. */
    function deploying(name: string) {
      const temporary = mkdtempSync(join(scratch, name));
      const args = ['--disable-warning=ExperimentalWarning', 'scripts/localstack/main.ts', 'deploy'];
      const child = spawn(process.execPath, args, { detached: true, env: { ...process.env, TMPDIR: temporary } });
      const said = { out: '', err: '' };
      child.stdout.on('data', (text: Buffer) => (said.out += text.toString()));
      child.stderr.on('data', (text: Buffer) => (said.err += text.toString()));
      const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
      const ctrlC = (): boolean => process.kill(-(child.pid ?? 0), 'SIGINT');
      const until = async (what: RegExp): Promise<void> => {
        const over = ended.then((code) => {
          throw new Error(`ended with ${code}: ${said.err}`);
        });
        const look = async (): Promise<void> => {
          while (!what.test(said.out + said.err)) await new Promise((resolve) => setTimeout(resolve, 200));
        };
        await Promise.race([look(), over]);
      };
      return { said, ended, ctrlC, until, left: () => readdirSync(temporary) };
    }

    it(
      'is used with the variables that it prints and no option, and is gone after Ctrl-C',
      async () => {
        const { said, ended, ctrlC, until, left } = deploying('used-');
        await until(/Ctrl-C takes it down/);
        expect(said.err).not.toMatch(/Warning/);
        const env: Record<string, string> = {};
        for (const [, name = '', value = ''] of said.out.matchAll(/^export (\w+)=(.*)$/gm)) env[name] = value;
        const asked = async (...args: string[]): Promise<string> => {
          const { code, stdout, stderr } = await ebb(args, env);
          if (code !== 0) throw new Error(`ebb ${args.join(' ')} ended with ${code}: ${stderr}`);
          return stdout;
        };
        const status = async (): Promise<JobView> =>
          (JSON.parse(await asked('status', 'hello', '--json')) as { job: JobView }).job;
        expect(await asked('submit', 'examples/hello.yaml')).toContain('hello submitted');
        expect(await asked('jobs')).toContain('hello');
        const patience = performance.now() + DONE_WITHIN_MS;
        for (let job = await status(); job.state !== 'succeeded'; job = await status()) {
          if (performance.now() > patience) throw new Error(`hello is ${job.state}`);
          await new Promise((resolve) => setTimeout(resolve, 3000));
        }
        expect(await asked('logs', 'hello')).toContain('hello from task');
        expect(await asked('cost')).toContain('hello');
        ctrlC();
        expect(await ended).toBe(130);
        expect(left()).toEqual([]);
        const { code, stderr } = await ebb(['jobs'], env);
        expect([code, stderr]).toEqual([9, expect.stringContaining('ECONNREFUSED')]);
      },
      DEPLOYED_WITHIN_MS + DONE_WITHIN_MS + GONE_WITHIN_MS,
    );

    it(
      'leaves nothing where it is stopped on its way',
      async () => {
        const { said, ended, ctrlC, until, left } = deploying('stopped-');
        await until(/starting LocalStack/);
        ctrlC();
        expect(await ended).toBe(130);
        expect(said.out).toBe('');
        expect(left()).toEqual([]);
      },
      DEPLOYED_WITHIN_MS,
    );
  },
  'functions',
);
