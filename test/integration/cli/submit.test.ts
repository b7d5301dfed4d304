import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ApiRequest, ApiResponse, Dispatch } from '../../../lib/api/dispatch.ts';
import { serveApi, type ApiServer } from '../../../lib/api/server/server.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { apiUnderTest, type ApiUnderTest } from '../../support/api.ts';
import { ebb, type Ran } from '../../support/run-ebb.ts';

const BATCH = '/api/jobs/batch';
const FIELDS = 'command: "true"\nresources: {cpu: 1, memory: 128MiB}\n';
const yaml = (name: string, fields = FIELDS): string => `name: ${name}\n${fields}`;

interface Submitted {
  readonly source: string;
  readonly outcome: string;
  readonly job: { readonly id: string; readonly name: string } | null;
  readonly problem: { readonly code: string } | null;
}

let api: ApiUnderTest;
let server: ApiServer;
let cwd: string;
/** Paths of POST requests, as they came. */
let posts: string[];
/** What stands between client and engine. */
let between: (request: ApiRequest, next: Dispatch) => Promise<ApiResponse>;

beforeEach(async () => {
  api = apiUnderTest();
  posts = [];
  between = (request, next) => next(request);
  cwd = mkdtempSync(join(tmpdir(), 'ebb-submit-'));
  server = await serveApi({
    port: 0,
    dispatch: (request) => {
      if (request.method === 'POST') posts.push(request.path);
      return between(request, api.dispatch);
    },
  });
});
afterEach(async () => {
  await server.close(0);
  rmSync(cwd, { recursive: true, force: true });
});

const submit = (args: readonly string[], input?: string): Promise<Ran> =>
  ebb(['submit', ...args], { cwd, env: { EBB_URL: server.url }, ...(input === undefined ? {} : { input }) });
const write = (name: string, text: string): string => {
  writeFileSync(join(cwd, name), text);
  return name;
};
const answers = ({ stdout }: Ran): Submitted[] => JSON.parse(stdout) as Submitted[];

/** In order of submission. */
async function stored(): Promise<Job[]> {
  const jobs: Job[] = [];
  for (let after: string | null = null; ;) {
    const page = await api.store.jobs({}, 1000, after);
    jobs.push(...page.items);
    if (page.next === null) return jobs.reverse();
    after = page.next;
  }
}
const names = async (): Promise<string[]> => (await stored()).map((j) => j.spec.name);

describe('ebb submit of several jobs', () => {
  it('sends them in batches, in order, however many documents a file has', async () => {
    const count = 1201;
    write('all.yaml', Array.from({ length: count }, (_, i) => yaml(`n${i}`)).join('---\n'));
    write('last.yaml', yaml('last'));
    const { code, stdout, stderr } = await submit(['all.yaml', 'last.yaml']);
    expect({ code, errors: stderr.match(/error/) }).toEqual({ code: 0, errors: null });
    expect(stdout).toMatch(/^✓ 1202 jobs submitted in \S+\n$/);
    expect(posts).toEqual([BATCH, BATCH, BATCH]);
    expect(await names()).toEqual([...Array.from({ length: count }, (_, i) => `n${i}`), 'last']);
    expect(new Set((await stored()).map((j) => j.spec.stages[0]?.workdir))).toEqual(new Set([cwd]));
  });

  it('takes a job on each line, from a file or from standard input, and lists few of them', async () => {
    const lines = ['a', 'b', 'c'].map((name) => JSON.stringify({ name, command: 'true' })).join('\n');
    write('jobs.ndjson', `\n${lines}\n\n`);
    const { stdout } = await submit(['jobs.ndjson']);
    expect(stdout.match(/^✓ [abc] submitted: j-\w{15}$/gm)).toHaveLength(3);
    expect((await submit(['-'], lines.replaceAll('"true"', '"false"'))).code).toBe(0);
    expect((await submit(['-', '--json'], yaml('d'))).code).toBe(0);
    expect(await names()).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'd']);
    expect(posts).toEqual([BATCH, BATCH, '/api/jobs']);
  });

  it('packs by size as well as by number', async () => {
    const filled = (i: number): string => yaml(`n${i}`, `command: ["true", "${'x'.repeat(60_000)}"]\n`);
    write('large.yaml', Array.from({ length: 40 }, (_, i) => filled(i)).join('---\n'));
    expect((await submit(['large.yaml'])).code).toBe(0);
    expect(posts).toEqual([BATCH, BATCH, BATCH]);
    expect(await names()).toEqual(Array.from({ length: 40 }, (_, i) => `n${i}`));
  });

  it('sends nothing when one of them has a fault, and names every place', async () => {
    write('good.yaml', yaml('good'));
    write('bad.yaml', `${yaml('a')}---\n${yaml('b', 'comand: "true"\n')}---\n${yaml('c')}---\nname: [\n`);
    const { code, stdout, stderr } = await submit(['good.yaml', 'bad.yaml', 'absent.yaml']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('3 of 6 jobs cannot be read or have faults; none was submitted');
    expect(stderr).toMatch(/bad\.yaml:6:1 comand: unknown key "comand"; did you mean `command`\?/);
    expect(stderr).toMatch(/bad\.yaml:1[123]:\d+: /);
    expect(stderr).toContain('absent.yaml: the job file cannot be read: no such file');
    expect(posts).toEqual([]);
  });

  it('--keep-going sends the others', async () => {
    write('bad.yaml', `${yaml('a')}---\n${yaml('b', 'comand: "true"\n')}---\n${yaml('c')}`);
    const ran = await submit(['bad.yaml', '--keep-going', '--json']);
    expect(ran.code).toBe(2);
    expect(answers(ran).map((a) => [a.source, a.outcome, a.job?.name ?? a.problem?.code])).toEqual([
      ['bad.yaml (job 1 of 3)', 'created', 'a'],
      ['bad.yaml (job 2 of 3)', 'refused', 'job-file.invalid'],
      ['bad.yaml (job 3 of 3)', 'created', 'c'],
    ]);
    expect(await names()).toEqual(['a', 'c']);
  });

  it('loses none for one of a thousand that the engine refuses; corrected, only that one is submitted', async () => {
    const jobs = Array.from({ length: 1000 }, (_, i) => yaml(`n${i}`));
    const huge = jobs.with(617, yaml('n617', 'command: "true"\nresources: {cpu: 4000}\n'));
    write('many.yaml', huge.join('---\n'));
    const { code, stdout, stderr } = await submit(['many.yaml']);
    expect(code).toBe(2);
    expect(stdout).toMatch(/^✗ 999 jobs submitted in \S+, 1 refused\n$/);
    expect(stderr).toContain('many.yaml (job 618 of 1000): no pool can hold a task of stage main (job.unplaceable)');
    const key = /--key (\S+):/.exec(stderr)?.[1] ?? '';
    write('many.yaml', jobs.join('---\n'));
    const again = await submit(['many.yaml', '--key', key]);
    expect([again.code, again.stdout]).toEqual([
      0,
      expect.stringMatching(/^✓ 1 job submitted in \S+, 999 submitted before\n$/),
    ]);
    expect((await names()).sort()).toEqual(jobs.map((_, i) => `n${i}`).sort());
  });

  it('makes each job once under a key, and refuses a changed one with the code of the conflict', async () => {
    const [a, b] = [write('a.yaml', yaml('a')), write('b.yaml', yaml('b'))];
    const first = answers(await submit([a, b, '--key', 'k', '--json']));
    const again = answers(await submit([a, b, '--key', 'k', '--json']));
    expect(again.map((r) => r.outcome)).toEqual(['repeated', 'repeated']);
    expect(again.map((r) => r.job?.id)).toEqual(first.map((r) => r.job?.id));
    write('b.yaml', yaml('changed'));
    const changed = await submit([a, b, '--key', 'k']);
    expect(changed.code).toBe(6);
    expect(changed.stderr).toContain('b.yaml: this Idempotency-Key was used with another body (conflict)');
    expect(await names()).toEqual(['a', 'b']);
  });

  it.each([
    ['answers 503 although the jobs were taken', 503, '{"message":"Service Unavailable"}'],
    ['answers 504', 504, '{"message":"Endpoint request timed out"}'],
    ['says that there is too much at once', 429, '{"message":"Too Many Requests"}'],
  ])('sends a batch again that something %s to, and makes no job twice', async (_, status, body) => {
    let faults = 0;
    between = async (request, next) => {
      const answer = await next(request);
      return posts.length === 2 && faults++ === 0 ? { status, headers: {}, body } : answer;
    };
    write('many.yaml', Array.from({ length: 1000 }, (_x, i) => yaml(`n${i}`)).join('---\n'));
    const { code, stdout } = await submit(['many.yaml']);
    expect([code, posts.length, faults]).toEqual([0, 3, 1]);
    expect(stdout).toMatch(/^✓ 500 jobs submitted in \S+, 500 submitted before\n$/);
    expect(await names()).toHaveLength(1000);
  });

  it('says how to go on when the engine refuses to go on', async () => {
    const refusal = { code: 'store.newer', what: 'the database was written by a newer version' };
    between = async (request, next) =>
      posts.length === 2 ? { status: 409, headers: {}, body: JSON.stringify(refusal) } : next(request);
    write('many.yaml', Array.from({ length: 1000 }, (_, i) => yaml(`n${i}`)).join('---\n'));
    const { code, stderr } = await submit(['many.yaml']);
    expect(code).toBe(9);
    expect(stderr).toContain('newer version, after 500 of 1,000 jobs were taken');
    const key = /--key (\S+):/.exec(stderr)?.[1] ?? '';
    expect((await submit(['many.yaml', '--key', key])).stdout).toContain('500 submitted before');
    expect(await names()).toHaveLength(1000);
  });

  it('does not wait for an engine that was never there', async () => {
    await server.close(0);
    write('two.yaml', `${yaml('a')}---\n${yaml('b')}`);
    const { code, stderr } = await submit(['two.yaml']);
    expect(code).toBe(10);
    expect(stderr).not.toContain('trying again');
  });

  it('stopped midway says how to go on, and nothing is made twice', async () => {
    write('many.yaml', Array.from({ length: 1000 }, (_, i) => yaml(`n${i}`)).join('---\n'));
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const reached = new Promise<void>((resolve) => {
      between = async (request, next) => {
        const answer = await next(request);
        if (posts.length !== 2) return answer;
        resolve();
        await held;
        return answer;
      };
    });
    const child = spawn(process.execPath, [join(process.cwd(), 'bin', 'ebb.mjs'), 'submit', 'many.yaml'], {
      cwd,
      env: { ...process.env, EBB_URL: server.url },
    });
    let stderr = '';
    child.stderr.on('data', (chunk) => (stderr += String(chunk)));
    const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
    await reached;
    child.kill('SIGINT');
    expect(await ended).toBe(130);
    release();
    expect(stderr).toContain('stopped: 500 of 1,000 jobs were taken');
    const key = /--key (\S+):/.exec(stderr)?.[1] ?? '';
    const again = await submit(['many.yaml', '--key', key]);
    expect(again.stdout).toMatch(/^✓ 0 jobs submitted in \S+, 1,000 submitted before\n$/);
    expect(await names()).toHaveLength(1000);
  }, 60_000);

  it('refuses a file that is too large without reading it', async () => {
    write('a.yaml', yaml('a'));
    write('large.yaml', '');
    truncateSync(join(cwd, 'large.yaml'), 2 ** 40);
    const { code, stderr } = await submit(['a.yaml', 'large.yaml']);
    expect(code).toBe(2);
    expect(stderr).toContain('large.yaml: this is too large for a file of jobs');
    expect(posts).toEqual([]);
  });

  it('a job that is too large by itself holds up no other', async () => {
    const text = 'x'.repeat(60_000);
    const stages = Array.from({ length: 20 }, (_, i) => `  - {name: s${i}, command: ["true", *t]}`).join('\n');
    const large = `name: large\nlabels: {a: b}\nenv: {T: &t ${text}}\nstages:\n${stages}\n`;
    write('mixed.yaml', `${yaml('a')}---\n${large}---\n${yaml('b')}`);
    const ran = await submit(['mixed.yaml', '--json']);
    expect(ran.code).toBe(2);
    expect(answers(ran).map((r) => r.problem?.code ?? r.outcome)).toEqual(['created', 'body-too-large', 'created']);
  });
});
