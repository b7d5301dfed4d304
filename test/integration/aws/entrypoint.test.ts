import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ENTRY_POINT, SUPERSEDED_CODE } from '../../../lib/drivers/aws/fleet/entrypoint.ts';
import { inputScript, outputScript } from '../../../lib/drivers/aws/fleet/staging.ts';
import { placedInS3 } from '../../../lib/drivers/aws/fleet/job-files.ts';
import { parseJobFile } from '../../../lib/domain/job-file/job-file.ts';
import { awsCliIn } from '../../support/aws-cli.ts';
import { describeOnMoto } from '../../support/moto.ts';
import { describeMissing } from '../../support/required.ts';

/** The entrypoint as a real process: real shells, real signals, real files, and an `aws` in its PATH. */

const BUCKET = 'files';
const WORKDIR = `s3://${BUCKET}/work/j1`;
const CHECKPOINT = `s3://${BUCKET}/checkpoints/j1/main/0/`;
const MARK = 'kept/mark';
const REPORT = 'ebb-end-0123';
const CLAIM = `s3://${BUCKET}/checkpoints/j1/main/0.publisher-`;

/** What the `aws` of a bench works on. */
interface Bucket {
  put(key: string, content: string): Promise<void>;
  get(key: string): Promise<string>;
  keys(prefix?: string): Promise<readonly string[]>;
}

class FolderBucket implements Bucket {
  readonly root: string;
  constructor(root: string) {
    this.root = join(root, BUCKET);
    mkdirSync(this.root, { recursive: true });
  }
  async put(key: string, content: string): Promise<void> {
    mkdirSync(dirname(join(this.root, key)), { recursive: true });
    writeFileSync(join(this.root, key), content);
  }
  async get(key: string): Promise<string> {
    return readFileSync(join(this.root, key), 'utf8');
  }
  async keys(prefix = ''): Promise<readonly string[]> {
    return readdirSync(this.root, { recursive: true, withFileTypes: true })
      .filter((e) => e.isFile())
      .map((e) => join(e.parentPath, e.name).slice(this.root.length + 1))
      .filter((key) => key.startsWith(prefix))
      .sort();
  }
}

class MotoBucket implements Bucket {
  readonly #s3: S3Client;
  constructor(s3: S3Client) {
    this.#s3 = s3;
  }
  async put(Key: string, Body: string): Promise<void> {
    await this.#s3.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body }));
  }
  async get(Key: string): Promise<string> {
    const { Body } = await this.#s3.send(new GetObjectCommand({ Bucket: BUCKET, Key }));
    return (await Body?.transformToString()) ?? '';
  }
  async keys(Prefix = ''): Promise<readonly string[]> {
    const { Contents = [] } = await this.#s3.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix }));
    return Contents.map((c) => c.Key ?? '').sort();
  }
}

interface Ended {
  readonly code: number | null;
  /** Without the report. */
  readonly stdout: string;
  readonly stderr: string;
  /** The line that begins with the mark, whole; null without one. */
  readonly report: string | null;
}

/** The empty line before a report, where the program ended its own last line, is no event of a log. */
function apart(stdout: string): Pick<Ended, 'stdout' | 'report'> {
  const [, program = stdout, report = null] = new RegExp(`^([^]*)\n(${REPORT} .*)\n$`).exec(stdout) ?? [];
  return { stdout: program, report };
}

class Running {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  #said = '';
  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on('data', (chunk) => (this.#said += String(chunk)));
    const streams = [child.stdout, child.stderr].map((stream) => text(stream!));
    this.ended = Promise.all([once(child, 'close'), ...streams]).then(([[code], stdout, stderr]) => ({
      code: code as number | null,
      ...apart(stdout as string),
      stderr: stderr as string,
    }));
  }
  stop(): void {
    this.#child.kill('SIGTERM');
  }
  /** Once the program has said `up`: what it does at a signal stands. */
  async stopWhenUp(): Promise<Ended> {
    await until('the program to be up', async () => this.#said.includes('up\n'));
    this.stop();
    return this.ended;
  }
  kill(): void {
    try {
      process.kill(-this.#child.pid!, 'SIGKILL');
    } catch {
      // It and all of its own have ended.
    }
  }
}

/** A container: a folder of its own to work in, PATH with `aws`, and the environment that the fleet gives. */
class Bench {
  readonly dir = mkdtempSync(join(tmpdir(), 'ebb-entry-'));
  readonly tools = join(this.dir, 'tools');
  readonly #running: Running[] = [];

  constructor() {
    mkdirSync(this.tools);
  }

  /** Puts a program into PATH. */
  tool(name: string, script: string): void {
    writeFileSync(join(this.tools, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(this.tools, name), 0o755);
  }

  /** Seconds become tenths; of one digit only. */
  hurry(): void {
    this.tool('sleep', 'exec /bin/sleep "0.$1"');
  }

  run(
    command: readonly string[],
    env: Readonly<Record<string, string>> = {},
    shell: readonly string[] = ['sh'],
  ): Running {
    const attempt = env['EBB_TASK_ATTEMPT'] ?? '1';
    const cwd = join(this.dir, `work-${attempt}-${this.#running.length}`);
    mkdirSync(cwd);
    const all = {
      PATH: `${this.tools}:${process.env['PATH'] ?? ''}`,
      EBB_TASK_ATTEMPT: '1',
      EBB_CHECKPOINT_DIR: join(cwd, '..', `checkpoint-${attempt}-${this.#running.length}`),
      EBB_CHECKPOINT_URI: CHECKPOINT,
      EBB_CHECKPOINT_MARK: `s3://${BUCKET}/${MARK}`,
      EBB_CHECKPOINT_PAUSE_S: '60',
      EBB_REPORT: REPORT,
      EBB_CGROUP: join(this.dir, 'no-cgroup'),
      ...env,
    };
    const [, ...rest] = ENTRY_POINT;
    const [program = 'sh', ...options] = shell;
    const child = spawn(program, [...options, ...rest, ...command], {
      cwd,
      env: all,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const running = new Running(child);
    this.#running.push(running);
    return running;
  }

  end(): void {
    for (const each of this.#running) each.kill();
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

const SAVES = { EBB_CHECKPOINT_SIGNAL: 'USR1', EBB_CHECKPOINT_GRACE_S: '9' };
const sh = (script: string): string[] => ['sh', '-c', script];
/** An attempt that names itself in its outputs. */
const naming = (attempt: string, round: number) =>
  [
    sh(`echo ${attempt} >first; mkdir more; echo ${attempt} >more/second`),
    {
      EBB_ATTEMPT: attempt,
      EBB_CLAIM: `${CLAIM}${round}`,
      EBB_OUTPUTS: outputScript(WORKDIR, ['first', 'more']),
    },
  ] as const;

async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  const patience = performance.now() + 60_000;
  while (!(await look())) {
    if (performance.now() > patience) throw new Error(`not within 60 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

async function onBench(test: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = new Bench();
  try {
    await test(bench);
  } finally {
    bench.end();
  }
}

/** A test on a bench of its own, beside others: most of its time it waits. Hooks are not run for such tests. */
const onItsBench = (name: string, test: (bench: Bench) => Promise<void>): void =>
  it.concurrent(name, async () => onBench(test));

const whichShell = (name: string): string =>
  spawnSync('sh', ['-c', `readlink -f "$(command -v ${name})"`], { encoding: 'utf8' }).stdout;

/** Those that are here; `sh` is often dash itself. */
const SHELLS = [['sh'], ['bash'], ['dash'], ['busybox', 'sh']].filter(
  ([program = '', ...options]) =>
    spawnSync(program, [...options, '-c', 'true']).status === 0 &&
    (program !== 'dash' || whichShell('dash') !== whichShell('sh')),
);

describe.each(SHELLS)('the entrypoint under %s', (...shell) => {
  const run = (bench: Bench, command: readonly string[], env: Record<string, string> = {}) =>
    bench.run(command, env, shell);

  onItsBench('passes on arguments, output and exit code, and needs no aws for that', async (bench) => {
    bench.tool('aws', 'echo called >&2; exit 9');
    const ended = await run(bench, ['sh', '-c', 'echo "$1|$2"; echo oops >&2; exit 3', 'x', 'a b', "it's"]).ended;
    expect(ended).toEqual({ code: 3, stdout: "a b|it's\n", stderr: 'oops\n', report: null });
  });

  onItsBench('gives the program its signal, then the time to save', async (bench) => {
    bench.tool('aws', 'exit 0');
    const task = run(
      bench,
      sh("trap 'echo saving; sleep 0.3; echo saved; exit 75' USR1; echo up; while :; do sleep 0.1; done"),
      SAVES,
    );
    expect(await task.stopWhenUp()).toMatchObject({ code: 75, stdout: 'up\nsaving\nsaved\n' });
  });

  onItsBench('tells the exit code of a program that ends while the signal is being handled', async (bench) => {
    bench.tool('aws', 'exit 0');
    const program = sh("trap 'exit 0' USR1; echo up; while :; do sleep 0.03; done");
    const tasks = Array.from({ length: 8 }, () => run(bench, program, SAVES));
    const ended = await Promise.all(tasks.map((t) => t.stopWhenUp()));
    expect(ended.map((e) => e.code)).toEqual(tasks.map(() => 0));
  });

  onItsBench('ends what will not end: SIGTERM after the grace, then SIGKILL', async (bench) => {
    bench.hurry();
    const program = sh("trap 'echo no' TERM; trap '' USR1; echo up; while :; do /bin/sleep 0.05; done");
    const env = { ...SAVES, EBB_CHECKPOINT_GRACE_S: '3', EBB_CHECKPOINT_SYNC: 'no' };
    const stubborn = run(bench, program, env);
    expect(await stubborn.stopWhenUp()).toMatchObject({ code: 137, stdout: 'up\nno\n' });
  });

  const below = `trap 'echo saving; sleep 1; echo saved; exit 75' USR1 TERM; echo up; while :; do sleep 0.1; done`;
  onItsBench('reaches a program below a shell', async (bench) => {
    const task = run(bench, ['sh', '-c', 'sh -c "$1"; echo "left with $?"; exit 7', 'x', below], SAVES);
    const ended = await task.stopWhenUp();
    expect(ended).toMatchObject({ code: 7, stdout: 'up\nsaving\nsaved\nleft with 75\n' });
  });

  onItsBench('waits for a program below a shell though that has gone', async (bench) => {
    // No checkpoint: SIGTERM at once, which the outer shell does not survive.
    const orphaned = run(bench, ['sh', '-c', 'sh -c "$1"; echo no', 'x', below]);
    expect(await orphaned.stopWhenUp()).toMatchObject({ code: 143, stdout: 'up\nsaving\nsaved\n' });
  });

  onItsBench('leaves nothing running behind a command that has ended', async (bench) => {
    const ended = await run(bench, sh('(sleep 1; echo late) & echo done')).ended;
    expect(ended).toMatchObject({ code: 0, stdout: 'done\n' });
  });

  onItsBench('ends what takes too long, with code 124', async (bench) => {
    const late = run(bench, sh('exec sleep 60'), { EBB_TIMEOUT_S: '1' });
    expect(await late.ended).toMatchObject({ code: 124 });
  });
});

/** Everything that has to do with S3, on one `aws` and what it works on. */
function withS3(
  name: string,
  test: typeof it | typeof it.concurrent,
  prepare: (bench: Bench) => Promise<Bucket>,
): void {
  describe(name, () => {
    const onBucket = (of: string, work: (bench: Bench, bucket: Bucket) => Promise<void>): void =>
      test(of, async () => onBench(async (bench) => work(bench, await prepare(bench))), 180_000);

    onBucket('brings inputs, puts outputs back beside them', async (bench, bucket) => {
      for (const key of ['scene/a.txt', 'scene/deep/b.txt', 'raw/1.tif', 'raw/2.tif', 'raw/deep/3.tif', 'note.txt']) {
        await bucket.put(`work/j1/${key}`, key);
      }
      await bucket.put('other/table.csv', 'table');
      const task = bench.run(
        sh(
          'find . -type f | sort; mkdir -p out/deep; echo 1 >out/1; echo 2 >out/deep/2; echo l >own.log; echo m >more.txt',
        ),
        {
          EBB_INPUTS: inputScript(WORKDIR, ['scene', 'raw/*.tif', 'note.txt', `s3://${BUCKET}/other/*.csv`]),
          EBB_OUTPUTS: outputScript(WORKDIR, ['out', '*.log', 'none/*', `s3://${BUCKET}/results/more.txt`]),
        },
      );
      const ended = await task.ended;
      expect(ended).toMatchObject({ code: 0, stderr: 'ebb: no file matches none/* among its outputs\n' });
      expect(ended.report).toBe(`${REPORT} why no file matches none/* among its outputs`);
      expect(ended.stdout.trim().split('\n')).toEqual([
        './note.txt',
        './raw/1.tif',
        './raw/2.tif',
        './scene/a.txt',
        './scene/deep/b.txt',
        './table.csv',
      ]);
      expect(await bucket.keys('work/j1/o')).toEqual(['work/j1/out/1', 'work/j1/out/deep/2', 'work/j1/own.log']);
      expect(await bucket.get('results/more.txt')).toBe('m\n');
    });

    onBucket('says which input is not there, and which output was not made', async (bench, bucket) => {
      for (const [patterns, why] of [
        [['a.txt'], `input a.txt could not be had from ${WORKDIR}/a.txt`],
        [['*.none'], `input pattern *.none matches nothing at ${WORKDIR}/`],
      ] as const) {
        const ended = await bench.run(sh('echo ran'), { EBB_INPUTS: inputScript(WORKDIR, patterns) }).ended;
        expect(ended).toMatchObject({ code: 1, stdout: '' });
        expect(ended.stderr).toContain(`ebb: ${why}\n`);
        expect(ended.report).toBe(`${REPORT} why ${why}`);
      }
      const outputs = outputScript(WORKDIR, ['made', 'unmade', 'other']);
      const ended = await bench.run(sh('echo >made'), { EBB_OUTPUTS: outputs }).ended;
      expect(ended).toMatchObject({ code: 1, stderr: 'ebb: output unmade, other was not made\n' });
      expect(await bucket.keys('work')).toEqual([]);
    });

    onBucket('publishes the outputs of one attempt of a round, and of the next round', async (bench, bucket) => {
      const round = await Promise.all(
        ['1.1', '1.2', '1.3'].map(async (name) => ({ name, ...(await bench.run(...naming(name, 1)).ended) })),
      );
      const published = async () => [await bucket.get('work/j1/first'), await bucket.get('work/j1/more/second')];
      const [winner, ...others] = round.toSorted((a, b) => (a.code ?? 0) - (b.code ?? 0));
      expect(winner).toMatchObject({ code: 0, stderr: '', report: null });
      expect(others.map((o) => o.code)).toEqual([SUPERSEDED_CODE, SUPERSEDED_CODE]);
      for (const { report } of others) expect(report).toBe(`${REPORT} why ${winner!.name} publishes its outputs`);
      expect(await published()).toEqual([`${winner!.name}\n`, `${winner!.name}\n`]);
      expect(await bench.run(...naming('1.4', 4)).ended).toMatchObject({ code: 0 });
      expect(await published()).toEqual(['1.4\n', '1.4\n']);
    });

    onBucket(
      'keeps the checkpoint of a preempted task, and the next attempt goes on from it',
      async (bench, bucket) => {
        const program = `echo "resumed $EBB_RESUMED $(cat "$EBB_CHECKPOINT_DIR/n" 2>/dev/null)"
        trap 'echo 41 >"$EBB_CHECKPOINT_DIR/n.tmp"; mv "$EBB_CHECKPOINT_DIR/n.tmp" "$EBB_CHECKPOINT_DIR/n"; exit 75' USR1
        if [ "$EBB_RESUMED" = 1 ]; then exit 0; fi
        mkdir "$EBB_CHECKPOINT_DIR/sub"; echo x >"$EBB_CHECKPOINT_DIR/sub/s"; echo half >"$EBB_CHECKPOINT_DIR/half.part"
        echo up; while :; do sleep 0.1; done`;
        const first = bench.run(sh(program), { ...SAVES, EBB_TASK_ATTEMPT: '1' });
        expect(await first.stopWhenUp()).toMatchObject({ code: 75, stdout: 'resumed 0 \nup\n' });
        expect(await bucket.keys('checkpoints/')).toEqual(['checkpoints/j1/main/0/n', 'checkpoints/j1/main/0/sub/s']);
        expect(await bucket.keys(MARK)).toEqual([MARK]);
        const second = bench.run(sh(program), { ...SAVES, EBB_TASK_ATTEMPT: '2' });
        expect(await second.ended).toMatchObject({ code: 0, stdout: 'resumed 1 41\n' });
        expect(await bucket.keys('checkpoints/')).toEqual([]);
      },
    );

    onBucket(
      'uploads while the program runs, each time that files have changed, and what is gone goes',
      async (bench, bucket) => {
        const program = `cd "$EBB_CHECKPOINT_DIR"; echo a1 >a; echo old >old
        while [ ! -e ../go ]; do sleep 0.1; done; echo a2 >b.tmp; mv b.tmp a; rm old; while [ ! -e ../end ]; do sleep 0.1; done; exit 1`;
        const task = bench.run(sh(program), { ...SAVES, EBB_CHECKPOINT_PAUSE_S: '1' });
        const at = 'checkpoints/j1/main/0/';
        await until('the first upload', async () => (await bucket.keys(MARK)).length > 0);
        expect(await bucket.get(`${at}a`)).toBe('a1\n');
        writeFileSync(join(bench.dir, 'go'), '');
        // As long as before, and S3 knows whole seconds only.
        await until('the second upload', async () => (await bucket.get(`${at}a`)) === 'a2\n');
        await until('the old file to go', async () => (await bucket.keys(at)).length === 1);
        writeFileSync(join(bench.dir, 'end'), '');
        expect(await task.ended).toMatchObject({ code: 1 });
        expect(await bucket.keys(at)).toEqual([`${at}a`]);
      },
    );
  });
}

withS3('the entrypoint with a stand-in for the AWS CLI', it.concurrent, async (bench) => {
  awsCliIn(bench.tools, join(bench.dir, 's3'));
  return new FolderBucket(join(bench.dir, 's3'));
});

describeOnMoto('with the AWS CLI, on moto', (moto) => {
  let s3: S3Client;
  beforeAll(() => {
    s3 = new S3Client({ ...moto.config, forcePathStyle: true });
  });
  afterAll(() => s3.destroy());

  // One server, emptied for each of them.
  withS3('the entrypoint', it, async (bench) => {
    await moto.reset();
    await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
    const as = 'AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1';
    const home = process.env['HOME'] ?? '';
    bench.tool('aws', `HOME='${home}' ${as} exec '${moto.aws}' --endpoint-url ${moto.config.endpoint} "$@"`);
    return new MotoBucket(s3);
  });
});

describe('the entrypoint, with what goes wrong', () => {
  const root = (bench: Bench): string => join(bench.dir, 's3');
  const calls = (bench: Bench): string => {
    const file = join(root(bench), '.calls');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  };
  const refuse = (bench: Bench, callsWith: string): void => writeFileSync(join(root(bench), '.refuse'), callsWith);
  const onFolder = (name: string, test: (bench: Bench, bucket: FolderBucket) => Promise<void>): void =>
    onItsBench(name, async (bench) => {
      awsCliIn(bench.tools, root(bench));
      await test(bench, new FolderBucket(root(bench)));
    });

  onFolder('says what an image without aws cannot do', async (bench) => {
    // An image with a shell's own tools and nothing else.
    const plain = join(bench.dir, 'plain');
    mkdirSync(plain);
    for (const tool of ['sh', 'mkdir', 'touch', 'rm', 'mv', 'sleep', 'cat']) {
      writeFileSync(join(plain, tool), `#!/bin/sh\nPATH=/bin:/usr/bin exec ${tool} "$@"\n`);
      chmodSync(join(plain, tool), 0o755);
    }
    const env = { PATH: plain };
    const staged = await bench.run(sh('echo ran'), { ...env, EBB_INPUTS: inputScript(WORKDIR, ['a']) }, ['/bin/sh'])
      .ended;
    expect(staged).toMatchObject({ code: 127, stdout: '' });
    expect(staged.stderr).toContain('the image has no aws command');
    const ordered = await bench.run(sh('echo ran'), { ...env, EBB_ORDER: `s3://${BUCKET}/orders/x` }, ['/bin/sh'])
      .ended;
    expect(ordered.stderr).toContain('longer than ECS takes');
    // A program that saves to S3 by other means is left to it.
    expect(await bench.run(sh('echo ran'), { ...env, ...SAVES }, ['/bin/sh']).ended).toMatchObject({
      code: 0,
      stdout: 'ran\n',
    });
  });

  onFolder('runs an order that was too long for ECS', async (bench, bucket) => {
    const long = 'x'.repeat(100_000);
    await bucket.put(
      'orders/mark',
      `export LONG='${long}'\nset -- 'sh' '-c' 'echo "$1 $(printf %s "$LONG" | wc -c)"' 'ebb' 'it'\\''s'\n`,
    );
    const ended = await bench.run(['placeholder'], { EBB_ORDER: `s3://${BUCKET}/orders/mark` }).ended;
    expect(ended).toEqual({ code: 0, stdout: "it's 100000\n", stderr: '', report: null });
  });

  onFolder('does not begin when it is stopped while inputs come', async (bench) => {
    const begun = join(bench.dir, 'begun');
    bench.tool('aws', `: >'${begun}'; exec sleep 30`);
    const task = bench.run(sh('echo ran'), { EBB_INPUTS: inputScript(WORKDIR, ['a', 'b']) });
    await until('the first input to be on its way', async () => existsSync(begun));
    task.stop();
    expect(await task.ended).toEqual({ code: 143, stdout: '', stderr: '', report: null });
  });

  onFolder('has failed when outputs cannot be uploaded, and says so', async (bench) => {
    refuse(bench, '/work/j1/out');
    const ended = await bench.run(sh('echo >out'), { EBB_OUTPUTS: outputScript(WORKDIR, ['out']) }).ended;
    expect(ended.code).toBe(1);
    expect(ended.report).toBe(`${REPORT} why output out could not be uploaded`);
  });

  onFolder('gives a claim back when outputs cannot be uploaded', async (bench, bucket) => {
    refuse(bench, '/work/j1/more');
    expect(await bench.run(...naming('1.1', 1)).ended).toMatchObject({ code: 1 });
    refuse(bench, 'nothing');
    expect(await bench.run(...naming('1.2', 1)).ended).toMatchObject({ code: 0 });
    expect(await bucket.get('work/j1/first')).toBe('1.2\n');
  });

  onFolder('holds a claim whose answer was lost', async (bench, bucket) => {
    await bucket.put('checkpoints/j1/main/0.publisher-1', '1.1');
    expect(await bench.run(...naming('1.1', 1)).ended).toMatchObject({ code: 0 });
    expect(await bucket.get('work/j1/first')).toBe('1.1\n');
  });

  onFolder('has failed when it cannot learn who publishes, and publishes nothing', async (bench, bucket) => {
    bench.hurry();
    refuse(bench, 'main/0.publisher-1');
    const ended = await bench.run(...naming('1.1', 1)).ended;
    expect(ended).toMatchObject({ code: 1, report: `${REPORT} why its outputs could not be claimed at ${CLAIM}1` });
    expect(await bucket.keys('work')).toEqual([]);
  });

  onFolder('publishes without conditional writes as an original, and begins no copy', async (bench, bucket) => {
    refuse(bench, '--if-none-match');
    const [program, env] = naming('1.1', 1);
    const copy = await bench.run(sh('echo ran'), { ...env, EBB_COPY: '1' }).ended;
    expect(copy).toMatchObject({ code: SUPERSEDED_CODE, stdout: '' });
    expect(copy.report).toMatch(/knows no conditional writes/);
    expect(await bench.run(program, env).ended).toMatchObject({ code: 0 });
    expect(await bucket.get('work/j1/first')).toBe('1.1\n');
  });

  onFolder('tells its own code from the same one of a program, and from a time limit', async (bench, bucket) => {
    const ended = await bench.run(sh(`exit ${SUPERSEDED_CODE}`)).ended;
    expect(ended).toMatchObject({ code: 1, report: `${REPORT} why exit code ${SUPERSEDED_CODE}` });
    await bucket.put('checkpoints/j1/main/0.publisher-1', 'another');
    const [, env] = naming('1.1', 1);
    const late = sh("trap 'mkdir more; : >first; exit 0' TERM; sleep 60 & wait");
    expect(await bench.run(late, { ...env, EBB_TIMEOUT_S: '1' }).ended).toMatchObject({ code: SUPERSEDED_CODE });
  });

  /** Calls of `aws` that an attempt with two outputs makes: its claim, and an upload for each. */
  const CALLS = 3;
  for (let call = 1; call <= CALLS; call++)
    for (const when of ['before', 'after'] as const)
      onFolder(`loses nothing when it dies ${when} call ${call}, whoever else is there`, async (bench, bucket) => {
        const cli = join(bench.tools, 'aws-cli');
        writeFileSync(cli, readFileSync(join(bench.tools, 'aws')));
        chmodSync(cli, 0o755);
        const count = join(bench.dir, 'count');
        const die = `[ "$(wc -l <'${count}')" -ne ${call} ] || kill -KILL 0`;
        const counted = `echo >>'${count}'`;
        const dying =
          when === 'before'
            ? `${counted}; ${die}; exec '${cli}' "$@"`
            : `${counted}; '${cli}' "$@"; c=$?; ${die}; exit $c`;
        bench.tool('aws', dying);
        const died = await bench.run(...naming('1.1', 1)).ended;
        expect(died.code).toBeNull();
        bench.tool('aws', `exec '${cli}' "$@"`);
        const rival = await bench.run(...naming('1.2', 1)).ended;
        // Nobody knows whether the one that claimed goes on: the round ends without a success.
        expect(rival.code).toBe(call === 1 && when === 'before' ? 0 : SUPERSEDED_CODE);
        const winner = rival.code === 0 ? '1.2' : '1.3';
        if (rival.code !== 0) expect(await bench.run(...naming('1.3', 3)).ended).toMatchObject({ code: 0 });
        for (const key of await bucket.keys('work')) expect(await bucket.get(key)).toBe(`${winner}\n`);
        expect(await bucket.keys('work')).toHaveLength(2);
      });

  onFolder('does not begin anew when the checkpoint cannot be had', async (bench) => {
    refuse(bench, 'sync');
    const ended = await bench.run(sh('echo ran'), { ...SAVES, EBB_TASK_ATTEMPT: '2' }).ended;
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('the checkpoint could not be had');
  });

  onFolder('marks no checkpoint that was not uploaded', async (bench, bucket) => {
    refuse(bench, 'sync');
    const task = bench.run(sh('echo >"$EBB_CHECKPOINT_DIR/a"; exit 1'), SAVES);
    expect(await task.ended).toMatchObject({ code: 1 });
    expect(await bucket.keys(MARK)).toEqual([]);
  });

  const DONE = `s3://${BUCKET}/checkpoints/j1/main/0.done`;
  const COPY = { ...SAVES, EBB_TASK_ATTEMPT: '2', EBB_COPY: '1', EBB_DONE: DONE, EBB_ORIGINAL_URI: CHECKPOINT };

  onFolder('saves nothing of a copy, and has no grace for it', async (bench, bucket) => {
    const program = sh(
      `trap 'echo saving' USR1; echo x >"$EBB_CHECKPOINT_DIR/a"; echo up; while :; do sleep 0.1; done`,
    );
    const env = { ...COPY, EBB_CHECKPOINT_GRACE_S: '600', EBB_CHECKPOINT_PAUSE_S: '1' };
    expect(await bench.run(program, env).stopWhenUp()).toMatchObject({ code: 143, stdout: 'up\n' });
    expect(await bucket.keys()).toEqual([]);
    expect(calls(bench)).toBe('');
  });

  onFolder(
    'removes the checkpoint of an original whose copy succeeds, and ends it without another',
    async (bench, bucket) => {
      await bucket.put('checkpoints/j1/main/0/a', 'saved');
      const script = 'echo x >"$EBB_CHECKPOINT_DIR/a"; echo up; while :; do sleep 0.1; done';
      const original = { ...SAVES, EBB_DONE: DONE, EBB_CHECKPOINT_GRACE_S: '600' };
      // Its program handles the signal, saves, and goes on.
      const task = bench.run(sh(`trap 'echo saved' USR1; ${script}`), original);
      expect(await bench.run(sh('exit 0'), COPY).ended).toMatchObject({ code: 0 });
      expect(await bucket.keys()).toEqual(['checkpoints/j1/main/0.done']);
      expect(await task.stopWhenUp()).toMatchObject({ code: 143, stdout: 'up\nsaved\n' });
      expect(await bucket.keys()).toEqual(['checkpoints/j1/main/0.done']);
    },
  );

  onFolder('saves an original whose copy did not succeed', async (bench, bucket) => {
    expect(await bench.run(sh('exit 1'), COPY).ended).toMatchObject({ code: 1 });
    const program = sh(`trap 'echo x >"$EBB_CHECKPOINT_DIR/a"; exit 75' USR1; echo up; while :; do sleep 0.1; done`);
    expect(await bench.run(program, { ...SAVES, EBB_DONE: DONE }).stopWhenUp()).toMatchObject({ code: 75 });
    expect(await bucket.keys()).toEqual(['checkpoints/j1/main/0/a', MARK]);
  });

  onFolder('leaves alone what a program saves to S3 by itself', async (bench, bucket) => {
    await bucket.put('checkpoints/j1/main/0/own', 'mine');
    expect(await bench.run(sh('exit 1'), SAVES).ended).toMatchObject({ code: 1 });
    expect(await bench.run(sh('exit 0'), SAVES).ended).toMatchObject({ code: 0 });
    expect(
      await bench.run(sh('exit 1'), { ...SAVES, EBB_CHECKPOINT_SYNC: 'no', EBB_TASK_ATTEMPT: '2' }).ended,
    ).toMatchObject({
      code: 1,
    });
    expect(await bucket.get('checkpoints/j1/main/0/own')).toBe('mine');
    expect(calls(bench)).toBe('');
  });

  onFolder('was not done when it answers its stop with code 0 before its outputs are made', async (bench, bucket) => {
    const env = { EBB_OUTPUTS: outputScript(WORKDIR, ['out']) };
    const task = bench.run(sh("trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"), env);
    expect(await task.stopWhenUp()).toMatchObject({ code: 143 });
    const done = bench.run(sh("trap 'echo >out; exit 0' TERM; echo up; while :; do sleep 0.1; done"), env);
    expect(await done.stopWhenUp()).toMatchObject({ code: 0 });
    expect(await bucket.keys('work')).toEqual(['work/j1/out']);
  });

  const V2 = {
    'memory.max': 'max',
    'memory.stat': 'anon 3000000\nfile 900\nshmem 50\n',
    'cpu.stat': 'usage_usec 7\nuser_usec 1\n',
  };
  const V1 = {
    'memory/memory.limit_in_bytes': '9',
    'memory/memory.stat': 'cache 5\nrss 1\ntotal_rss 3000050\n',
    'cpuacct/cpuacct.usage': '7000\n',
  };
  const V2_LATER = { 'memory.stat': 'anon 1\nshmem 0\n', 'cpu.stat': 'usage_usec 1500007\n' };
  const V1_LATER = { 'memory/memory.stat': 'total_rss 1\n', 'cpuacct/cpuacct.usage': '1500007000\n' };
  for (const [version, files, later] of [
    ['v2', V2, V2_LATER],
    ['v1', V1, V1_LATER],
  ] as const)
    onItsBench(`reports what the task used, by cgroup ${version}`, async (bench) => {
      bench.hurry();
      const cgroup = join(bench.dir, 'cgroup');
      const put = (all: Readonly<Record<string, string>>): void => {
        for (const [name, content] of Object.entries(all)) {
          mkdirSync(dirname(join(cgroup, name)), { recursive: true });
          writeFileSync(join(cgroup, name), content);
        }
      };
      put(files);
      const task = bench.run(sh('/bin/sleep 3; printf "no end"'), { EBB_CGROUP: cgroup });
      setTimeout(() => put(later), 1500);
      expect(await task.ended).toMatchObject({
        code: 0,
        stdout: 'no end',
        report: `${REPORT} max-rss-bytes 3000050 cpu-microseconds 1500000`,
      });
    });

  const PROC = ['diskstats', 'net/dev', 'pressure/io', 'stat', 'uptime'];
  const counters = (of: {
    readonly uptime: string;
    readonly cpu: string;
    readonly sectors: readonly [number, number];
    readonly stall: number;
    readonly net: readonly [number, number];
  }): Readonly<Record<string, string>> => ({
    'proc/uptime': `${of.uptime} 9.99\n`,
    'proc/stat': `cpu  ${of.cpu} 0 0\ncpu0 1 2 3 4 5 6 7 8 9\ncpu1 1 2 3 4 5 6 7 8 9\nintr 1 2 3\n`,
    'proc/diskstats': [
      `   7       0 loop0 1 0 1000 0 1 0 1000 0 0 0 0`,
      ` 259       0 nvme0n1 1 0 ${of.sectors[0]} 0 1 0 ${of.sectors[1]} 0 0 0 0`,
      ` 259       1 nvme0n1p1 1 0 5000 0 1 0 5000 0 0 0 0`,
    ].join('\n'),
    'proc/net/dev': [
      'Inter-|   Receive                                                |  Transmit',
      ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets',
      '    lo: 9999 1 0 0 0 0 0 0 9999 1',
      `  eth0: ${of.net[0]} 1 0 0 0 0 0 0 ${of.net[1]} 1`,
      '',
    ].join('\n'),
    'proc/pressure/io': `some avg10=0.00 avg60=0.00 avg300=0.00 total=${of.stall}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n`,
    'sys/block/loop0/size': '1',
    'sys/block/nvme0n1/size': '1',
  });
  const io = (read: number, written: number, stall: number): Readonly<Record<string, string>> => ({
    'io.stat': `259:0 rbytes=${read} wbytes=${written} rios=1 wios=1\n8:0 rbytes=1 wbytes=2 rios=1 wios=1\n`,
    'io.pressure': `some avg10=0.00 avg60=0.00 avg300=0.00 total=${stall}\n`,
  });
  const FROM = { uptime: '1200.05', cpu: '100 0 50 800 50 0 0 0', stall: 1000 };
  const BEFORE = counters({ ...FROM, sectors: [100, 200], net: [10, 20] });
  const AFTER = counters({
    uptime: '1203.15',
    cpu: '300 0 100 1150 70 0 0 0',
    stall: 501_000,
    sectors: [2100, 4200],
    net: [1010, 520],
  });
  const putIn = (root: string, all: Readonly<Record<string, string>>): void => {
    for (const [name, content] of Object.entries(all)) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), content);
    }
  };

  for (const shell of SHELLS)
    onFolder(`reports its load and that of the machine (${shell.join(' ')})`, async (bench) => {
      bench.hurry();
      const [cgroup, root] = [join(bench.dir, 'cgroup'), join(bench.dir, 'root')];
      putIn(cgroup, { ...V2, ...io(1000, 2000, 40) });
      putIn(root, BEFORE);
      const task = bench.run(sh('/bin/sleep 3'), { EBB_CGROUP: cgroup, EBB_ROOT: root }, shell);
      setTimeout(() => {
        putIn(cgroup, { ...V2_LATER, ...io(7000, 2500, 200_040) });
        putIn(root, AFTER);
      }, 1500);
      const { report } = await task.ended;
      expect(report).toBe(
        `${REPORT} max-rss-bytes 3000050 cpu-microseconds 1500000 load 310,2,620,250,20,2000,4000,500000,6000,500,1000,500,200000`,
      );
    });

  const without = (drop: string): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries({ ...BEFORE }).filter(([name]) => name !== `proc/${drop}`));
  onFolder('reports no load where the kernel has no counters, and goes on', async (bench) => {
    bench.hurry();
    const reportOf = async (n: number, root: Readonly<Record<string, string>>, cgroup: typeof root) => {
      putIn(join(bench.dir, `r${n}`), root);
      putIn(join(bench.dir, `c${n}`), { ...V2, ...cgroup });
      const at = { EBB_ROOT: join(bench.dir, `r${n}`), EBB_CGROUP: join(bench.dir, `c${n}`) };
      const { code, report } = await bench.run(sh('/bin/sleep 2'), at).ended;
      expect(code).toBe(0);
      return report;
    };
    const usage = `${REPORT} max-rss-bytes 3000050 cpu-microseconds 0`;
    const all = await Promise.all([
      reportOf(0, BEFORE, {}),
      reportOf(1, {}, io(1, 2, 3)),
      reportOf(2, without('pressure/io'), io(1, 2, 3)),
      ...PROC.map((name, n) => reportOf(3 + n, without(name), io(1, 2, 3))),
    ]);
    for (const report of all) expect(report?.slice(0, usage.length)).toBe(usage);
    expect([all[0], all[1]]).toEqual([usage, usage]);
    // No PSI: the ticks tell.
    expect(all[2]).toBe(`${usage} load 0,2,0,0,0,0,0,-,0,0,0,0,0`);
  });

  onFolder('knows a program that ran out of memory from one that was killed', async (bench) => {
    const cgroup = join(bench.dir, 'cgroup');
    mkdirSync(cgroup);
    const run = (kills: number) => {
      writeFileSync(join(cgroup, 'memory.events'), `low 0\noom 3\noom_kill ${kills}\n`);
      return bench.run(sh('kill -KILL $$'), { EBB_CGROUP: cgroup }).ended;
    };
    expect(await run(0)).toMatchObject({ code: 137, report: null });
    expect(await run(1)).toMatchObject({
      code: 137,
      report: `${REPORT} why ran out of memory: ask for more in resources.memory`,
    });
  });

  onFolder('reports in one line, and keeps from the program what that begins with', async (bench) => {
    const ended = await bench.run(sh('env; exit 0'), { EBB_OUTPUTS: outputScript(WORKDIR, ['a\nb \\c']) }).ended;
    expect(ended).toMatchObject({ code: 1, report: `${REPORT} why output a b \\c was not made` });
    expect(ended.stdout).toContain('EBB_CHECKPOINT_URI=');
    expect(ended.stdout).not.toContain(REPORT);
  });
});

const hasPython = spawnSync('python3', ['--version'], { stdio: 'ignore' }).status === 0;

describe('the example image', () => {
  const folder = join(import.meta.dirname, '../../../examples/aws-image');
  const bench = new Bench();
  afterAll(() => bench.end());

  it('has a job file that a deployment takes', () => {
    const path = join(folder, 'job.yaml');
    const spec = parseJobFile(readFileSync(path, 'utf8'), { path, baseDir: folder, defaultOwner: 'me' });
    const { notes } = placedInS3(spec, 'bucket', 'j-1');
    expect(notes).toEqual(['the image of count, sum must have the AWS CLI: its files are in S3']);
    expect(spec.stages.map((stage) => stage.workdir)).toEqual(['s3://your-bucket/primes', 's3://your-bucket/primes']);
  });

  const whole = (): void =>
    it('counts all primes, though it is stopped on the way', async () => {
      awsCliIn(bench.tools, join(bench.dir, 's3'));
      const bucket = new FolderBucket(join(bench.dir, 's3'));
      await bucket.put('work/j1/ranges.txt', '1 400000\n');
      const env = {
        ...SAVES,
        EBB_INPUTS: inputScript(WORKDIR, ['ranges.txt']),
        EBB_OUTPUTS: outputScript(WORKDIR, ['counts/0.txt']),
      };
      const command = ['python3', join(folder, 'primes.py'), 'ranges.txt', '0'];
      const first = bench.run(command, env);
      // Half of the numbers, and work for a second and more, are left when it saves by itself.
      await until('the half of it', async () => existsSync(join(bench.dir, 'checkpoint-1-0', 'state.json')));
      first.stop();
      const gaveWay = await first.ended;
      expect(gaveWay).toMatchObject({ code: 143 });
      const at = /gave way at (\d+)/.exec(gaveWay.stdout)?.[1];
      const second = await bench.run(command, { ...env, EBB_TASK_ATTEMPT: '2' }).ended;
      expect(second).toMatchObject({ code: 0, stdout: `going on from ${at}\n` });
      // Counted by a sieve elsewhere; pi(400,000) in tables of primes.
      expect(await bucket.get('work/j1/counts/0.txt')).toBe('1 400000 33860\n');
    }, 90_000);
  if (hasPython) whole();
  else describeMissing('its program', 'there is no python3', whole);
});
