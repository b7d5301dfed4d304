/**
 * The ground that a rehearsal of a deployment stands on: LocalStack with functions as processes of this machine does
 * what Ebbtide asks of AWS. Nothing of Ebbtide is in it, so a failure here is not one of ours.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { CreateStackCommand, DeleteStackCommand, waitUntilStackCreateComplete } from '@aws-sdk/client-cloudformation';
import {
  CloudWatchLogsClient,
  FilterLogEventsCommand,
  type FilterLogEventsCommandOutput,
} from '@aws-sdk/client-cloudwatch-logs';
import { SFNClient, StartSyncExecutionCommand } from '@aws-sdk/client-sfn';
import {
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { putEventsTo } from '../../../scripts/aws-double/events.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';
import { groundTemplate } from './ground-template.ts';

const DEPLOY_WITHIN_S = 120;
const ARRIVES_WITHIN_MS = 40_000;

describeOnLocalStack(
  'the services that a deployment uses',
  (on) => {
    const stack = { StackName: `ground-${process.pid}` };
    let outputs: Record<string, string> = {};
    const output = (name: string): string => outputs[name] ?? '';
    const cloudformation = (): CloudFormationClient => on.kept(new CloudFormationClient(on.config()));
    const sqs = (): SQSClient => on.kept(new SQSClient(on.config()));

    beforeAll(
      async () => {
        const client = cloudformation();
        const TemplateBody = JSON.stringify(groundTemplate());
        await client.send(new CreateStackCommand({ ...stack, TemplateBody, Capabilities: ['CAPABILITY_IAM'] }));
        await waitUntilStackCreateComplete({ client, maxWaitTime: DEPLOY_WITHIN_S, minDelay: 1, maxDelay: 1 }, stack);
        const { Stacks = [] } = await client.send(new DescribeStacksCommand(stack));
        outputs = Object.fromEntries((Stacks[0]?.Outputs ?? []).map((o) => [o.OutputKey ?? '', o.OutputValue ?? '']));
      },
      (DEPLOY_WITHIN_S + 10) * 1000,
    );
    afterAll(async () => {
      await cloudformation().send(new DeleteStackCommand(stack));
    });

    /** What functions have told, until it is `enough`. */
    async function told(enough: (all: readonly Told[]) => boolean): Promise<readonly Told[]> {
      const client = sqs();
      const all: Told[] = [];
      const until = performance.now() + ARRIVES_WITHIN_MS;
      while (!enough(all) && performance.now() < until) {
        const asked = { QueueUrl: output('ToldUrl'), MaxNumberOfMessages: 10, WaitTimeSeconds: 1 };
        const { Messages = [] } = await client.send(new ReceiveMessageCommand(asked));
        all.push(...Messages.map((m) => JSON.parse(m.Body ?? '') as Told));
      }
      return all;
    }

    it('a function answers behind a REST API, and what it prints is logged', async () => {
      const url = `${on.endpoint}/_aws/execute-api/${output('ApiId')}/v1/things/7?colour=red`;
      const answer = await fetch(url, { method: 'POST', body: '{"size":3}' });
      expect(answer.status).toBe(201);
      expect(answer.headers.get('x-made')).toBe('yes');
      expect(await answer.json()).toEqual({ id: '7', method: 'POST', query: { colour: 'red' }, body: '{"size":3}' });
      const logs = on.kept(new CloudWatchLogsClient(on.config()));
      const isTold = ({ events = [] }: FilterLogEventsCommandOutput | { events: never[] }): boolean =>
        events.some(({ message = '' }) => message.includes('asked for 7'));
      const printed = await eventually(
        // The group is made with its first line.
        () =>
          logs.send(new FilterLogEventsCommand({ logGroupName: output('ApiLogGroup') })).catch(() => ({ events: [] })),
        isTold,
      );
      expect(isTold(printed)).toBe(true);
    });

    it('of a batch from a queue what failed is delivered again, and at last lies in the dead letters', async () => {
      const Entries = ['good', 'once', 'never', 'dies'].map((id) => ({ Id: id, MessageBody: JSON.stringify({ id }) }));
      await sqs().send(new SendMessageBatchCommand({ QueueUrl: output('WorkUrl'), Entries }));
      const done = await told((all) => new Set(all.map((t) => t.id)).size === 3);
      expect(new Set(done.map((t) => t.id))).toEqual(new Set(['good', 'once', 'dies']));
      expect(done.find((t) => t.id === 'once')?.delivery).toBeGreaterThan(1);
      expect(done.find((t) => t.id === 'dies')?.delivery).toBeGreaterThan(1);
      const { Attributes = {} } = await eventually(
        () => sqs().send(new GetQueueAttributesCommand({ QueueUrl: output('DeadUrl'), AttributeNames: ['All'] })),
        ({ Attributes: found = {} }) => found['ApproximateNumberOfMessages'] === '1',
      );
      expect(Attributes['ApproximateNumberOfMessages']).toBe('1');
    }, 90_000);

    it('an Express state machine maps over items, tries again by the name of the error, and catches', async () => {
      // The SDK would put `sync-` before the address.
      const sfn = on.kept(new SFNClient({ ...on.config(), disableHostPrefix: true }));
      const items = [{ id: 'plain' }, { id: 'flaky' }, { id: 'killed' }, { id: 'slow' }, { id: 'fatal' }];
      const run = { stateMachineArn: output('MachineArn'), input: JSON.stringify({ items }) };
      const { status, output: result = '', error, cause } = await sfn.send(new StartSyncExecutionCommand(run));
      expect({ status, error, cause }).toEqual({ status: 'SUCCEEDED', error: undefined, cause: undefined });
      expect(JSON.parse(result)).toEqual([
        { id: 'plain', attempt: 0 },
        { id: 'flaky', attempt: 1 },
        { id: 'killed', attempt: 1 },
        { id: 'slow', attempt: 1 },
        { caught: 'Fatal' },
      ]);
    }, 90_000);

    it('an event reaches the function of the rule that it matches', async () => {
      const deliver = putEventsTo(on.endpoint);
      const base = { version: '0', account: '000000000000', region: 'eu-central-1', resources: [] } as const;
      const time = '2026-01-01T00:00:00Z';
      const warning = { ...base, time, source: 'aws.ec2', 'detail-type': 'EC2 Spot Instance Interruption Warning' };
      await deliver([
        { ...warning, id: '1', detail: { 'instance-id': 'i-1', 'instance-action': 'hibernate' } },
        { ...warning, id: '2', detail: { 'instance-id': 'i-2', 'instance-action': 'terminate' } },
      ]);
      const seen = await told((all) => all.some((t) => t.source !== undefined));
      expect(seen.filter((t) => t.source !== undefined)).toEqual([{ id: 'i-2', source: 'aws.ec2' }]);
    }, 60_000);

    it('a rule of a schedule fires', async () => {
      const ticks = await eventually(
        () => sqs().send(new GetQueueAttributesCommand({ QueueUrl: output('TickUrl'), AttributeNames: ['All'] })),
        ({ Attributes: found = {} }) => Number(found['ApproximateNumberOfMessages']) > 0,
        75_000,
      );
      expect(Number(ticks.Attributes?.['ApproximateNumberOfMessages'])).toBeGreaterThan(0);
    }, 90_000);
  },
  'functions',
);

interface Told {
  readonly id: string;
  readonly delivery?: number;
  readonly source?: string;
}

/** Asks until the answer is as wanted; the last answer when time is up. */
async function eventually<T>(
  ask: () => Promise<T>,
  isWanted: (answer: T) => boolean,
  withinMs = ARRIVES_WITHIN_MS,
): Promise<T> {
  const until = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (isWanted(answer) || performance.now() > until) return answer;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
