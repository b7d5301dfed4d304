import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DescribeInstancesCommand, CreateTagsCommand, TerminateInstancesCommand } from '@aws-sdk/client-ec2';
import { DescribeClustersCommand, DescribeTasksCommand, ListContainerInstancesCommand } from '@aws-sdk/client-ecs';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { putEventsTo, type AwsEvent } from '../../../scripts/aws-double/events.ts';
import { Bench, idsOf, refusal } from './bench.ts';

const cluster = 'ebb';

describe('faults', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.start();
  });
  afterEach(async () => bench.close());

  it('calls that come too fast are throttled, each service in its own words, and others are not', async () => {
    bench.double.knobs.set({
      throttle: { CreateFleet: { ratePerS: 0, burst: 1 }, DescribeClusters: { ratePerS: 0, burst: 0 } },
    });
    const [id] = idsOf(await bench.ec2.send(bench.fleet('calm')));
    const token = { ClientToken: 'later' };
    expect(await refusal(bench.ec2.send(bench.fleet('calm', token)))).toMatchObject({
      name: 'RequestLimitExceeded',
      status: 503,
    });
    const describing = bench.ecs.send(new DescribeClustersCommand({}));
    expect(await refusal(describing)).toMatchObject({ name: 'ThrottlingException', status: 400 });
    const { Reservations } = await bench.ec2.send(new DescribeInstancesCommand({}));
    expect(Reservations!.map((r) => r.Instances![0]!.InstanceId)).toEqual([id]);
    // A throttled call binds no token.
    bench.double.knobs.set({ throttle: {} });
    expect(idsOf(await bench.ec2.send(bench.fleet('empty', token)))).toEqual([]);
  });

  it('a bucket fills again with time', async () => {
    bench.double.knobs.set({ throttle: { '*': { ratePerS: 20, burst: 1 } } });
    const describing = () => bench.ecs.send(new DescribeClustersCommand({ clusters: [cluster] }));
    await describing();
    await bench.until('another token', async () => {
      try {
        return (await describing()).clusters![0];
      } catch {
        return undefined;
      }
    });
    expect(bench.double.calls.filter((c) => c.action === 'DescribeClusters' && c.status === 200)).toHaveLength(2);
  });

  it('a failing call did nothing, or everything and only its answer was lost: a token tells which', async () => {
    const launch = () => bench.ec2.send(bench.fleet('calm', { ClientToken: 'token' }));
    const count = async () => (await bench.ec2.send(new DescribeInstancesCommand({}))).Reservations!.length;
    bench.double.knobs.set({ faults: [{ action: 'CreateFleet', code: 'InternalError' }] });
    expect(await refusal(launch())).toMatchObject({ name: 'InternalError', status: 500 });
    expect(await count()).toBe(0);
    bench.double.knobs.set({
      faults: [
        { action: 'CreateFleet', when: 'after', code: 'ServiceUnavailable', status: 503 },
        { action: 'CreateFleet', when: 'after', code: null },
      ],
    });
    expect(await refusal(launch())).toMatchObject({ name: 'ServiceUnavailable', status: 503 });
    expect(await count()).toBe(1);
    expect((await refusal(launch())).status).toBeUndefined();
    const answer = await launch();
    expect(idsOf(answer)).toHaveLength(1);
    expect(await count()).toBe(1);
    expect(bench.double.knobs.now.faults).toEqual([]);
  });

  it('pools are without capacity for as long as it is said', async () => {
    bench.double.knobs.set({ insufficientCapacity: ['c5.*/calm/*'] });
    const { Errors } = await bench.ec2.send(bench.fleet('calm'));
    expect(Errors!.map((e) => e.ErrorCode)).toEqual(['InsufficientInstanceCapacity']);
    bench.double.knobs.set({ insufficientCapacity: [] });
    expect(idsOf(await bench.ec2.send(bench.fleet('calm')))).toHaveLength(1);
  });

  it('what has just been made cannot be described yet', async () => {
    await bench.define();
    const { arn } = await bench.host('calm');
    bench.double.knobs.set({ describeDelayS: 300 });
    await bench.until('the instance to be old enough', async () => {
      const { containerInstanceArns } = await bench.ecs.send(new ListContainerInstancesCommand({ cluster }));
      return containerInstanceArns![0];
    });
    const task = await bench.script(arn, 'sleep 5');
    const [id] = idsOf(await bench.ec2.send(bench.fleet('calm'))) as [string];
    const byId = () => bench.ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }));
    expect(await refusal(byId())).toMatchObject({ name: 'InvalidInstanceID.NotFound' });
    const { failures } = await bench.ecs.send(new DescribeTasksCommand({ cluster, tasks: [task.taskArn!] }));
    expect(failures!.map((f) => f.reason)).toEqual(['MISSING']);
    await bench.until('the instance', async () => {
      const { Reservations } = await bench.ec2.send(new DescribeInstancesCommand({}));
      return Reservations!.find((r) => r.Instances![0]!.InstanceId === id);
    });
    expect((await byId()).Reservations).toHaveLength(1);
    expect((await bench.task(task.taskArn)).taskArn).toBe(task.taskArn);
  });

  it('knobs that are not there are refused, and those not named stay', async () => {
    const patch = (body: object) =>
      fetch(`${bench.double.url}/_double/knobs`, { method: 'PATCH', body: JSON.stringify(body) });
    expect((await patch({ spotVcpus: 8 })).status).toBe(200);
    expect((await patch({ describeDelayS: 3 })).status).toBe(200);
    expect((await patch({ gravity: 0 })).status).toBe(400);
    expect((await patch({ describeDelayS: -1 })).status).toBe(400);
    expect(bench.double.knobs.now).toMatchObject({ spotVcpus: 8, describeDelayS: 3 });
    const state = (await (await fetch(`${bench.double.url}/_double`)).json()) as Record<string, unknown>;
    expect(state).toMatchObject({
      calls: { 'ecs:CreateCluster': 1 },
      anchor: bench.double.anchor,
      knobs: { spotVcpus: 8 },
    });
    const unsigned = await fetch(bench.double.url, {
      method: 'POST',
      body: 'Action=DescribeInstances&Version=2016-11-15',
    });
    expect([unsigned.status, /<Code>(\w+)</.exec(await unsigned.text())?.[1]]).toEqual([401, 'AuthFailure']);
  });
});

describe('events', () => {
  /** The life of some instances, and what is delivered of it. */
  async function delivered(
    knobs: object,
  ): Promise<{ readonly happened: readonly AwsEvent[]; readonly got: readonly AwsEvent[] }> {
    const got: AwsEvent[] = [];
    const bench = await Bench.start({
      knobs: { events: knobs },
      deliver: async (events) => {
        got.push(...events);
      },
    });
    const ids = idsOf(await bench.ec2.send(bench.fleet('calm', { count: 4 })));
    await bench.ec2.send(new TerminateInstancesCommand({ InstanceIds: ids }));
    await bench.until('their ends', () => {
      const ends = bench.events('EC2 Instance State-change Notification', { state: 'terminated' });
      return ends.length === ids.length ? ends : undefined;
    });
    await bench.close();
    return { happened: bench.double.events, got };
  }
  const idsIn = (events: readonly AwsEvent[]): string[] => events.map((e) => e.id);

  it('are delivered in order, each once', async () => {
    const { happened, got } = await delivered({});
    expect(happened.length).toBeGreaterThanOrEqual(12);
    expect(got).toEqual(happened);
  });

  it('are delivered twice, late and never, as told; what they say stays the same', async () => {
    const { happened, got } = await delivered({ duplicate: 0.5, lose: 0.3, reorderWindow: 8 });
    const known = new Map(happened.map((e) => [e.id, e]));
    expect(got.every((e) => known.get(e.id) === e)).toBe(true);
    const order = idsIn(happened);
    const positions = got.map((e) => order.indexOf(e.id));
    expect(positions).not.toEqual([...positions].sort((a, b) => a - b));
    expect(new Set(idsIn(got)).size).toBeLessThan(got.length);
    expect(new Set(idsIn(got)).size).toBeLessThan(happened.length);
  });

  it('go to an EventBridge by PutEvents, and again when it fails', async () => {
    const bodies: string[] = [];
    let refusals = 1;
    const bus = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        expect(request.headers['x-amz-target']).toBe('AWSEvents.PutEvents');
        const failed = refusals-- > 0;
        if (!failed) bodies.push(body);
        response.writeHead(200).end(JSON.stringify({ FailedEntryCount: failed ? 1 : 0, Entries: [] }));
      });
    });
    await new Promise<void>((resolve) => bus.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(bus.address() as AddressInfo).port}`;
    const bench = await Bench.start({ deliver: putEventsTo(url) });
    const [id] = idsOf(await bench.ec2.send(bench.fleet('calm')));
    await bench.close();
    bus.close();
    const entries = bodies.flatMap((body) => (JSON.parse(body) as { Entries: Record<string, string>[] }).Entries);
    expect(entries[0]).toMatchObject({
      Source: 'aws.ec2',
      DetailType: 'EC2 Instance State-change Notification',
      EventBusName: 'default',
      Time: Date.parse(bench.double.events[0]!.time) / 1000,
    });
    expect(JSON.parse(entries[0]!['Detail']!)).toEqual({ 'instance-id': id, state: 'pending' });
  });
});

describe('the wire', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.start();
  });
  afterEach(async () => bench.close());

  it('carries any text that XML can', async () => {
    const [id] = idsOf(await bench.ec2.send(bench.fleet('calm'))) as [string];
    // oxlint-disable-next-line no-control-regex
    const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff\ud800-\udfff]/;
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }).filter((t) => !forbidden.test(t));
    await fc.assert(
      fc.asyncProperty(text, text, async (key, value) => {
        await bench.ec2.send(new CreateTagsCommand({ Resources: [id], Tags: [{ Key: key, Value: value }] }));
        const { Reservations } = await bench.ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }));
        const tags = new Map(Reservations![0]!.Instances![0]!.Tags!.map((t) => [t.Key, t.Value]));
        expect(tags.get(key)).toBe(value);
      }),
      { seed: 20261121, numRuns: 60 },
    );
  });
});
