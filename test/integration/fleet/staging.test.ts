import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Observation } from '../../../lib/domain/observation.ts';
import { attemptId, effectKey, instanceId, type AttemptId } from '../../../lib/kernel/ids.ts';
import { inside, layout } from '../../../lib/drivers/local/fleet/layout.ts';
import { matchingFiles } from '../../../lib/drivers/local/fleet/matching-files.ts';
import { bringInputs, putOutputs } from '../../../lib/drivers/local/fleet/staging.ts';
import type { StartRequest } from '../../../lib/ports/fleet.ts';
import { BID, CALM, endOf, startOf, START_MS } from '../../contract/fleet.ts';
import { LocalFleetBench, processesOf } from '../../support/local-fleet.ts';
import { until } from '../../support/until.ts';

const i1 = instanceId('i-0001');

const putBelow = (root: string, files: Record<string, string>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
};

describe('the process that copies files', () => {
  let bench: LocalFleetBench;
  beforeEach(async () => {
    bench = new LocalFleetBench(START_MS);
    await bench.fleet.launch([{ key: effectKey('launch/1'), instance: i1, pool: CALM, bid: BID }]);
    putBelow(join(bench.dir, 'project'), { 'in.txt': 'x' });
  });
  afterEach(async () => bench.close());

  const start = (attempt: AttemptId, more: Partial<StartRequest>) => {
    const request = startOf(bench, { instance: i1, attempt, program: { runtimeS: 0, exitCode: 0 } });
    const key = effectKey(`start/${attempt}`);
    return bench.fleet.start([{ ...request, key, workdir: join(bench.dir, 'project'), command: ['true'], ...more }]);
  };
  const ended = async (attempt: AttemptId): Promise<Extract<Observation, { kind: 'attempt-ended' }>> => {
    const seen = await bench.until(`the end of ${attempt}`, (s) => endOf(s, attempt) !== undefined, 4000);
    return endOf(seen, attempt)!;
  };
  const stagers = (): number[] =>
    processesOf(bench.dir).flatMap((p) => (p.command.includes('stager.mjs') ? [p.pid] : []));
  const heartbeat = (): string => readFileSync(inside.heartbeat(layout.instance(join(bench.dir, 'fleet'), i1)), 'utf8');

  it('refuses braces by their number, at once: other tasks of the instance go on', async () => {
    const [bomb, plain] = [attemptId('1.1'), attemptId('2.1')];
    await start(bomb, { inputs: ['{a,b}'.repeat(22)] });
    await start(plain, { inputs: ['in.txt'] });
    expect(await ended(plain)).toMatchObject({ exitCode: 0 });
    expect((await ended(bomb)).detail).toContain('stands for 4194304 patterns');
  });

  it('may hang or be killed: the supervisor lives, other tasks run, stops are obeyed, and the next one copies again', async () => {
    await start(attemptId('1.1'), { inputs: ['in.txt'] });
    await ended(attemptId('1.1'));
    const [stager, ...others] = stagers();
    expect(others).toEqual([]);
    process.kill(stager!, 'SIGSTOP');
    await start(attemptId('2.1'), { inputs: ['in.txt'] });
    await start(attemptId('3.1'), { inputs: ['in.txt'] });
    await start(attemptId('4.1'), {});
    expect(await ended(attemptId('4.1'))).toMatchObject({ exitCode: 0 });
    const before = heartbeat();
    await until(() => heartbeat() !== before);

    await bench.fleet.stop([{ key: effectKey('stop'), attempt: attemptId('2.1'), instance: i1, why: 'cancelled' }]);
    expect(await ended(attemptId('2.1'))).toMatchObject({ stopped: 'cancelled', detail: 'stopped before it began' });
    process.kill(stager!, 'SIGKILL');
    expect(await ended(attemptId('3.1'))).toMatchObject({
      stopped: null,
      detail: 'files could not be copied: SIGKILL',
    });
    await start(attemptId('5.1'), { inputs: ['in.txt'], outputs: ['in.txt'] });
    expect(await ended(attemptId('5.1'))).toMatchObject({ exitCode: 0 });
  });

  it('is gone when its instance is', async () => {
    await start(attemptId('1.1'), { inputs: ['in.txt'] });
    await ended(attemptId('1.1'));
    expect(stagers()).toHaveLength(1);
    await bench.fleet.release([{ key: effectKey('release'), instance: i1 }]);
    await until(() => processesOf(bench.dir).length === 0);
  });

  it('says which patterns of outputs no file matches', async () => {
    await start(attemptId('1.1'), { command: ['touch', 'made.txt'], outputs: ['*.png', 'made.*', '{a,b}.csv'] });
    const end = await ended(attemptId('1.1'));
    expect(end).toMatchObject({ exitCode: 0, stopped: null });
    expect(end.detail).toBe('no file matches *.png, {a,b}.csv among its outputs');
  });
});

async function allOf(paths: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const path of paths) all.push(path);
  return all;
}

describe('files', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ebb-staging-'));
    putBelow(dir, {
      'a.txt': '',
      'b.txt': '',
      '.hidden': '',
      'data/f': '',
      'data/.hf': '',
      'data/sub/g': '',
      'data/.hid/z': '',
      'other/q': '',
      '.hd/x/y': '',
      '3/x': '',
    });
    symlinkSync('../other', join(dir, 'data', 'link'));
    symlinkSync('nothing', join(dir, 'dangling'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const found = async (pattern: string): Promise<string[]> => (await allOf(matchingFiles(pattern, dir))).sort();

  it.each<readonly [string, readonly string[]]>([
    ['**', ['.']],
    ['data/**', ['data']],
    ['**/**', ['.']],
    ['*', ['3', 'a.txt', 'b.txt', 'data', 'other']],
    ['*/', ['3', 'data', 'other']],
    ['.*', ['.hd', '.hidden']],
    ['data/**/*', ['data/f', 'data/link', 'data/sub']],
    ['**/q', ['other/q']],
    ['**/g', ['data/sub/g']],
    ['**/**/g', ['data/sub/g']],
    ['**/sub/**', ['data/sub']],
    ['data/link/*', ['data/link/q']],
    ['**/.h*', ['.hd', '.hidden', 'data/.hf', 'data/.hid']],
    ['.hd/**/y', ['.hd/x/y']],
    ['{a,b,c}.txt', ['a.txt', 'b.txt']],
    ['{data,other,{1..5}}/?', ['3/x', 'data/f', 'other/q']],
    ['{**/g,data/*}', ['data/f', 'data/link', 'data/sub']],
    ['./a.txt', ['a.txt']],
    ['a.txt/**', []],
    ['a.txt/*', []],
    ['*.txt/', []],
    ['dangl*', []],
    ['nope/**', []],
    ['{,}', []],
  ])('that match %s', async (pattern, expected) => {
    expect(await found(pattern)).toEqual(expected);
  });

  it('are looked for only where they can be', async () => {
    let entries = 0;
    const looking = { onEntry: () => void entries++ };
    expect(await allOf(matchingFiles('data/sub/{g,h,i}', dir, looking))).toEqual(['data/sub/g']);
    expect(entries).toBe(5);
    const stopped = new AbortController();
    stopped.abort();
    await expect(allOf(matchingFiles('**/g', dir, { signal: stopped.signal }))).rejects.toThrow('aborted');
  });

  it('of tasks that put the same path at the same time are each whole, and nothing else is left behind', async () => {
    const workdir = join(dir, 'work');
    mkdirSync(workdir);
    const name = 'n'.repeat(250);
    const texts = Array.from({ length: 16 }, (_, i) => String(i).repeat(200_000));
    const puts = texts.map((text, i) => {
      const scratch = join(dir, 'scratch', String(i));
      putBelow(scratch, { [name]: text });
      return putOutputs([name], { workdir, scratch, fleetDir: join(dir, 'fleet') });
    });
    await Promise.all(puts);
    expect(readdirSync(workdir)).toEqual([name]);
    expect(texts).toContain(readFileSync(join(workdir, name), 'utf8'));
  });

  // Opening a pipe waits for a writer: the process would copy nothing any more, for any task.
  (process.platform === 'linux' ? it : it.skip)('are files and folders: pipes are refused', async () => {
    const scratch = join(dir, 'scratch');
    mkdirSync(scratch);
    execFileSync('sh', ['-c', 'mkfifo "$1"', 'sh', join(scratch, 'pipe')]);
    const places = { workdir: dir, scratch, fleetDir: join(dir, 'fleet') };
    for (const output of ['pipe', 'p*']) {
      await expect(putOutputs([output], places)).rejects.toThrow(/is a pipe, a socket or a device/);
    }
  });

  it('are brought with what folders hold, hidden files too, but put without those', async () => {
    const scratch = join(dir, 'scratch');
    const fleetDir = join(dir, 'fleet');
    mkdirSync(fleetDir);
    await bringInputs(['data/**'], { workdir: dir, scratch, fleetDir });
    expect(existsSync(join(scratch, 'data', '.hid', 'z'))).toBe(true);
    const target = join(dir, 'target');
    mkdirSync(target);
    expect(await putOutputs(['data', 'none*'], { workdir: target, scratch, fleetDir })).toEqual(['none*']);
    expect(readdirSync(join(target, 'data')).sort()).toEqual(['f', 'link', 'sub']);
  });
});
