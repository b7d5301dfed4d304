import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { CreateLaunchTemplateCommand, EC2Client } from '@aws-sdk/client-ec2';
import { CreateClusterCommand, ECSClient } from '@aws-sdk/client-ecs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { lambdaClock } from '../../../lib/drivers/aws/lambda/clock.ts';
import { awsFleet, type AwsFleetOnAws } from '../../../lib/drivers/aws/fleet/compose-fleet.ts';
import { fleetEvent, noticeOf } from '../../../lib/drivers/aws/fleet/event-notices.ts';
import { environmentKey, keptKey, markOf } from '../../../lib/drivers/aws/fleet/request-names.ts';
import { Table } from '../../../lib/drivers/aws/store/dynamo-table.ts';
import type { Observation } from '../../../lib/domain/observation.ts';
import { attemptId, effectKey, instanceId, type AttemptId } from '../../../lib/kernel/ids.ts';
import { mib, raw, seconds } from '../../../lib/kernel/units.ts';
import type { StartRequest } from '../../../lib/ports/fleet.ts';
import { BID, CALM, endOf, ofKind, START_MS, startOf, trace } from '../../contract/fleet.ts';
import { startAwsDouble, type AwsDouble } from '../../../scripts/aws-double/double.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { awsCliIn } from '../../support/aws-cli.ts';

/**
 * What tasks have in S3, through the fleet: EC2 and ECS are the double's, DynamoDB is a double, S3 a folder that a
 * stand-in for the AWS CLI works on. The mark of a checkpoint is told as the event that S3 would send.
 */

const REGION = 'us-east-1';
/** Market seconds per wall second: an upload of a second is 20 of the market. */
const SPEED = 20;
const BUCKET = 'bucket';
const USER_DATA = Buffer.from('#!/bin/sh\necho ECS_CLUSTER=ebb >> /etc/ecs/ecs.config\n').toString('base64');

/** What a shell, a line of a file, or an older agent might make something else of. */
const AWKWARD: Readonly<Record<string, string>> = {
  PLAIN: 'hidden-plain',
  QUOTES: `hidden 'single' "double" \`tick\``,
  EQUALS: 'hidden=a=b==',
  LINES: 'hidden\n#one\r\n\ntwo\n',
  EMPTY: '',
  SHELL: 'hidden $(exit 3) $HOME ; \\n \\0101 %s %b',
  LETTERS: 'hidden äß漢字🜲',
};

describe('files of tasks on AWS', () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'ebb-files-')));
  const s3 = join(dir, 's3');
  const object = (key: string): string => join(s3, BUCKET, key);
  const instance = instanceId('i-1');
  let double: AwsDouble;
  let on: AwsFleetOnAws;
  const clients: { destroy(): void }[] = [];
  const told = new Map<AttemptId, number>();
  const unread: AttemptId[] = [];
  /** Objects that ECS' agent may not read. */
  const lost = new Set<string>();

  const put = (key: string, content: string): void => {
    mkdirSync(dirname(object(key)), { recursive: true });
    writeFileSync(object(key), content);
  };
  const timeOf = (key: string): number | null => statSync(object(key), { throwIfNoEntry: false })?.mtimeMs ?? null;

  beforeAll(async () => {
    const awsCli = join(awsCliIn(join(dir, 'bin'), s3), 'aws');
    double = await startAwsDouble({
      trace,
      from: START_MS,
      speed: SPEED,
      region: REGION,
      images: { '*': { awsCli } },
      files: async (bucket, key) => {
        if (lost.has(key)) throw new Error('AccessDenied');
        return readFileSync(join(s3, bucket, key), 'utf8');
      },
      deliver: async (events) => {
        for (const event of events) {
          const notice = noticeOf(fleetEvent.parse(event));
          if (notice !== null) await on.watch.notice(notice);
        }
      },
    });
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const at = { endpoint: double.url, region: REGION, credentials, maxAttempts: 3 };
    const [ec2, ecs, logs] = [new EC2Client(at), new ECSClient(at), new CloudWatchLogsClient(at)];
    clients.push(ec2, ecs, logs);
    await ecs.send(new CreateClusterCommand({ clusterName: 'ebb' }));
    const { LaunchTemplate } = await ec2.send(
      new CreateLaunchTemplateCommand({
        LaunchTemplateName: 'hosts',
        LaunchTemplateData: { ImageId: 'ami-0123456789abcdef0', UserData: USER_DATA },
      }),
    );
    on = awsFleet({
      clients: { ec2, ecs, logs },
      table: new Table({ client: new DynamoDouble().client(), name: 'table' }),
      clock: lambdaClock(double.anchor),
      nowMs: () => Date.now(),
      anchor: double.anchor,
      stack: 'files',
      region: REGION,
      launchTemplate: LaunchTemplate?.LaunchTemplateId ?? '',
      launchTemplateVersion: '1',
      subnets: new Map(double.subnets.map((s) => [s.zone, s.id])),
      cluster: 'ebb',
      image: 'image',
      logGroup: 'tasks',
      executionRole: 'arn:aws:iam::000000000000:role/execution',
      taskRole: 'arn:aws:iam::000000000000:role/task',
      bucket: BUCKET,
      checkpointDir: () => '/ebb/checkpoint',
      keptAt: async (attempt) => timeOf(keptKey(attempt)),
      onUnreadLog: (attempt) => void unread.push(attempt),
      put: async (key, content) => put(key, content),
      startDelayS: 60,
      prices: async () => trace,
      rules: { billing: 'per-second', refundRule: 'first-hour' },
    });
    await on.fleet.launch([{ key: effectKey('launch/1'), instance, pool: CALM, bid: BID }]);
  }, 60_000);
  afterAll(async () => {
    await double.close();
    for (const client of clients) client.destroy();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }, 60_000);

  const program = () => ({ command: ['true'], env: {}, workdir: '/home/somebody', checkpoint: null });
  const start = async (attempt: string, of: Partial<StartRequest>): Promise<AttemptId> => {
    const id = attemptId(attempt);
    const request = startOf({ program }, { instance, attempt: id, program: { runtimeS: 0, exitCode: 0 }, ...of });
    expect(await on.fleet.start([request])).toEqual([{ status: 'done' }]);
    return id;
  };

  async function until(
    what: string,
    attempt: AttemptId,
    done: (seen: readonly Observation[]) => boolean,
  ): Promise<readonly Observation[]> {
    const patience = performance.now() + 60_000;
    for (;;) {
      const markedMs = timeOf(keptKey(attempt));
      if (markedMs !== null && markedMs !== told.get(attempt)) {
        told.set(attempt, markedMs);
        const time = new Date(markedMs).toISOString();
        const detail = { object: { key: keptKey(attempt) } };
        const event = { id: `${attempt}-${markedMs}`, source: 'aws.s3', 'detail-type': 'Object Created', time, detail };
        const notice = noticeOf(fleetEvent.parse(event));
        if (notice !== null) await on.watch.notice(notice);
      }
      const seen = await on.fleet.observe(new Map());
      if (done(seen)) return seen;
      if (performance.now() > patience) throw new Error(`no ${what} in ${JSON.stringify(seen)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  const ended = async (attempt: AttemptId) =>
    endOf(await until('end', attempt, (seen) => endOf(seen, attempt) !== undefined), attempt);

  it('pass from stage to stage through the folder of the job', async () => {
    const first = await start('1.1', {
      command: ['sh', '-c', 'mkdir parts; echo one >parts/1; echo two >parts/2'],
      outputs: ['parts/*'],
    });
    expect(await ended(first)).toMatchObject({ exitCode: 0, stopped: null });
    const second = await start('2.1', {
      command: ['sh', '-c', 'cat parts/* >all; echo "$EBB_WORKDIR"'],
      inputs: ['parts/**'],
      outputs: ['s3://bucket/results/all'],
    });
    expect(await ended(second)).toMatchObject({ exitCode: 0 });
    expect(readFileSync(object('results/all'), 'utf8')).toBe('one\ntwo\n');
    const { text } = await on.fleet.logs(second, 'stdout', 0, 1000);
    expect(text).toBe('s3://bucket/work/job');
  }, 120_000);

  it('are those of the first attempt of a round; another one is superseded, and no failure', async () => {
    const task = { job: 'job', stage: 'main', index: 21, round: 1 };
    const outputs = ['s3://bucket/results/who'];
    const of = (number: number) => ({
      command: ['sh', '-c', `echo ${number} >who`],
      outputs,
      task: { ...task, number },
    });
    const first = await start('21.1', of(1));
    expect(await ended(first)).toMatchObject({ exitCode: 0, stopped: null });
    const copy = await start('21.2', { ...of(2), role: 'copy' });
    expect(await ended(copy)).toMatchObject({
      exitCode: 0,
      stopped: 'superseded',
      publisher: '21.1',
      detail: '21.1 publishes its outputs',
    });
    expect(readFileSync(object('results/who'), 'utf8')).toBe('1\n');
    const next = await start('21.3', { ...of(3), task: { ...task, number: 3, round: 3 } });
    expect(await ended(next)).toMatchObject({ exitCode: 0, stopped: null });
    expect(readFileSync(object('results/who'), 'utf8')).toBe('3\n');
  }, 120_000);

  it('that are not there fail the attempt, with the reason', async () => {
    const attempt = await start('3.1', { inputs: ['none/*.csv'], workdir: 's3://bucket/elsewhere' });
    expect(await ended(attempt)).toMatchObject({
      exitCode: 1,
      stopped: null,
      detail: 'input pattern none/*.csv matches nothing at s3://bucket/elsewhere/none/',
      // Nobody could measure: unknown, and not nothing.
      usage: null,
    });
  }, 120_000);

  it('keep work from one attempt to the next', async () => {
    const command = [
      'sh',
      '-c',
      `trap 'echo 7 >"$EBB_CHECKPOINT_DIR/n"; exit 143' USR2
      if [ "$EBB_RESUMED" = 1 ]; then cat "$EBB_CHECKPOINT_DIR/n"; exit 0; fi
      echo ready; while :; do sleep 0.1; done`,
    ];
    const of = { command, checkpoint: { signal: 'SIGUSR2', graceS: seconds(9), everyS: null } } as const;
    const task = { job: 'job', stage: 'main', index: 4 };
    const first = await start('4.1', { ...of, task: { ...task, number: 1 } });
    await until('line', first, (seen) => ofKind(seen, 'attempt-started').some((o) => o.attempt === first));
    while ((await on.fleet.logs(first, 'stdout', 0, 100)).text !== 'ready') {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await on.fleet.stop([{ key: effectKey('stop/4'), attempt: first, instance, why: 'preempted' }]);
    const end = await ended(first);
    expect(end).toMatchObject({ exitSignal: 'SIGTERM', stopped: 'preempted' });
    expect(raw(end!.keptS)).toBeGreaterThan(0);
    const second = await start('4.2', { ...of, task: { ...task, number: 2 } });
    expect(await ended(second)).toMatchObject({ exitCode: 0 });
    expect((await on.fleet.logs(second, 'stdout', 0, 100)).text).toBe('7');
  }, 120_000);

  it('hold a command that is too long for ECS', async () => {
    const words = Array.from({ length: 3000 }, (_, i) => `word-${i}`);
    const attempt = await start('5.1', {
      command: ['sh', '-c', 'for last; do :; done; echo "$# $last $EBB_ATTEMPT $QUOTE"', 'ebb', ...words],
      // What the order says after the entrypoint's own variables are set must not change them.
      env: { QUOTE: 'it\'s "so"\nand so', EBB_ATTEMPT: 'forged' },
    });
    expect(await ended(attempt)).toMatchObject({ exitCode: 0 });
    expect((await on.fleet.logs(attempt, 'stdout', 0, 1000)).text).toBe(`3000 word-2999 ${attempt} it's "so"\nand so`);
  }, 120_000);

  it('hold the values of a job’s environment, which ECS and its events do not', async () => {
    const names = Object.keys(AWKWARD);
    const attempt = await start('14.1', {
      command: ['sh', '-c', `for name; do eval "printf '%s|' \\"\\$$name\\""; done >values; env >all`, 'ebb', ...names],
      env: AWKWARD,
      outputs: ['s3://bucket/results/values', 's3://bucket/results/all'],
    });
    expect(await ended(attempt)).toMatchObject({ exitCode: 0 });
    expect(readFileSync(object('results/values'), 'utf8')).toBe(`${Object.values(AWKWARD).join('|')}|`);
    expect(readFileSync(object('results/all'), 'utf8')).not.toContain('EBB_ENV');
    const events = JSON.stringify(double.events.filter((e) => e.detail['startedBy'] === markOf(attempt)));
    expect(events).toContain('environmentFiles');
    expect(events).not.toContain('hidden');
    expect(JSON.stringify(double.calls)).not.toContain('hidden');
  }, 120_000);

  it('hold an environment that is too long for a file in an order', async () => {
    const attempt = await start('16.1', {
      command: ['sh', '-c', 'printf %s "$A" | wc -c'],
      env: { A: '漢'.repeat(4500) },
    });
    expect(await ended(attempt)).toMatchObject({ exitCode: 0 });
    expect((await on.fleet.logs(attempt, 'stdout', 0, 100)).text.trim()).toBe('13500');
    const events = JSON.stringify(double.events.filter((e) => e.detail['startedBy'] === markOf(attempt)));
    expect(events).not.toContain('漢');
  }, 120_000);

  it('fail a task whose environment cannot be had, with what to do', async () => {
    lost.add(environmentKey('15.1'));
    const attempt = await start('15.1', { command: ['true'], env: { A: 'b' } });
    const end = await ended(attempt);
    expect(end).toMatchObject({ exitCode: null });
    expect(end?.detail).toMatch(/values of `env` could not be read/);
  }, 120_000);

  it('say of an image for another processor what to do, and nothing of a program that fails by itself', async () => {
    const fails = (words: string) => ['sh', '-c', `echo "${words}"; exit 1`];
    const foreign = await start('7.1', { command: fails('exec /usr/bin/sh: exec format error') });
    const own = await start('8.1', { command: fails('no such table') });
    const end = await ended(foreign);
    expect(end).toMatchObject({ exitCode: 1, stopped: null });
    expect(end?.detail).toContain('docker buildx build --platform');
    expect(await ended(own)).toMatchObject({ exitCode: 1, stopped: null, detail: null });
    const missing = await start('9.1', { command: ['no-such-program'] });
    expect(await ended(missing)).toMatchObject({
      exitCode: 127,
      detail: 'exit code 127: is no-such-program in the image, or missing from inputs?',
    });
  }, 120_000);

  it('tell what the task used in a line of its log that nobody is shown, and no line of its own is taken for that', async () => {
    const cgroup = join(dir, 'cgroup');
    mkdirSync(cgroup);
    writeFileSync(join(cgroup, 'memory.max'), 'max');
    writeFileSync(join(cgroup, 'memory.stat'), 'anon 3145728\n');
    writeFileSync(join(cgroup, 'cpu.stat'), 'usage_usec 5\n');
    const forged = `ebb-end-${'0'.repeat(32)} max-rss-bytes 1048576 cpu-microseconds 1 why it said so`;
    const attempt = await start('11.1', {
      command: ['sh', '-c', `sleep 11; echo usage_usec 2500005 >"$EBB_CGROUP/cpu.stat"; printf '%s' "$1"`, '-', forged],
      env: { EBB_CGROUP: cgroup },
      outputs: ['never'],
    });
    const silent = await start('12.1', { command: ['sh', '-c', `echo "$1"; exit 3`, '-', forged] });
    expect(await ended(silent)).toMatchObject({ exitCode: 3, detail: null, usage: null });
    expect(await ended(attempt)).toMatchObject({
      exitCode: 1,
      detail: 'output never was not made',
      usage: { maxRss: mib(3), cpuS: seconds(2.5) },
    });
    const { text, totalBytes } = await on.fleet.logs(attempt, 'stdout', 0, 1000);
    expect(text.split('\n').toSorted()).toEqual([forged, 'ebb: output never was not made'].toSorted());
    expect(totalBytes).toBe(Buffer.byteLength(text));
  }, 120_000);

  it('keep no end waiting when their log cannot be read', async () => {
    double.knobs.set({
      faults: [{ action: 'GetLogEvents', code: 'AccessDeniedException', status: 400, times: 10 }],
    });
    const attempt = await start('13.1', { command: ['true'], outputs: ['never'] });
    const end = await ended(attempt);
    double.knobs.set({ faults: [] });
    expect(end).toMatchObject({ exitCode: 1, stopped: null, detail: null, usage: null });
    expect(unread).toEqual([attempt]);
  }, 120_000);

  it('are one log, whichever output is asked for, with a page for people', async () => {
    const attempt = await start('6.1', { command: ['sh', '-c', 'echo out; echo err >&2'] });
    const seen = await until('end', attempt, (all) => endOf(all, attempt) !== undefined);
    const chunk = await on.fleet.logs(attempt, 'stderr', 0, 1000);
    expect(chunk).toMatchObject({ isMerged: true, totalBytes: 7 });
    expect(chunk.text.split('\n').sort()).toEqual(['err', 'out']);
    const started = ofKind(seen, 'attempt-started').find((o) => o.attempt === attempt);
    expect(started?.log).toMatch(/^[0-9a-f]{32}$/);
    expect(chunk.url).toBe(
      `https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#logsV2:log-groups/log-group/tasks/log-events/ebb$252Ftask$252F${started?.log}`,
    );
  }, 120_000);
});
