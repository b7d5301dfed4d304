import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { ebb } from '../../support/run-ebb.ts';

async function completed(line: string, env: Record<string, string> = {}): Promise<string[]> {
  const { code, stdout, stderr } = await ebb(['complete', '--', ...line.split(' ')], { env });
  expect([code, stderr]).toEqual([0, '']);
  return stdout.split('\n').slice(0, -1);
}
const values = async (line: string, env?: Record<string, string>): Promise<string[]> =>
  (await completed(line, env)).map((each) => each.split('\t')[0] ?? '');

describe('candidates', () => {
  it.each([
    ['r', ['run', 'release', 'restore', ':none']],
    ['market ge', ['generate', ':none']],
    ['help exp', ['explain', ':none']],
    ['completion z', ['zsh', ':none']],
    ['cost --by o', ['owner', ':none']],
    ['jobs --state running pend', ['pending', ':none']],
    ['jobs --state running --lim', ['--limit', ':none']],
    ['run --preset tribu', ['tributary', ':none']],
    ['run --preset=tribu', ['--preset=tributary', ':none']],
    ['run --set maxLateP', ['maxLateProbability=', ':none']],
    ['run --set preset=gree', ['preset=greedy', ':none']],
    ['simulate --compare greedy,on-d', ['greedy,on-demand', ':none']],
    ['simulate --workload-option gpus=', ['gpus=keep', 'gpus=ignore', 'gpus=drop', ':none']],
    ['pools --type m4.10', ['m4.10xlarge', ':none']],
    ['run job', [':files']],
    ['run one.yaml two', [':files']],
    ['run --market ', [':files']],
    ['up --dir ', [':folders']],
    ['run --speed ', [':none']],
    ['pools --drift cap', ['capacity', ':none']],
    // Words that cannot be placed complete nothing, and break nothing.
    ['nonsense --what x', [':none']],
    ['run --nonsense=x', [':none']],
    ['run -- --pre', [':files']],
  ])('%j', async (line, expected) => {
    expect(await values(line)).toEqual(expected);
  });

  it('come with descriptions, one candidate a line', async () => {
    const lines = await completed('run --res');
    expect(lines).toEqual(['--resume\tgo on with the unfinished jobs of --dir', ':none']);
  });

  it('leave out flags that are there already', async () => {
    expect(await values('run --json --js')).toEqual([':none']);
    expect(await values('run --set a=1 --se')).toEqual(['--seed', '--settings', '--set', ':none']);
  });

  it('begin anew after a blank, also where a shell drops empty words', async () => {
    expect(await values('cost --by ')).toEqual(['job', 'owner', 'caller', 'pool', 'template', ':none']);
    const { stdout } = await ebb(['complete', '--next', '--', 'cost', '--by']);
    expect(stdout.split('\n')[0]).toBe('job\t');
  });

  it('name the jobs of the engine, without control characters, by id where a name is not the only one', async () => {
    const asked: string[] = [];
    const server = createServer(({ url }, answer) => {
      asked.push(url ?? '');
      const items = [
        { id: 'j-1', name: 'one', state: 'running', owner: 'ann' },
        { id: 'j-2', name: 'twice', state: 'failed\u001b[31m', owner: 'ann' },
        { id: 'j-3', name: 'twice', state: 'pending', owner: 'bob' },
      ];
      answer.setHeader('content-type', 'application/json');
      answer.end(JSON.stringify({ items, next: null }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const env = { EBB_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
      expect(await completed('status ', env)).toEqual([
        'one\trunning',
        'j-2\ttwice, failed [31m',
        'j-3\ttwice, pending',
        ':none',
      ]);
      await completed('cancel o', env);
      expect(asked[1]).toContain('state=pending&state=running&state=held');
      await completed('release o', env);
      expect(asked[2]).toMatch(/\?state=held(?:&|$)/);
      // A deployment on AWS is not asked.
      expect(await completed('status ', { ...env, EBB_STACK: 'Ebbtide' })).toEqual([':none']);
      expect(asked).toHaveLength(3);
    } finally {
      server.close();
    }
  });

  it('are none where no engine answers', async () => {
    expect(await completed('status ', { EBB_URL: 'http://127.0.0.1:9' })).toEqual([':none']);
  });
});

describe('scripts', () => {
  it.each(['bash', 'zsh', 'fish', 'powershell'])('for %s evaluates nothing', async (shell) => {
    const { code, stdout } = await ebb(['completion', shell]);
    expect(code).toBe(0);
    const statements = stdout.replaceAll(/^#.*$/gmu, '');
    expect(statements).toContain('ebb complete');
    expect(statements).not.toMatch(/\beval\b|compgen|Invoke-Expression|iex\b/u);
  });

  it('names the shells that there are', async () => {
    const { code, stderr } = await ebb(['completion', 'tcsh']);
    expect(code).toBe(2);
    expect(stderr).toContain('bash, zsh, fish, powershell');
  });
});
