import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { attemptId, effectKey, instanceId } from '../../../lib/kernel/ids.ts';
import { plus, raw, seconds } from '../../../lib/kernel/units.ts';
import type { Observation } from '../../../lib/domain/observation.ts';
import { BID, CALM, endOf, ofKind, startOf, START_MS } from '../../contract/fleet.ts';
import { layout } from '../../../lib/drivers/local/fleet/layout.ts';
import { lockState, takeLock } from '../../../lib/drivers/local/fleet/lock.ts';
import type { LocalFleet } from '../../../lib/drivers/local/fleet/local-fleet.ts';
import { LocalFleetBench, processesOf } from '../../support/local-fleet.ts';

const i1 = instanceId('i-0001');
const a1 = attemptId('1.1');
const launch = { key: effectKey('launch/1'), instance: i1, pool: CALM, bid: BID };
const has = (kind: Observation['kind']) => (seen: readonly Observation[]) => seen.some((o) => o.kind === kind);

let bench: LocalFleetBench;
const instanceDir = (id: string = i1): string => join(bench.dir, 'fleet', 'instances', id);
const supervisorPid = (id: string = i1): number =>
  (JSON.parse(readFileSync(join(instanceDir(id), 'lock'), 'utf8')) as { pid: number }).pid;

beforeEach(() => {
  bench = new LocalFleetBench(START_MS);
});
afterEach(async () => bench.close());

describe('death of a supervisor', () => {
  it('is a lost instance: tasks are killed and interrupted, their checkpoint kept, and every engine reads the same', async () => {
    await bench.fleet.launch([launch]);
    // The task leaves a child in its group and one that hides in a session of its own.
    const program = { runtimeS: 9000, exitCode: 0, checkpointEveryS: 50 };
    const start = startOf(bench, { instance: i1, attempt: a1, program });
    const command = ['sh', '-c', 'sleep 900 & setsid sleep 901 & exec sh -c "$0"', start.command[2] ?? ''];
    await bench.fleet.start([{ ...start, command }]);
    const before = await bench.until('a checkpoint', has('attempt-checkpointed'));
    process.kill(supervisorPid(), 'SIGKILL');
    const seen = await bench.until('the end of the instance', has('instance-ended'));
    expect(processesOf(bench.dir)).toEqual([]);
    const end = endOf(seen, a1)!;
    expect(end).toMatchObject({ exitCode: null, stopped: 'interrupted', detail: 'its instance was lost' });
    expect(raw(end.keptS)).toBeGreaterThanOrEqual(raw(ofKind(before, 'attempt-checkpointed')[0]!.keptS));
    expect(seen.at(-1)).toMatchObject({ kind: 'instance-ended', cause: 'lost' });
    expect(seen.map((o) => o.sequence)).toEqual(seen.map((_, i) => i + 1));
    // The bill ends at the last sign of life, and stays there.
    const [launched] = ofKind(seen, 'instance-launched');
    const hours = (raw(seen.at(-1)!.atMs) - raw(launched!.atMs)) / 3_600_000;
    const bill = await bench.fleet.bill(i1, plus(bench.now(), seconds(86_400)));
    expect(raw(bill.totalUsd)).toBeCloseTo(0.03 * Math.max(hours, 1 / 60), 9);
    await bench.reopen();
    expect(await bench.fleet.observe(new Map())).toEqual(seen);
  });

  it('that hangs is as good as dead: it is killed with its tasks, and the instance is lost', async () => {
    await bench.fleet.close();
    bench.fleet = bench.open({ hangsAfterS: 4 });
    await bench.fleet.launch([launch]);
    await bench.fleet.start([startOf(bench, { instance: i1, attempt: a1, program: { runtimeS: 9000, exitCode: 0 } })]);
    await bench.until('the start of the task', has('attempt-started'));
    process.kill(supervisorPid(), 'SIGSTOP');
    const seen = await bench.until('the end of the instance', has('instance-ended'));
    expect(seen.at(-1)).toMatchObject({ cause: 'lost', detail: 'its supervisor did not answer for 4 s' });
    expect(endOf(seen, a1)).toMatchObject({ stopped: 'interrupted' });
    expect(processesOf(bench.dir)).toEqual([]);
  });

  it('in the middle of writing: a torn line is not read, and what is missing is written again the same', async () => {
    await bench.fleet.launch([launch]);
    await bench.fleet.start([startOf(bench, { instance: i1, attempt: a1, program: { runtimeS: 9000, exitCode: 0 } })]);
    await bench.until('the start of the task', has('attempt-started'));
    process.kill(supervisorPid(), 'SIGKILL');
    const whole = await bench.until('the end of the instance', has('instance-ended'));
    await bench.fleet.close();
    // Each cut is a crash of the engine while it wrote the journal's end.
    const path = join(instanceDir(), 'journal.jsonl');
    const text = readFileSync(path, 'utf8');
    const written = text.indexOf('"attempt-ended"');
    for (const cut of [written, text.lastIndexOf('{'), text.length - 1]) {
      writeFileSync(path, text.slice(0, cut));
      bench.fleet = bench.open();
      expect(await bench.fleet.observe(new Map())).toEqual(whole);
      await bench.fleet.close();
      expect(readFileSync(path, 'utf8')).toBe(text);
    }
    bench.fleet = bench.open();
  });

  it('between a claim and its report: no other attempt of the round publishes, and the next round does', async () => {
    const i2 = instanceId('i-0002');
    await bench.fleet.launch([launch, { ...launch, key: effectKey('launch/2'), instance: i2 }]);
    const workdir = join(bench.dir, 'project');
    mkdirSync(workdir);
    // So many files that putting them back takes much longer than the kill.
    const files = (n: number): string =>
      `mkdir out; i=0; while [ $i -lt ${n} ]; do echo $0 > out/$i; i=$((i + 1)); done`;
    const order = (number: number, round: number, on: typeof i1, n: number) => {
      const attempt = attemptId(`1.${number}`);
      const start = startOf(bench, { instance: on, attempt, program: { runtimeS: 0, exitCode: 0 } });
      const task = { ...start.task, index: 1, number, round };
      return { ...start, task, workdir, outputs: ['out/*'], command: ['sh', '-c', files(n), attempt] };
    };
    await bench.fleet.start([order(1, 1, i1, 3000)]);
    const claim = layout.publisher(join(bench.dir, 'fleet'), { job: 'job', stage: 'main', index: 1 }, 1);
    while (!existsSync(claim)) await new Promise((resolve) => setTimeout(resolve, 1));
    process.kill(supervisorPid(), 'SIGKILL');
    await bench.fleet.start([{ ...order(2, 1, i2, 3), role: 'copy' }]);
    const seen = await bench.until('both ends', (s) => [a1, attemptId('1.2')].every((a) => endOf(s, a) !== undefined));
    expect(endOf(seen, a1)).toMatchObject({ stopped: 'interrupted', detail: 'its instance was lost' });
    expect(endOf(seen, attemptId('1.2'))).toMatchObject({ exitCode: 0, stopped: 'superseded', publisher: '1.1' });
    await bench.fleet.start([order(3, 3, i2, 3000)]);
    const again = await bench.until('the next round', (s) => endOf(s, attemptId('1.3')) !== undefined, 4000);
    expect(endOf(again, attemptId('1.3'))).toMatchObject({ exitCode: 0, stopped: null });
    const texts = new Set(
      readdirSync(join(workdir, 'out')).map((name) => readFileSync(join(workdir, 'out', name), 'utf8')),
    );
    expect([...texts]).toEqual(['1.3\n']);
  });

  it('that never comes up: the instance failed, and costs nothing', async () => {
    const [built] = readdirSync(join(bench.dir, 'fleet', 'supervisor'));
    writeFileSync(join(bench.dir, 'fleet', 'supervisor', built!, 'supervisor.mjs'), 'throw new Error("cannot run");');
    expect(await bench.fleet.launch([launch])).toEqual([{ status: 'done' }]);
    const seen = await bench.until('the end of the instance', has('instance-ended'));
    expect(seen.at(-1)).toMatchObject({ cause: 'failed' });
    expect(raw((await bench.fleet.bill(i1, bench.now())).totalUsd)).toBe(0);
  });

  it('told to end (SIGTERM): asks its tasks first', async () => {
    await bench.fleet.launch([launch]);
    const program = { runtimeS: 9000, exitCode: 0, checkpointEveryS: 5000 };
    await bench.fleet.start([startOf(bench, { instance: i1, attempt: a1, program })]);
    await bench.until('the start of the task', has('attempt-started'));
    // The shell needs a moment to have its handler.
    await bench.until('its handler', () => /^SigCgt:\s*0*[1-9a-f]/m.test(statusOfTask()));
    process.kill(supervisorPid(), 'SIGTERM');
    const seen = await bench.until('the end of the instance', has('instance-ended'));
    expect(endOf(seen, a1)).toMatchObject({ stopped: 'interrupted', exitCode: 75 });
    expect(seen.at(-1)).toMatchObject({ cause: 'lost' });
  });
});

/** Status of the process that a task became: its pid file says which. Empty before it is written. */
function statusOfTask(): string {
  const folder = join(instanceDir(), 'tasks');
  const [file] = readdirSync(folder);
  const pid = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').split('\n')[0]!;
  return pid === '' ? '' : readFileSync(`/proc/${pid}/status`, 'utf8');
}

describe('death of the engine', () => {
  it('changes nothing for instances and tasks; the next engine reads what they did meanwhile', async () => {
    const engine = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', resolve('test/support/engine-process.ts'), bench.dir],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    await once(engine.stdout, 'data');
    engine.kill('SIGKILL');
    await once(engine, 'exit');
    await bench.reopen();
    const seen = await bench.until('the end of the task', (s) => endOf(s, a1) !== undefined);
    expect(endOf(seen, a1)).toMatchObject({ exitCode: 0 });
    expect(ofKind(seen, 'attempt-started')).toHaveLength(1);
    expect((await bench.fleet.logs(a1, 'stdout', 0, 100)).text).toBe('made it');
    // What that engine asked for is answered the same when asked again under the same keys.
    expect(await bench.fleet.launch([launch])).toEqual([{ status: 'done' }]);
    const again = startOf(bench, { instance: i1, attempt: a1, program: { runtimeS: 1, exitCode: 0 } });
    expect(await bench.fleet.start([again])).toEqual([{ status: 'done' }]);
    await bench.fleet.release([{ key: effectKey('release/1'), instance: i1 }]);
    const after = await bench.until('the end of the instance', has('instance-ended'));
    expect(ofKind(after, 'attempt-started')).toHaveLength(1);
  });

  it('between any two steps of a launch: the next call or look completes it, with one supervisor', async () => {
    const done = { status: 'done' };
    // After mkdir: nothing was decided.
    mkdirSync(join(instanceDir('i-0002'), 'inbox'), { recursive: true });
    // After the spec: the market's answer stands, no supervisor was started.
    await bench.fleet.launch([launch]);
    cpSync(join(instanceDir(), 'spec.json'), join(bench.dir, 'spec.json'));
    await bench.fleet.release([{ key: effectKey('release/1'), instance: i1 }]);
    await bench.until('the end of the instance', has('instance-ended'));
    const spec = readFileSync(join(bench.dir, 'spec.json'), 'utf8');
    mkdirSync(join(instanceDir('i-0003'), 'inbox'), { recursive: true });
    writeFileSync(join(instanceDir('i-0003'), 'spec.json'), spec.replaceAll('i-0001', 'i-0003'));
    await bench.reopen();
    expect(
      await bench.fleet.launch([{ ...launch, key: effectKey('launch/2'), instance: instanceId('i-0002') }]),
    ).toEqual([done]);
    const ready = await bench.until(
      'both',
      (s) => ofKind(s, 'instance-ready').filter((o) => o.instance !== i1).length === 2,
    );
    const launched = ofKind(ready, 'instance-launched').map((o) => o.instance);
    expect([...launched].sort()).toEqual(['i-0001', 'i-0002', 'i-0003']);
    // After the spawn: asking again starts no second one.
    const first = supervisorPid('i-0003');
    await bench.reopen();
    await bench.fleet.launch([{ ...launch, key: effectKey('launch/3'), instance: instanceId('i-0003') }]);
    await bench.fleet.observe(new Map());
    expect(supervisorPid('i-0003')).toBe(first);
    expect(processesOf(bench.dir).filter((p) => p.command.includes('i-0003'))).toHaveLength(1);
  });

  it('for long leaves no idle instance behind', async () => {
    await bench.close();
    bench = new LocalFleetBench(START_MS, { limits: { orphanAfterS: 1 } });
    await bench.fleet.launch([launch]);
    await bench.until('ready', has('instance-ready'));
    await bench.fleet.close();
    const pid = supervisorPid();
    while (processesOf(bench.dir).some((p) => p.pid === pid)) await new Promise((r) => setTimeout(r, 50));
    bench.fleet = bench.open();
    expect((await bench.fleet.observe(new Map())).at(-1)).toMatchObject({ kind: 'instance-ended', cause: 'released' });
  });
});

describe('a damaged file', () => {
  const a2 = attemptId('2.1');

  it('in an inbox: its task is interrupted and says why, and the others of the instance go on', async () => {
    await bench.fleet.launch([launch]);
    await bench.fleet.start([startOf(bench, { instance: i1, attempt: a1, program: { runtimeS: 9000, exitCode: 0 } })]);
    await bench.until('the start of the task', has('attempt-started'));
    const pid = supervisorPid();
    // Half of an order, as a full disk left it.
    writeFileSync(join(instanceDir(), 'inbox', 'start%2F2.1.json'), '{"do":"start","key":"start/2.1","att');
    writeFileSync(join(instanceDir(), 'inbox', 'nothing.json'), '\0\0');
    const seen = await bench.until('the end of the second', (s) => endOf(s, a2) !== undefined);
    expect(endOf(seen, a2)).toMatchObject({ stopped: 'interrupted', exitCode: null });
    expect(endOf(seen, a2)!.detail).toMatch(/could not be read.*start%2F2\.1\.json\.bad/);
    expect(supervisorPid()).toBe(pid);
    const inbox = (): string[] => readdirSync(join(instanceDir(), 'inbox')).sort();
    // The other file may have been written just after the supervisor looked.
    while (inbox().includes('nothing.json')) await new Promise((r) => setTimeout(r, 50));
    expect(inbox()).toEqual(['nothing.json.bad', 'start%2F2.1.json.bad']);
    // Stops and give-backs are known by their names.
    writeFileSync(join(instanceDir(), 'inbox', 'p-1%2Fstop%2F1.1.json'), '');
    const stopped = await bench.until('the end of the first', (s) => endOf(s, a1) !== undefined);
    expect(endOf(stopped, a1)).toMatchObject({ stopped: 'preempted' });
    writeFileSync(join(instanceDir(), 'inbox', 'release%2Fi-0001.json'), '[');
    await bench.until('the end of the instance', has('instance-ended'));
  });

  const recovered = { id: i1, allocation: launch.key, pool: CALM, bid: BID };
  /** What the bench's fleet says while it is opened on damaged files. */
  const said: string[] = [];
  const openOn = (): LocalFleet => {
    bench.fleet = bench.open({ onTrouble: (text) => void said.push(text) });
    return bench.fleet;
  };

  it.each(['spec.json', 'all files'])(
    'of an instance (%s): what lives goes on, what is gone is buried and billed',
    async (what) => {
      said.length = 0;
      await bench.fleet.launch([launch]);
      await bench.fleet.start([
        startOf(bench, { instance: i1, attempt: a1, program: { runtimeS: 9000, exitCode: 0 } }),
      ]);
      const seen = await bench.until('the start of the task', has('attempt-started'));
      const launchedMs = ofKind(seen, 'instance-launched')[0]!.atMs;
      await bench.fleet.close();
      const pid = supervisorPid();
      if (what === 'spec.json') writeFileSync(join(instanceDir(), 'spec.json'), '{"version":1,"inst');
      else rmSync(instanceDir(), { recursive: true });
      const fleet = openOn();
      expect(await fleet.list()).toEqual([]);
      const cursor = seen.at(-1)!.sequence;
      fleet.recover([{ ...recovered, launchedMs, cursor }]);
      if (what === 'spec.json') {
        expect(said.join()).toMatch(/spec\.json cannot be read; it is kept as .*spec\.json\.bad/);
        expect(await fleet.observe(new Map())).toEqual(seen);
        expect(supervisorPid()).toBe(pid);
        await fleet.release([{ key: effectKey('release/1'), instance: i1 }]);
      }
      const after = await bench.until('the end of the instance', has('instance-ended'));
      expect(after.at(-1)).toMatchObject({ cause: what === 'spec.json' ? 'released' : 'lost' });
      expect(after.at(-1)!.sequence).toBeGreaterThan(cursor);
      expect(raw((await fleet.bill(i1, plus(bench.now(), seconds(9)))).totalUsd)).toBeGreaterThan(0);
    },
  );

  it('in the middle of a journal: the lines around it are read', async () => {
    said.length = 0;
    await bench.fleet.launch([launch]);
    const seen = await bench.until('ready', has('instance-ready'));
    await bench.fleet.close();
    appendFileSync(join(instanceDir(), 'journal.jsonl'), '\0\0{"sequence":3,\n');
    const fleet = openOn();
    expect(await fleet.observe(new Map())).toEqual(seen);
    expect(said.join()).toMatch(/journal\.jsonl: a line cannot be read/);
    await fleet.release([{ key: effectKey('release/1'), instance: i1 }]);
    await bench.until('the end of the instance', has('instance-ended'));
  });

  it('as a lock or a heartbeat (power cut): the instance is buried', async () => {
    await bench.fleet.launch([launch]);
    await bench.until('ready', has('instance-ready'));
    process.kill(supervisorPid(), 'SIGKILL');
    for (const file of ['lock', 'heartbeat']) writeFileSync(join(instanceDir(), file), '');
    await bench.until('the end of the instance', has('instance-ended'));
  });
});

describe('a directory that is removed', () => {
  it('takes its instances and their tasks with it', async () => {
    await bench.fleet.launch([launch]);
    await bench.fleet.start([startOf(bench, { instance: i1, attempt: a1, program: { runtimeS: 9000, exitCode: 0 } })]);
    await bench.until('the start of the task', has('attempt-started'));
    rmSync(instanceDir(), { recursive: true, force: true });
    while (processesOf(bench.dir).length > 0) await new Promise((r) => setTimeout(r, 50));
    expect(processesOf(bench.dir)).toEqual([]);
  });
});

describe('ended instances', () => {
  it('keep their directory up to a bound, once the engine has seen their end', async () => {
    await bench.close();
    bench = new LocalFleetBench(START_MS, { keepEnded: 1 });
    const ids = ['i-1', 'i-2', 'i-3'].map(instanceId);
    await bench.fleet.launch(ids.map((id) => ({ ...launch, key: effectKey(`l/${id}`), instance: id })));
    await bench.fleet.release(ids.map((id) => ({ key: effectKey(`r/${id}`), instance: id })));
    const seen = await bench.until('all ends', (s) => ofKind(s, 'instance-ended').length === 3);
    const kept = (): string[] => readdirSync(join(bench.dir, 'fleet', 'instances'));
    expect(kept()).toHaveLength(3);
    // A supervisor may still be on its way out when its last word is read.
    do {
      await bench.fleet.observe(new Map(ids.map((id) => [id, seen.length])));
      await new Promise((r) => setTimeout(r, 50));
    } while (kept().length > 1);
    expect(kept()).toHaveLength(1);
    expect(await bench.fleet.list()).toHaveLength(1);
  });

  it('keep it also while their supervisor is on its way out, which may write once more', async () => {
    await bench.close();
    bench = new LocalFleetBench(START_MS, { keepEnded: 0 });
    await bench.fleet.launch([launch]);
    await bench.fleet.release([{ key: effectKey('r/1'), instance: i1 }]);
    const seen = await bench.until('its end', (s) => ofKind(s, 'instance-ended').length === 1);
    const lock = join(instanceDir(), 'lock');
    while (lockState(lock) === 'held') await new Promise((r) => setTimeout(r, 50));
    // It lives on: this process stands for it.
    rmSync(lock);
    takeLock(lock);
    await bench.fleet.observe(new Map([[i1, seen.length]]));
    expect(existsSync(instanceDir())).toBe(true);
    rmSync(lock);
    await bench.fleet.observe(new Map([[i1, seen.length]]));
    expect(existsSync(instanceDir())).toBe(false);
  });
});
