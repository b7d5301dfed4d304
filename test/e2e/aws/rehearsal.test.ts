/**
 * Ebbtide on AWS as its user has it: deployed by the CDK, used with `ebb` through API Gateway, on a market that
 * interrupts, and with the faults that AWS has. EventBridge, Step Functions, SQS, DynamoDB, S3 and the Lambdas are
 * LocalStack's, EC2 and ECS the double's. One deployment serves all tests: each goes on where the one before it ended.
 */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import {
  GetQueueAttributesCommand,
  ListDeadLetterSourceQueuesCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  SQSClient,
  StartMessageMoveTaskCommand,
} from '@aws-sdk/client-sqs';
import {
  GetScheduleCommand,
  ListSchedulesCommand,
  ResourceNotFoundException,
  SchedulerClient,
  type GetScheduleCommandOutput,
} from '@aws-sdk/client-scheduler';
import type {
  AttemptList,
  AttemptView,
  CancelAnswer,
  CostReport,
  ExplanationView,
  ForecastList,
  InstanceList,
  InstanceView,
  JobCostView,
  JobView,
  PlanList,
  PoolList,
  SubmitAnswer,
} from '../../../lib/api/schemas.ts';
import { DynamoStore } from '../../../lib/drivers/aws/store/dynamo-store.ts';
import type { ApplyAnswer, ServiceListView, ServiceView } from '../../../lib/api/services/schemas.ts';
import type { Client } from '../../../lib/cli/client.ts';
import { routes } from '../../../lib/cli/routes.ts';
import type { Preference } from '../../../lib/domain/job.ts';
import { epochMs, type EpochMs } from '../../../lib/kernel/units.ts';
import { job as storedJob, spec, stage } from '../../support/builders.ts';
import { putEventsTo, type AwsEvent } from '../../../scripts/aws-double/events.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';
import { Asking } from './asking.ts';
import { BrokenFunction } from './broken-function.ts';
import { callerAt } from './caller.ts';
import { awsEnvironment } from '../../../scripts/rehearsal/deploy.ts';
import { DeployedFunction } from '../../../scripts/rehearsal/functions.ts';
import { LocalSide } from './local-side.ts';
import {
  BRIEF_ZONE,
  dearestSpotUsdPerHour,
  FAMILIES,
  marketOpenedAt,
  marketOpenedByLaunch,
  type OpenedMarket,
  REGION,
  rehearsalStart,
  LASTING_ZONE,
  UP_S,
} from '../../../scripts/rehearsal/rehearsal-market.ts';
import { Rehearsal } from '../../../scripts/rehearsal/rehearsal.ts';

const SPEED = 10;
/** A preset of the user's own. */
const PRESET = 'rehearsed';
/** Settings of both sides. A trained model forecasts prices, on AWS in a Lambda. */
const SETTINGS = {
  forecast: 'model',
  presets: { [PRESET]: { about: 'ebbtide with another packer', extends: 'ebbtide', place: 'first-fit' } },
};
/** Limits of single waits are for a machine of its own; other checks may take most of it. */
const SLOWER = 3;
/** Each wait has a limit of its own; this one is for tests that hang elsewhere. */
jest.setTimeout(1_800_000);
const DONE_WITHIN_MS = 360_000;
const PAUSE_MS = 1000;
/** Asking by the command line takes as much processor time as a cycle does. */
const ASKED_EACH_MS = 4000;
/** The trigger queue's batching window. */
const LISTENS_MS = 2000;
/** Wall seconds: as much of the market as there is capacity in the cheaper zone, so that it never suffices. */
const WORK_S = UP_S / SPEED;
/**
 * How much longer an instance may live on AWS than in local mode, wall seconds: from an event to what follows there are
 * five Lambdas, each of which may start cold, where local mode has one process. A market that is replayed fast makes
 * minutes of it.
 */
const SLOWER_S = 15;

/** The one command line, whatever it speaks to. */
type Ask = <T>(...args: string[]) => Promise<T>;

describeOnLocalStack(
  'a deployment, from its job file to its ledger',
  (on) => {
    let rehearsal: Rehearsal;
    let market: OpenedMarket;
    let local: LocalSide;
    const ends: (() => Promise<void>)[] = [];
    let began = performance.now();
    /** The job that local mode runs too. */
    let job = '';
    let file = '';
    const killed: string[] = [];

    beforeAll(async () => {
      market = marketOpenedByLaunch();
      const stage = {
        trace: market.trace,
        truth: market.truth,
        from: rehearsalStart,
        speed: SPEED,
        region: REGION,
        families: FAMILIES,
        settings: SETTINGS,
        preset: PRESET,
      };
      rehearsal = await Rehearsal.begin(on.endpoint, stage);
      ends.push(() => rehearsal.end());
      phase('bootstrap, synthesis and deployment');
    });
    afterAll(async () => {
      for (const end of ends.toReversed()) await end();
      phase('end');
    });

    function phase(name: string): void {
      const line = `${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${name}`;
      process.stderr.write(`rehearsal: ${line}\n`);
      began = performance.now();
    }

    const answered = <T>({ code, stdout, stderr }: Awaited<ReturnType<Rehearsal['ebb']>>, args: string[]): T => {
      if (code !== 0) throw new Error(`ebb ${args.join(' ')} ended with ${code}: ${stderr}`);
      return JSON.parse(stdout) as T;
    };
    const ask: Ask = async (...args) => answered(await rehearsal.ebb(...args, '--json'), args);
    const askLocal: Ask = async (...args) => answered(await local.ebb(...args, '--json'), args);

    const attemptsOf = async (client: Client, id: string): Promise<readonly AttemptView[]> =>
      (await client.get<AttemptList>(routes.attempts(id))).items;
    const instances = async (by: Ask): Promise<readonly InstanceView[]> =>
      (await by<InstanceList>('instances', '--all', '--limit', '500')).items.toReversed();
    const ended = (by: Ask, id: string): Promise<JobView> =>
      until(
        'the end of the job',
        async () => {
          const { job: now } = await by<{ job: JobView }>('status', id);
          return now.state === 'pending' || now.state === 'running' || now.state === 'held' ? null : now;
        },
        DONE_WITHIN_MS,
        ASKED_EACH_MS,
      );
    const settled = (by: Ask, id: string): Promise<JobCostView> =>
      until(
        'the bills of the job',
        async () => {
          const { cost } = await by<{ cost: JobCostView }>('status', id);
          const isOver = (await instances(by)).every((i) => i.state === 'ended');
          return cost.settled && isOver ? cost : null;
        },
        120_000,
        ASKED_EACH_MS,
      );
    const jobNow = async (id: string): Promise<JobView> => (await ask<{ job: JobView }>('status', id)).job;

    /** A job that no decision can be made on, as an earlier version with a defect might have left it in the table. */
    async function storedAsNobodyCan(submittedMs: EpochMs): Promise<string> {
      const { variables } = await DeployedFunction.about(
        { endpoint: on.endpoint, region: REGION },
        'one snapshot of everything',
      );
      const at = { ...on.config(), region: REGION };
      const store = new DynamoStore({
        dynamodb: on.kept(new DynamoDBClient(at)),
        s3: on.kept(new S3Client({ ...at, forcePathStyle: true })),
        table: variables['EBB_TABLE'] ?? '',
        bucket: variables['EBB_BUCKET'] ?? '',
      });
      const preferences = [null] as unknown as readonly Preference[];
      const broken = {
        name: 'broken',
        class: 'best-effort',
        deadline: null,
        stages: [stage({ preferences })],
      } as const;
      await store.submit([
        { job: storedJob({ name: 'j-broken', submittedMs, spec: spec(broken) }), idempotency: null },
      ]);
      return 'j-broken';
    }

    const happened = (type: string): readonly AwsEvent[] =>
      rehearsal.double.events.filter((event) => event['detail-type'] === type);

    /** The process that has just called, ended as by a crash of its machine. */
    const killCaller = (action: string): void =>
      rehearsal.double.beforeAnswer((call) => {
        if (call.action !== action || killed.includes(action)) return;
        const pid = callerAt(call.callerPort, Number(new URL(rehearsal.double.url).port));
        if (pid === null) return;
        process.kill(pid, 'SIGKILL');
        killed.push(action);
      });

    it('puts aside what fails for good, and does it when it is sent back', async () => {
      const region = REGION;
      const client = on.kept(new SQSClient({ ...on.config(), region }));
      const outputs = rehearsal.outputs['Ebbtide'] ?? {};
      const dead = outputs['TriggerDeadLetters'] ?? '';
      const { queueUrls } = await client.send(new ListDeadLetterSourceQueuesCommand({ QueueUrl: dead }));
      const QueueUrl = queueUrls?.[0] ?? '';
      const patience = async (seconds: string) =>
        client.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { VisibilityTimeout: seconds } }));
      const lengthOf = async (url: string): Promise<number> => {
        const all = await client.send(new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] }));
        const { ApproximateNumberOfMessages: there, ApproximateNumberOfMessagesNotVisible: taken } =
          all.Attributes ?? {};
        return Number(there) + Number(taken);
      };
      // Three minutes between two tries, else.
      await patience('1');
      // Whoever was listening already hides what comes for as long as before.
      await new Promise((resolve) => setTimeout(resolve, 2 * LISTENS_MS));
      const instead = { EBB_STATE_MACHINE: `arn:aws:states:${region}:000000000000:stateMachine:none` };
      const broken = await BrokenFunction.begin({ endpoint: on.endpoint, region }, 'Reads the queue', instead);
      try {
        const send = async () => client.send(new SendMessageCommand({ QueueUrl, MessageBody: '{"why":"a test"}' }));
        await send();
        let sentMs = performance.now();
        // What else fails is put aside in the same queue: a run of the clock on a busy machine.
        const letters = async (): Promise<true | null> => {
          if ((await lengthOf(QueueUrl)) > 0) return null;
          if ((await lengthOf(dead)) > 0) return true;
          // A process of the function that was still going its old way has taken it.
          if (performance.now() > sentMs + 30_000) {
            await send();
            sentMs = performance.now();
          }
          return null;
        };
        // On a busy machine somebody may have gone on listening: then the first try is hidden for the three minutes all
        // the same.
        await until('a dead letter', letters, 270_000);
      } finally {
        await broken.mend();
      }
      // As docs/deploy.md says.
      const { TriggerDeadLettersArn: SourceArn, TriggerQueueArn: DestinationArn } = outputs;
      await client.send(new StartMessageMoveTaskCommand({ SourceArn, DestinationArn }));
      const empty = async () => ((await lengthOf(dead)) + (await lengthOf(QueueUrl)) === 0 ? true : null);
      await until('the letter is taken', empty, 60_000);
      await patience('120');
      phase('dead letters');
    });

    it('takes a job, once however often it is sent', async () => {
      // Prices were fetched as part of the deployment.
      expect((await ask<PoolList>('pools')).items.length).toBeGreaterThan(0);
      rehearsal.double.knobs.set({ events: { duplicate: 0.3, reorderWindow: 3 } });
      killCaller('CreateFleet');
      // Its program reaches S3 in LocalStack, as a container reaches S3 by its role.
      const env = awsEnvironment({ endpoint: on.endpoint, region: REGION });
      file = rehearsal.file('long', {
        deadline: '3h',
        command: [process.execPath, `${import.meta.dirname}/saving-task.mjs`, String(WORK_S)],
        env,
        workdir: '.',
        resources: { cpu: 2, memory: '512MiB' },
        expectedRuntime: `${(WORK_S * SPEED) / 60}m`,
        checkpoint: { signal: 'SIGUSR1', grace: '1s', every: '1m' },
      });
      const first = await ask<SubmitAnswer>('submit', file, '--key', 'one');
      const again = await ask<SubmitAnswer>('submit', file, '--key', 'one');
      expect(first.outcome).toBe('created');
      expect(again).toMatchObject({ outcome: 'repeated', job: { id: first.job.id } });
      job = first.job.id;
      const from = timeOf(first.job.submittedAt);
      const settings = { ...SETTINGS, preset: PRESET };
      local = await LocalSide.begin(marketOpenedAt(from), { from, speed: SPEED, settings });
      ends.push(() => local.end());
      const here = await askLocal<SubmitAnswer>('submit', file);
      localJob = here.job.id;
    });
    let localJob = '';

    it('buys one instance although the Lambda that does dies, survives interruptions, and finishes', async () => {
      await until('the buyer is killed', async () => (killed.length > 0 ? true : null), 180_000);
      killCaller('RunTask');
      const end = await ended(ask, job);
      phase('the job');
      expect(end).toMatchObject({ state: 'succeeded', onTime: true });
      expect(killed).toEqual(['CreateFleet', 'RunTask']);
      expect(happened('EC2 Spot Instance Interruption Warning').length).toBeGreaterThan(0);
    });

    it('serves what the task printed, why it ran where it ran, and what it cost', async () => {
      const attempts = await attemptsOf(rehearsal.client(), job);
      const ran = attempts.filter((a) => a.startedAt !== null);
      expect(ran.at(-1)).toMatchObject({ outcome: 'succeeded' });
      expect(ran.length).toBeGreaterThan(1);
      // What an interrupted one saved in S3, the next one found there.
      for (const [n, attempt] of ran.entries()) {
        const logs = await rehearsal.ebb('logs', job, '--attempt', String(attempt.number));
        expect(logs).toMatchObject({ code: 0, stderr: '' });
        const [, from = ''] = /goes on from step (\d+)/.exec(logs.stdout) ?? [];
        expect(Number(from) > 0).toBe(n > 0);
        const before = ran[n - 1];
        if (before === undefined) continue;
        expect(before).toMatchObject({ outcome: 'interrupted' });
        expect(before.keptS).toBeGreaterThan(0);
        expect(attempt.resumedFromS).toBeCloseTo(before.resumedFromS + before.keptS, 3);
      }
      const why = await ask<ExplanationView>('explain', job);
      expect(JSON.stringify(why)).toContain('c5.large');
      for (const by of [ask, askLocal]) {
        const plans = (await by<PlanList>('plans', '--limit', '200')).items;
        expect(new Set(plans.map((plan) => plan.preset))).toEqual(new Set([PRESET]));
        const forecasts = plans.flatMap((plan) => plan.forecast ?? []);
        expect(forecasts.map((f) => f.refused).filter((refused) => refused !== null)).toEqual([]);
        expect(forecasts.some((f) => f.version !== null && f.byModel > 0)).toBe(true);
        const { origin, items } = await by<ForecastList>('pools', '--forecast');
        expect(items.length).toBeGreaterThan(0);
        expect(origin).toMatchObject({ version: forecasts.at(-1)?.version, refused: null });
      }
      const cost = await settled(ask, job);
      expect(cost.total.totalUsd).toBeGreaterThan(0);
      const report = await ask<CostReport>('cost', '--by', 'job');
      const all = await instances(ask);
      const billed = (of: readonly InstanceView[]) => of.reduce((sum, i) => sum + (i.costUsd ?? 0), 0);
      expect(report.total.totalUsd).toBeCloseTo(billed(all), 9);
      expect(report.rows.map((r) => r.key)).toContain(job);
      for (const { key, totalUsd } of (await ask<CostReport>('cost', '--by', 'pool')).rows) {
        expect(totalUsd).toBeCloseTo(billed(all.filter((i) => i.pool === key)), 9);
      }
      // What the market takes within the first hour is refunded: the ledger has its time, kept and lost, at no cost.
      const taken = all.filter((i) => i.endCause === 'interrupted');
      expect(taken.length).toBeGreaterThan(0);
      expect(billed(taken)).toBe(0);
      for (const pool of new Set(taken.map((i) => i.pool))) {
        const row = cost.rows.find((r) => r.key === pool);
        expect(row).toMatchObject({ workUsd: 0, wastedUsd: 0, totalUsd: 0 });
        expect(row?.instanceHours).toBeGreaterThan(0);
      }
      phase('its bills');
    });

    it('decides and costs as local mode does on the same market', async () => {
      const there = await ended(askLocal, localJob);
      expect(there).toMatchObject({ state: 'succeeded', onTime: true });
      await settled(askLocal, localJob);
      const [aws, here] = [await instances(ask), await instances(askLocal)];
      // How often one tries again where an instance has just been lost depends on how fast one is: counted once.
      const decisions = (of: readonly InstanceView[]) =>
        of
          .map(({ pool, option, bid }) => ({ pool, option, bid }))
          .filter((each, n, all) => JSON.stringify(each) !== JSON.stringify(all[n - 1]));
      const outcomes = async (client: Client, id: string) =>
        (await attemptsOf(client, id)).filter((a) => a.startedAt !== null).map((a) => a.outcome);
      expect(decisions(aws)).toEqual(decisions(here));
      expect(await outcomes(rehearsal.client(), job)).toEqual(await outcomes(local.client(), localJob));
      const [awsUsd, hereUsd] = [aws, here].map((of) => of.reduce((sum, i) => sum + (i.costUsd ?? 0), 0));
      const usdPerS = dearestSpotUsdPerHour / 3600;
      expect(Math.abs((awsUsd ?? 0) - (hereUsd ?? 0))).toBeLessThan(aws.length * SLOWER_S * SPEED * usdPerS);
      phase('beside local mode');
    });

    it('has two jobs done though calls are throttled, fail and find no capacity', async () => {
      const { knobs } = rehearsal.double;
      const calls = new Map(rehearsal.double.counts);
      const made = (action: string): number => (rehearsal.double.counts.get(action) ?? 0) - (calls.get(action) ?? 0);
      knobs.set({
        throttle: { CreateFleet: { ratePerS: 1, burst: 1 }, RunTask: { ratePerS: 1, burst: 1 } },
        insufficientCapacity: [`*/${BRIEF_ZONE}/spot`],
        // More often than one call is repeated: the intent stays open, and the next cycle does it.
        faults: [{ action: 'CreateFleet', code: 'InternalError', times: 7 }],
      });
      const small = (name: string, seconds: number): string =>
        rehearsal.file(name, {
          ...SMALL,
          command: ['sleep', String(seconds)],
          expectedRuntime: `${(seconds * SPEED) / 60}m`,
        });
      const submit = async (name: string, seconds: number): Promise<string> =>
        (await ask<SubmitAnswer>('submit', small(name, seconds))).job.id;
      const broken = await storedAsNobodyCan(rehearsal.double.now());
      const [first, second] = [await submit('first', 2), await submit('second', 2)];
      for (const id of [first, second]) expect(await ended(ask, id)).toMatchObject({ state: 'succeeded' });
      // The function that finds it has run its trials in a thread of its own.
      const held = await until('the broken job is held', async () => heldOr(null, await jobNow(broken)), 60_000);
      expect(held.stateReason).toMatch(/a decision on it fails/);
      expect(await ask<CancelAnswer>('cancel', broken)).toMatchObject({ outcome: 'requested' });
      expect(await ended(ask, broken)).toMatchObject({ state: 'cancelled' });
      knobs.set({ throttle: {}, insufficientCapacity: [] });
      expect(knobs.now.faults).toEqual([]);
      expect(made('ec2:CreateFleet')).toBeGreaterThan(7);
      phase('throttled, failing, without capacity');
    });

    it('moves a task to where another runs once their neighbours are done, with what it has saved', async () => {
      // Two instances, for no two of the brief tasks share one. A long task is left on each.
      const env = awsEnvironment({ endpoint: on.endpoint, region: REGION });
      const file = rehearsal.file('halves', {
        env,
        workdir: '.',
        expectedRuntime: '1h',
        constraints: { zones: [LASTING_ZONE] },
        stages: [
          { name: 'brief', tasks: 2, command: ['sleep', '20'], resources: { cpu: 1.1, memory: '128MiB' } },
          {
            name: 'long',
            tasks: 2,
            command: [process.execPath, `${import.meta.dirname}/saving-task.mjs`, String(360 * SLOWER)],
            resources: { cpu: 0.9, memory: '128MiB' },
            checkpoint: { signal: 'SIGUSR1', grace: '1s' },
          },
        ],
      });
      const { job: halves } = await ask<SubmitAnswer>('submit', file);
      const moved = async (): Promise<readonly AttemptView[] | null> => {
        const attempts = await attemptsOf(rehearsal.client(), halves.id);
        const stopped = attempts.find((a) => a.outcome === 'moved');
        const next = attempts.find((a) => a.index === stopped?.index && a.stage === 'long' && a.number === 2);
        return stopped === undefined || next === undefined || next.startedAt === null ? null : [stopped, next];
      };
      const [stopped, next] = await until('a task goes on elsewhere', moved, 240_000, ASKED_EACH_MS);
      expect(stopped?.keptS).toBeGreaterThan(0);
      expect(next?.resumedFromS).toBeCloseTo((stopped?.resumedFromS ?? 0) + (stopped?.keptS ?? 0), 3);
      expect(next?.instance).not.toBe(stopped?.instance);
      // The decision after its start is the first to see it there.
      const explained = async (): Promise<string | null> => {
        const why = JSON.stringify(await ask<ExplanationView>('explain', halves.id));
        return why.includes('moved here') ? why : null;
      };
      await until('an explanation of the move', explained, 60_000, ASKED_EACH_MS);
      const logs = await rehearsal.ebb(
        'logs',
        halves.id,
        '--stage',
        'long',
        '--task',
        String(next?.index),
        '--attempt',
        '2',
      );
      expect(Number(/goes on from step (\d+)/.exec(logs.stdout)?.[1])).toBeGreaterThan(0);
      expect(await ask<CancelAnswer>('cancel', halves.id)).toMatchObject({ outcome: 'requested' });
      expect(await ended(ask, halves.id)).toMatchObject({ state: 'cancelled' });
      phase('a move');
    });

    it('looks again when the first hour of an instance ends, and cancels what runs on it', async () => {
      const scheduler = on.kept(new SchedulerClient({ ...on.config(), region: REGION }));
      const schedules = async () => (await scheduler.send(new ListSchedulesCommand({}))).Schedules ?? [];
      const file = rehearsal.file('endless', {
        ...SMALL,
        command: ['sleep', '600'],
        expectedRuntime: '3h',
        constraints: { zones: [LASTING_ZONE] },
      });
      const { job: endless } = await ask<SubmitAnswer>('submit', file);
      // Instances of jobs that are over may still be there, with schedules of their own.
      const leadMs = (schedule: GetScheduleCommandOutput, { launchedAt }: InstanceView): number => {
        const atMs = Date.parse(`${/at\((.*)\)/.exec(schedule.ScheduleExpression ?? '')?.[1] ?? ''}Z`);
        const { engineMs, wallMs, speed } = rehearsal.double.anchor;
        return wallMs + (Date.parse(launchedAt ?? '') + 3_600_000 - engineMs) / speed - atMs;
      };
      const { Target } = await until(
        'a schedule two minutes before the first hour of an instance ends',
        async () => {
          const hosts = (await instances(ask)).filter((i) => i.state !== 'ended' && i.zone === LASTING_ZONE);
          for (const { GroupName, Name } of await schedules()) {
            const schedule = await scheduler.send(new GetScheduleCommand({ GroupName, Name })).catch((e: unknown) => {
              if (e instanceof ResourceNotFoundException) return null;
              throw e;
            });
            const leads = schedule === null ? [] : hosts.map((host) => leadMs(schedule, host));
            if (leads.some((ms) => ms >= 120_000 && ms < 181_000)) return schedule;
          }
          return null;
        },
        120_000,
      );
      const runs = async () =>
        (await ask<{ job: JobView }>('status', endless.id)).job.tasks.running === 1 ? true : null;
      await until('the job runs', runs, 120_000);
      // LocalStack keeps schedules and never fires them: this is what it would do.
      const newest = async () => (await ask<PlanList>('plans', '--limit', '1')).items[0]?.id;
      const before = await newest();
      const QueueUrl = queueOf(on.endpoint, Target?.Arn ?? '');
      const sqs = on.kept(new SQSClient({ ...on.config(), region: REGION }));
      await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: Target?.Input ?? '' }));
      await until('a plan for it', async () => ((await newest()) === before ? null : true), 60_000);
      expect(await ask<CancelAnswer>('cancel', endless.id)).toMatchObject({ outcome: 'requested' });
      expect(await ended(ask, endless.id)).toMatchObject({ state: 'cancelled' });
      phase('the end of an hour, and a cancellation');
      await until('no schedule is left', async () => ((await schedules()).length === 0 ? true : null), 120_000);
    });

    it('runs a service: no request fails while an instance is taken with notice, and in an update', async () => {
      const fileOf = (REVISION: string): string =>
        rehearsal.file('web', {
          class: 'service',
          command: [process.execPath, '-e', SERVER],
          env: { REVISION },
          workdir: '.',
          // No two share an instance.
          resources: { cpu: 1.1, memory: '128MiB' },
          constraints: { zones: [LASTING_ZONE] },
          target: { latency: '1s' },
          capacity: { perReplica: '50 rps' },
          min: 2,
          max: 4,
          health: { interval: '5s', grace: '3m' },
          drain: '5s',
          update: { maxSurge: 1 },
        });
      const service = () => ask<ServiceView>('service', 'status', 'web');
      const standing = (what: string, revision: number): Promise<ServiceView> =>
        until(
          what,
          async () => {
            const now = await service();
            const isThere = now.state === 'healthy' && now.replicas.healthy >= 2 && now.revision === revision;
            return isThere && now.update === null ? now : null;
          },
          DONE_WITHIN_MS,
          ASKED_EACH_MS,
        );
      market.takeNext(TAKEN_AFTER_S);
      expect(await ask<ApplyAnswer>('service', 'apply', fileOf('one'))).toMatchObject({ outcome: 'created' });
      const { url } = await standing('the service is healthy', 1);
      const asking = new Asking(url ?? '');
      phase('a service');
      const lost = () => happened('EC2 Instance State-change Notification').filter(isTerminated).length;
      const before = lost();
      await until('the end of an instance', async () => (lost() > before ? true : null), DONE_WITHIN_MS);
      await standing('a replica elsewhere', 1);
      phase('a service whose instance is taken');
      expect(await ask<ApplyAnswer>('service', 'apply', fileOf('two'))).toMatchObject({ outcome: 'updated' });
      const updated = await standing('the update', 2);
      asking.said.clear();
      const measured = async () => ((await service()).load.requests > 0 ? true : null);
      await until('requests in CloudWatch', measured, 240_000, ASKED_EACH_MS);
      await asking.end();
      expect(asking.faults).toEqual([]);
      expect([...asking.said]).toEqual(['two']);
      expect(asking.count).toBeGreaterThan(100);
      expect(updated.cost.totalUsd).toBeGreaterThan(0);
      await ask('service', 'delete', 'web');
      const left = async () => ((await ask<ServiceListView>('service', 'list')).items.length === 0 ? true : null);
      await until('the service is gone', left, DONE_WITHIN_MS, ASKED_EACH_MS);
      await expect(fetch(url ?? '')).rejects.toThrow('fetch failed');
      phase('its update and its end');
    });

    it('has bought and begun nothing twice, and given everything back', async () => {
      const all = await until(
        'no instance is left',
        async () => {
          const of = await instances(ask);
          return of.every((i) => i.state === 'ended') ? of : null;
        },
        180_000,
      );
      const states = new Map<string, string>();
      for (const { detail } of happened('EC2 Instance State-change Notification')) {
        states.set(String(detail['instance-id']), String(detail['state']));
      }
      expect(new Set(states.values())).toEqual(new Set(['terminated']));
      expect(states.size).toBe(all.filter((i) => i.launchedAt !== null).length);
      const tasks = new Map<string, Set<string>>();
      for (const { detail } of happened('ECS Task State Change')) {
        const mark = String(detail['startedBy']);
        tasks.set(mark, (tasks.get(mark) ?? new Set()).add(String(detail['taskArn'])));
      }
      for (const [, arns] of tasks) expect(arns.size).toBe(1);
      phase('the end of the instances');
    });

    it('does nothing when everything that happened is told once more, backwards', async () => {
      const picture = async () => ({
        jobs: await ask<unknown>('jobs').then(items),
        instances: await instances(ask),
        costs: (await ask<CostReport>('cost', '--by', 'job')).rows,
        attempts: await attemptsOf(rehearsal.client(), job),
      });
      // What the last instance cost is told by the cycle after its end.
      let before = await picture();
      await until(
        'all is settled',
        async () => {
          const last = before;
          await new Promise((resolve) => setTimeout(resolve, 4000));
          before = await picture();
          return isDeepStrictEqual(before, last) ? true : null;
        },
        120_000,
      );
      const calls = rehearsal.double.counts.get('ec2:CreateFleet');
      const events = rehearsal.double.events.toReversed();
      const deliver = putEventsTo(on.endpoint);
      for (let n = 0; n < events.length; n += 10) await deliver(events.slice(n, n + 10));
      // Time enough for a cycle, if one were to come of it.
      await new Promise((resolve) => setTimeout(resolve, 8000));
      expect(await picture()).toEqual(before);
      expect(rehearsal.double.counts.get('ec2:CreateFleet')).toBe(calls);
      phase(`${events.length} events told again`);
    });
  },
  'functions',
);

const heldOr = <T>(other: T, job: JobView): JobView | T => (job.state === 'held' ? job : other);

const isTerminated = ({ detail }: AwsEvent): boolean => detail['state'] === 'terminated';

/** Answers with its revision. */
const SERVER = `
  const { createServer } = require('node:http');
  const { HOST, PORT, REVISION } = process.env;
  createServer((request, answer) => answer.end(REVISION)).listen(Number(PORT), HOST);
`;
/** Market seconds for which the service has its first instance: it begins to serve well before. */
const TAKEN_AFTER_S = 1000;

const SMALL = { resources: { cpu: 1, memory: '128MiB' } };

/** As LocalStack names the queue of an ARN. */
function queueOf(endpoint: string, arn: string): string {
  const [, , , region = '', account = '', name = ''] = arn.split(':');
  return `${endpoint}/queue/${region}/${account}/${name}`;
}

/** Of an answer that says when it was given. */
const items = (list: unknown): unknown => (list as { items: unknown }).items;

const timeOf = (text: string): EpochMs => epochMs(Date.parse(text));

async function until<T>(what: string, look: () => Promise<T | null>, withinMs: number, pauseMs = PAUSE_MS): Promise<T> {
  const patience = performance.now() + SLOWER * withinMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > patience) throw new Error(`not within ${(SLOWER * withinMs) / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
