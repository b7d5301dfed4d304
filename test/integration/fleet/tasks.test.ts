import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Observation } from '../../../lib/domain/observation.ts';
import { attemptId, effectKey, instanceId, type AttemptId } from '../../../lib/kernel/ids.ts';
import { mib, milliCpu, raw, seconds } from '../../../lib/kernel/units.ts';
import { layout } from '../../../lib/drivers/local/fleet/layout.ts';
import type { StartRequest } from '../../../lib/ports/fleet.ts';
import { BID, CALM, endOf, ofKind, SAVES, SPIKY, startOf, START_MS } from '../../contract/fleet.ts';
import { LocalFleetBench, processesOf } from '../../support/local-fleet.ts';

const i1 = instanceId('i-0001');
const a1 = attemptId('1.1');
const NOTHING = { runtimeS: 0, exitCode: 0 };

let bench: LocalFleetBench;
beforeEach(async () => {
  bench = new LocalFleetBench(START_MS, { limits: { logBytes: 1000 } });
  await bench.fleet.launch([{ key: effectKey('launch/1'), instance: i1, pool: CALM, bid: BID }]);
});
afterEach(async () => bench.close());

const file = (...path: string[]): string => join(bench.dir, 'project', ...path);
const put = (text: string, ...path: string[]): void => {
  mkdirSync(join(file(...path), '..'), { recursive: true });
  writeFileSync(file(...path), text);
};

/** Runs one shell command as a task and waits for its end. */
async function run(
  script: string,
  more: Partial<StartRequest> = {},
  attempt: AttemptId = a1,
): Promise<Extract<Observation, { kind: 'attempt-ended' }>> {
  await start(script, more, attempt);
  const seen = await bench.until('the end of the task', (s) => endOf(s, attempt) !== undefined, 2000);
  return endOf(seen, attempt)!;
}

async function start(script: string, more: Partial<StartRequest> = {}, attempt: AttemptId = a1): Promise<void> {
  mkdirSync(file(), { recursive: true });
  const request = startOf(bench, { instance: i1, attempt, program: NOTHING });
  await bench.fleet.start([{ ...request, workdir: file(), command: ['sh', '-c', script], ...more }]);
}

describe('files of a task', () => {
  it('brings inputs into a directory of its own and puts outputs back, whole, on success only', async () => {
    put('1', 'data', 'a.txt');
    put('2', 'data', 'deep', 'b.txt');
    put('not asked for', 'other.txt');
    const script = 'mkdir out; cat data/a.txt data/deep/b.txt > out/sum; ls > listing; echo x >> data/a.txt';
    const end = await run(script, { inputs: ['data/**'], outputs: ['out/*', 'listing'] });
    expect(end).toMatchObject({ exitCode: 0, detail: null });
    expect(readFileSync(file('out', 'sum'), 'utf8')).toBe('12');
    expect(readFileSync(file('listing'), 'utf8')).toBe('data\nlisting\nout\n');
    expect(readFileSync(file('data', 'a.txt'), 'utf8')).toBe('1');
    expect(readdirSync(file()).sort()).toEqual(['data', 'listing', 'other.txt', 'out']);

    const failed = await run('echo half > half; exit 1', { outputs: ['half'] }, attemptId('2.1'));
    expect(failed.exitCode).toBe(1);
    expect(existsSync(file('half'))).toBe(false);
  });

  it('are put back by the first attempt of a round alone, and by another where that one cannot', async () => {
    const copy = { role: 'copy', outputs: ['who'] } as const;
    const ofTask = (index: number, number: number) => ({ job: 'job', stage: 'main', index, number, round: 1 });
    const [first, second, third] = ['1.1', '1.2', '1.3'].map(attemptId) as [AttemptId, AttemptId, AttemptId];
    expect(await run('echo original > who', { outputs: ['who'] }, first)).toMatchObject({ stopped: null });
    const late = await run('echo copy > who', { ...copy, task: ofTask(1, 2) }, second);
    expect(late).toMatchObject({ exitCode: 0, stopped: 'superseded', detail: '1.1 publishes its outputs' });
    expect(readFileSync(file('who'), 'utf8')).toBe('original\n');
    // A round that is over says nothing of the next one.
    expect(await run('echo again > who', { outputs: ['who'] }, third)).toMatchObject({ exitCode: 0, stopped: null });
    expect(readFileSync(file('who'), 'utf8')).toBe('again\n');

    const failed = await run('mkfifo who', { outputs: ['who'] }, attemptId('2.1'));
    expect(failed.detail).toMatch(/only files and folders are put back/);
    const other = await run('echo copy > who', { ...copy, task: ofTask(2, 2) }, attemptId('2.2'));
    expect(other).toMatchObject({ exitCode: 0, stopped: null });
    expect(readFileSync(file('who'), 'utf8')).toBe('copy\n');
  });

  it('keeps the checkpoint of an original that lost a claim, for its task may run again', async () => {
    const saving = 'echo saved > "$EBB_CHECKPOINT_DIR/state"; echo it > who';
    const more = { outputs: ['who'], checkpoint: SAVES };
    const first = { job: 'job', stage: 'main', index: 3, number: 2, round: 1 };
    expect(await run(saving, { ...more, role: 'copy', task: first }, attemptId('3.2'))).toMatchObject({
      stopped: null,
    });
    const original = { ...first, number: 1 };
    expect(await run(saving, { ...more, task: original }, attemptId('3.1'))).toMatchObject({
      exitCode: 0,
      stopped: 'superseded',
      publisher: '3.2',
    });
    const state = join(layout.checkpoints(join(bench.dir, 'fleet'), original), 'state');
    expect(readFileSync(state, 'utf8')).toBe('saved\n');
    const again = { ...original, number: 3, round: 3 };
    const resumed = `test "$EBB_RESUMED" = 1 && cat "$EBB_CHECKPOINT_DIR/state" > who`;
    expect(await run(resumed, { ...more, task: again }, attemptId('3.3'))).toMatchObject({
      exitCode: 0,
      stopped: null,
    });
    expect(readFileSync(file('who'), 'utf8')).toBe('saved\n');
    expect(existsSync(state)).toBe(false);
  });

  it('of an attempt that is told that it is superseded are not put back', async () => {
    await start('trap "echo late > who; exit 0" TERM; echo up; while :; do sleep 0.05; done', { outputs: ['who'] });
    await bench.until('its start', (seen) => ofKind(seen, 'attempt-started').length > 0);
    await bench.fleet.stop([{ key: effectKey('stop/1'), attempt: a1, instance: i1, why: 'superseded' }]);
    const seen = await bench.until('its end', (s) => endOf(s, a1) !== undefined, 2000);
    expect(endOf(seen, a1)).toMatchObject({ stopped: 'superseded' });
    expect(existsSync(file('who'))).toBe(false);
  });

  it.each([
    ['when it is superseded', 'superseded', {}],
    ['as a copy', 'preempted', { role: 'copy' }],
  ] as const)('has no time to save %s', async (_, why, more) => {
    const script = 'trap "echo saved > $EBB_CHECKPOINT_DIR/state" USR2; echo up; while :; do sleep 0.05; done';
    // A grace of engine seconds that the test would not wait for.
    await start(script, { checkpoint: { ...SAVES, graceS: seconds(100_000) }, ...more });
    await bench.until('its start', (seen) => ofKind(seen, 'attempt-started').length > 0);
    await bench.fleet.stop([{ key: effectKey('stop/1'), attempt: a1, instance: i1, why }]);
    const seen = await bench.until('its end', (s) => endOf(s, a1) !== undefined, 2000);
    expect(endOf(seen, a1)).toMatchObject({ stopped: why, exitSignal: 'SIGTERM', keptS: 0 });
  });

  it('fails, saying why, when an input is missing, an output was not made, or a path leads out', async () => {
    put('secret', '..', 'outside.txt');
    mkdirSync(file(), { recursive: true });
    symlinkSync('../outside.txt', file('link'));
    const failures: [Partial<StartRequest>, RegExp][] = [
      [{ inputs: ['absent*'] }, /input pattern absent\* matches nothing/],
      [{ inputs: ['../outside.txt'] }, /leads out of the working directory/],
      [{ inputs: ['/etc/hostname'] }, /leads out of the working directory/],
      [{ inputs: ['link'] }, /leads out of the working directory/],
      [{ outputs: ['never'] }, /output never was not made/],
      [{ outputs: ['../elsewhere'] }, /leads out of the working directory/],
      [{ workdir: file('no-such'), inputs: ['x'] }, /does not exist/],
    ];
    for (const [i, [more, why]] of failures.entries()) {
      const end = await run('true', more, attemptId(`${i}.1`));
      expect(end).toMatchObject({ exitCode: null, stopped: null });
      expect(end.detail).toMatch(why);
    }
  });

  it('says when a program does not exist', async () => {
    const end = await run('', { command: ['no-such-program'] });
    expect(end).toMatchObject({ exitCode: 127, stopped: null });
    expect(end.detail).toContain('no-such-program');
  });
});

describe('environment of a task', () => {
  it('names the task, hides what belongs to the engine, and says whether there is something to resume', async () => {
    process.env['EBB_SECRET_OF_ENGINE'] = 'x';
    await bench.fleet.launch([{ key: effectKey('launch/2'), instance: instanceId('i-2'), pool: CALM, bid: BID }]);
    delete process.env['EBB_SECRET_OF_ENGINE'];
    const script =
      'printf %s "$EBB_JOB $EBB_STAGE $EBB_TASK_INDEX $EBB_TASK_ATTEMPT $EBB_RESUMED $MINE [$EBB_SECRET_OF_ENGINE]"; echo 1 > "$EBB_CHECKPOINT_DIR/c"; exit 1';
    const on2 = { instance: instanceId('i-2'), env: { MINE: 'yes' } };
    await run(script, on2);
    await run(script, on2, attemptId('1.2'));
    await run(script, on2, attemptId('3.1'));
    const said = async (a: string) => (await bench.fleet.logs(attemptId(a), 'stdout', 0, 200)).text;
    expect(await said('1.1')).toBe('job main 1 1 0 yes []');
    expect(await said('1.2')).toBe('job main 1 2 1 yes []');
    expect(await said('3.1')).toBe('job main 3 1 0 yes []');
  });
});

describe('processes of a task', () => {
  it('are all gone when its leader has ended, also those that left its group', async () => {
    const end = await run('sleep 901 & setsid sleep 902 & exit 0');
    expect(end.exitCode).toBe(0);
    expect(processesOf(bench.dir).filter((p) => p.command.startsWith('sleep'))).toEqual([]);
  });

  it('killed from outside: the attempt failed by that signal', async () => {
    const end = await run('kill -9 $$');
    expect(end).toMatchObject({ exitCode: null, exitSignal: 'SIGKILL', stopped: null });
  });

  it('that answer no signal are killed in the end', async () => {
    await start('trap "" TERM USR2; sleep 900 & wait; sleep 900', { checkpoint: { ...SAVES, graceS: seconds(0.2) } });
    await bench.until('the start of the task', (s) => ofKind(s, 'attempt-started').length > 0);
    await bench.fleet.stop([{ key: effectKey('stop'), attempt: a1, instance: i1, why: 'cancelled' }]);
    const seen = await bench.until('the end of the task', (s) => endOf(s, a1) !== undefined);
    expect(endOf(seen, a1)).toMatchObject({ exitSignal: 'SIGKILL', stopped: 'cancelled' });
    expect(processesOf(bench.dir).filter((p) => p.command.startsWith('sleep'))).toEqual([]);
  });

  it('behind a shell that knows no checkpoint signal get it, and the shell does not die of it', async () => {
    // A shell that waits for its child: the signal's default action would end it, and the child with it.
    const program = `trap 'echo saved > "$EBB_CHECKPOINT_DIR/c"; exit 9' USR2; echo up; while :; do sleep 0.05; done`;
    put(program, 'program.sh');
    await start('sh program.sh; code=$?; exit $((code + 1))', { inputs: ['program.sh'], checkpoint: SAVES });
    while ((await bench.fleet.logs(a1, 'stdout', 0, 10)).text === '') await bench.until('output', () => true);
    await bench.fleet.stop([{ key: effectKey('stop'), attempt: a1, instance: i1, why: 'preempted' }]);
    const seen = await bench.until('the end of the task', (s) => endOf(s, a1) !== undefined);
    expect(endOf(seen, a1)).toMatchObject({ exitCode: 10, stopped: 'preempted' });
    expect(raw(endOf(seen, a1)!.keptS)).toBeGreaterThan(0);
  });

  it('that leave with code 0 when told to stop have not finished without their outputs', async () => {
    await start('trap "exit 0" TERM; echo up; while :; do sleep 0.05; done', { outputs: ['result'] });
    while ((await bench.fleet.logs(a1, 'stdout', 0, 10)).text === '') await bench.until('output', () => true);
    await bench.fleet.stop([{ key: effectKey('stop'), attempt: a1, instance: i1, why: 'preempted' }]);
    const seen = await bench.until('the end of the task', (s) => endOf(s, a1) !== undefined);
    expect(endOf(seen, a1)).toMatchObject({ exitCode: null, stopped: 'preempted' });
  });

  it('are measured: time of the processor and memory of all of them together', async () => {
    const busy = 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done';
    const end = await run(`sh -c '${busy}' & ${busy}; wait`);
    expect(raw(end.usage!.cpuS)).toBeGreaterThan(0.05);
    expect(raw(end.usage!.maxRss)).toBeGreaterThan(0.5);
  });

  // Other systems do not tell it by process.
  (process.platform === 'linux' ? it : it.skip)('are measured: load of their own, and of the machine', async () => {
    const write = 'dd if=/dev/zero of="$EBB_CHECKPOINT_DIR/x" bs=1M count=8 conv=fsync 2>/dev/null';
    const { usage } = await run(`i=0; while [ $i -lt 10 ]; do ${write}; i=$((i+1)); done; sleep 2`);
    const { own, machine } = usage ?? {};
    expect(own?.cpu).toBeGreaterThan(0);
    expect(machine?.load.cpu).toBeGreaterThan(0);
    expect(machine?.load.ioWait).toBeLessThanOrEqual(1);
    expect(machine?.most.netSent).toBeGreaterThan(0);
  });
});

describe('memory of a task', () => {
  const asking = (n: number): Partial<StartRequest> => ({
    resources: { cpu: milliCpu(500), memory: mib(n), gpus: 0, disk: mib(0) },
  });
  const HOLD = 'const held = Buffer.alloc(200 * 2 ** 20, 1); setTimeout(() => held.length, 60000)';

  it('over what its job asks for ends the task, whose reason says so', async () => {
    const end = await run(`exec "${process.execPath}" -e '${HOLD}'`, asking(150));
    expect(end).toMatchObject({ exitSignal: 'SIGKILL', stopped: null });
    expect(end.detail).toMatch(/^out of memory: .* its job asks for 150 MiB; ask for more with resources\.memory$/);
  });

  it('of a child counts as well, and so does that of a task that is just being stopped', async () => {
    await start(`trap "" TERM; "${process.execPath}" -e '${HOLD}' & wait; wait`, {
      ...asking(150),
      checkpoint: { ...SAVES, graceS: seconds(3000) },
    });
    const seen = await bench.until('the end of the task', (s) => endOf(s, a1) !== undefined, 2000);
    expect(endOf(seen, a1)!.detail).toMatch(/^out of memory/);
    expect(processesOf(bench.dir).filter((p) => p.command.includes('held'))).toEqual([]);
  });

  it('that its processes share counts once', async () => {
    // Three processes that hold the same 60 MiB: a tmpfs file, mapped by all of them.
    const fork = `
import mmap, os, time, tempfile
m = mmap.mmap(-1, 60 * 2**20)
m.write(b"x" * (60 * 2**20))
for _ in range(3):
    if os.fork() == 0:
        sum(m[i] for i in range(0, len(m), 4096)); time.sleep(4); os._exit(0)
for _ in range(3): os.wait()
`;
    put(fork, 'fork.py');
    const end = await run('exec python3 fork.py', { ...asking(128), inputs: ['fork.py'] });
    expect(end).toMatchObject({ exitCode: 0, detail: null });
  });
});

describe('environment of a task', () => {
  it('has what programs need and what its job says, and nothing else of the engine', async () => {
    const secrets = {
      AWS_SECRET_ACCESS_KEY: 'of the engine',
      MY_TOKEN: 'of the engine',
      EBB_TOKEN: 'x',
      LC_ALL: 'C.UTF-8',
    };
    const before = { ...process.env };
    Object.assign(process.env, secrets);
    try {
      await bench.close();
      bench = new LocalFleetBench(START_MS);
      await bench.fleet.launch([{ key: effectKey('launch/1'), instance: i1, pool: CALM, bid: BID }]);
      // Also what it can read of its supervisor.
      await run('env | sort; tr "\\0" "\\n" </proc/$PPID/environ', { env: { FROM_JOB: 'yes', TZ: 'Asia/Tokyo' } });
    } finally {
      process.env = before;
    }
    const { text } = await bench.fleet.logs(a1, 'stdout', 0, 100_000);
    expect(text).not.toMatch(/of the engine|EBB_TOKEN|JEST_WORKER_ID/);
    const names = new Set(text.split('\n').flatMap((line) => /^([A-Z_]+)=/.exec(line)?.[1] ?? []));
    expect([...names].filter((name) => !name.startsWith('EBB_')).sort()).toEqual(
      expect.arrayContaining(['FROM_JOB', 'LC_ALL', 'PATH', 'TZ']),
    );
    expect(text).toContain('TZ=Asia/Tokyo');
    const allowed =
      /^(EBB_\w+|FROM_JOB|LC_ALL|PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|PWD|OLDPWD|SHLVL|_)$/;
    expect([...names].filter((name) => !allowed.test(name))).toEqual([]);
  });
});

describe('logs of a task', () => {
  it('are bounded, say so, and the task does not notice', async () => {
    const end = await run('i=0; while [ $i -lt 500 ]; do echo 0123456789; i=$((i+1)); done; echo err >&2');
    expect(end.exitCode).toBe(0);
    const { text } = await bench.fleet.logs(a1, 'stdout', 0, 10_000);
    expect(text).toBe(`${'0123456789\n'.repeat(91).slice(0, 1000)}\n[ebb: log ends here, its limit is 1000 bytes]\n`);
    expect((await bench.fleet.logs(a1, 'stderr', 0, 100)).text).toBe('err\n');
  });

  it('on a full disk are lost, and nothing else is', async () => {
    const path = layout.log(join(bench.dir, 'fleet'), a1, 'stdout');
    mkdirSync(join(path, '..'), { recursive: true });
    symlinkSync('/dev/full', path);
    const end = await run('echo to nowhere; echo result > result', { outputs: ['result'] });
    expect(end.exitCode).toBe(0);
    expect(readFileSync(file('result'), 'utf8')).toBe('result\n');
  });
});

describe('an interruption', () => {
  it('is survived: the next attempt, elsewhere, goes on from the checkpoint', async () => {
    const i2 = instanceId('i-spiky');
    await bench.fleet.launch([{ key: effectKey('launch/2'), instance: i2, pool: SPIKY, bid: BID }]);
    // Counts to 60 in steps of 0.1 s and saves where it is only when told to.
    put(
      `n=0; [ "$EBB_RESUMED" = 1 ] && n=$(cat "$EBB_CHECKPOINT_DIR/n")
       echo "from $n"
       trap 'echo $n > "$EBB_CHECKPOINT_DIR/n.tmp"; mv "$EBB_CHECKPOINT_DIR/n.tmp" "$EBB_CHECKPOINT_DIR/n"; exit 75' USR2
       while [ $n -lt 60 ]; do sleep 0.1; n=$((n+1)); done
       echo $n > total`,
      'count.sh',
    );
    const files = { command: ['sh', 'count.sh'], inputs: ['count.sh'], outputs: ['total'], checkpoint: SAVES };
    const first = await run('', { ...files, instance: i2 });
    expect(first.stopped).toBe('interrupted');
    expect(raw(first.keptS)).toBeGreaterThan(0);
    const second = await run('', files, attemptId('1.2'));
    expect(second).toMatchObject({ exitCode: 0, stopped: null });
    expect(readFileSync(file('total'), 'utf8')).toBe('60\n');
    const from = /from (\d+)/.exec((await bench.fleet.logs(attemptId('1.2'), 'stdout', 0, 100)).text)?.[1];
    expect(Number(from)).toBeGreaterThan(0);
    // Nothing is left to resume from once the task has succeeded.
    expect(existsSync(layout.checkpoints(join(bench.dir, 'fleet'), { job: 'job', stage: 'main', index: 1 }))).toBe(
      false,
    );
  });
});
