/** Requests of services at a load balancer: Elastic Load Balancing, ECS and CloudWatch in the double. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { CreateLoadBalancerCommand, ElasticLoadBalancingV2Client } from '@aws-sdk/client-elastic-load-balancing-v2';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { attemptId, effectKey, instanceId, poolId } from '../../../lib/kernel/ids.ts';
import { epochMs, mib, milliCpu, raw, seconds } from '../../../lib/kernel/units.ts';
import { AwsTraffic } from '../../../lib/drivers/aws/traffic/aws-traffic.ts';
import { groupName } from '../../../lib/drivers/aws/traffic/group-names.ts';
import { LoadBalancer } from '../../../lib/drivers/aws/traffic/load-balancer.ts';
import { ReplicaPlaces } from '../../../lib/drivers/aws/traffic/replica-places.ts';
import { ServiceAddresses } from '../../../lib/drivers/aws/traffic/service-addresses.ts';
import { Table } from '../../../lib/drivers/aws/store/dynamo-table.ts';
import type { StartRequest } from '../../../lib/ports/fleet.ts';
import type { Route, Target } from '../../../lib/ports/traffic.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { instance } from '../../contract/store-samples.ts';
import { freePort } from '../../support/free-port.ts';
import { AwsWorld, WORLD_SPEED, type Process } from '../../support/aws-world.ts';
import { routeTo as routeOf, targetOn } from '../../support/routes.ts';
import { until } from '../../support/until.ts';

const AT = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' }, maxAttempts: 1 };
const ID = instanceId('i-web');
/** Names itself, so that a test knows who answered; `/slow` answers late. */
const SERVER = `
  const { createServer } = require('node:http');
  createServer((request, answer) => {
    const say = () => answer.end(process.env.EBB_TASK_INDEX);
    if (request.url === '/slow') setTimeout(say, 1500); else say();
  }).listen(Number(process.env.PORT), '127.0.0.1');
`;

const serverOn = (index: number): StartRequest => ({
  key: effectKey(`start/${index}`),
  attempt: attemptId(`web.replica.${index}.1`),
  instance: ID,
  command: [process.execPath, '-e', SERVER],
  env: { PORT: '8080' },
  port: 8080,
  workdir: '/tmp',
  inputs: [],
  outputs: [],
  resources: { cpu: milliCpu(200), memory: mib(128), gpus: 0, disk: mib(0) },
  timeoutS: null,
  checkpoint: null,
  task: { job: 'web', stage: 'replica', index, number: 1 },
});

const target = (index: number, mode: Target['mode'] = 'serve'): Target =>
  targetOn(index, 8080, { instance: ID, attempt: attemptId(`web.replica.${index}.1`), mode });

/** Checked as seldom as a load balancer of AWS allows. */
const routeTo = (targets: readonly Target[], over: Partial<Route> = {}): Route =>
  routeOf(targets, {
    health: { path: '/', intervalS: seconds(5), timeoutS: seconds(2), graceS: seconds(60), failures: 3 },
    ...over,
  });

const NONE: ReadonlySet<string> = new Set();

describe('services behind a load balancer', () => {
  let world: AwsWorld;
  let process_: Process;
  let balancer: LoadBalancer;
  let traffic: AwsTraffic;
  let wallMs = Date.now();
  const clients: { destroy(): void }[] = [];
  const another = (): AwsTraffic => {
    const at = { ...AT, endpoint: world.double.url };
    const cloudWatch = new CloudWatchClient(at);
    clients.push(cloudWatch);
    const addresses = new ServiceAddresses({ table, stack: 'world', dns: '127.0.0.1', isSecure: false });
    const clock = { now: () => world.double.now(), sleep: async () => undefined };
    const places = new ReplicaPlaces(process_.inbox, process_.ecs);
    const parts = { balancer, arn, stack: 'world', places, addresses, cloudWatch, clock, speed: WORLD_SPEED };
    return new AwsTraffic({ ...parts, nowMs: () => wallMs });
  };
  let table: Table;
  let arn = '';

  beforeAll(async () => {
    world = await AwsWorld.begin({}, (event, on) => on.process().observe(event));
    process_ = world.process();
    const token = await process_.store.takeLease('a cycle');
    await process_.store.commit(token, [{ put: 'instance', value: instance(ID, { state: 'starting' }) }]);
    const pool = poolId('c5.large/calm/on-demand');
    await process_.fleet.launch([{ key: effectKey('launch'), instance: ID, pool, bid: 'uncapped' }]);
    await process_.fleet.start([0, 1].map(serverOn));
    const started = async () => (await process_.fleet.observe(new Map())).filter((o) => o.kind === 'attempt-started');
    await until(async () => (await started()).length === 2);
    const client = new ElasticLoadBalancingV2Client({ ...AT, endpoint: world.double.url });
    clients.push(client);
    const made = await client.send(new CreateLoadBalancerCommand({ Name: 'world', Subnets: ['subnet-1', 'subnet-2'] }));
    arn = made.LoadBalancers?.[0]?.LoadBalancerArn ?? '';
    balancer = new LoadBalancer({ client, arn, vpcId: 'vpc-1', stack: 'world', certificate: null });
    table = new Table({ client: new DynamoDouble().client(), name: 'table' });
    traffic = another();
  }, 60_000);
  afterAll(async () => {
    for (const client of clients) client.destroy();
    await world.close();
  });

  const located = [target(0), target(1)];
  const healthy = async (): Promise<readonly number[]> => {
    const states = await traffic.states('web', located);
    return [...states.values()].filter((s) => s.health === 'healthy').map((s) => s.replica);
  };
  const answers = async (count: number): Promise<ReadonlySet<string>> => {
    const url = await traffic.address('web');
    const said = await Promise.all(Array.from({ length: count }, async () => (await fetch(`${url ?? ''}/`)).text()));
    return new Set(said);
  };

  it('gives a service a port of the load balancer, and requests to its healthy replicas', async () => {
    expect(await traffic.address('web')).toBeNull();
    expect([...(await traffic.states('web', located)).values()].map((s) => s.health)).toEqual(['unknown', 'unknown']);
    // Another engine's listener, made since this one has looked.
    const other = createServer();
    await once(other.listen(8000, '127.0.0.1'), 'listening').catch(() => undefined);
    await traffic.route([routeTo(located)], NONE);
    other.close();
    const address = (await traffic.address('web')) ?? '';
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:8\d{3}$/);
    expect(address).not.toMatch(/:8000$/);
    await until(async () => (await healthy()).length === 2);
    expect(await answers(20)).toEqual(new Set(['0', '1']));
  });

  it('changes nothing where nothing is to change, whichever process asks', async () => {
    const changes = (): number =>
      [...world.double.counts]
        .filter(([call]) => /:(Create|Delete|Register|Deregister)\w*(Listener|Targets?|Group)/.test(call))
        .reduce((sum, [, count]) => sum + count, 0);
    const before = changes();
    await traffic.route([routeTo(located)], NONE);
    await another().route([routeTo(located)], NONE);
    expect(changes()).toBe(before);
  });

  it('leaves a service alone that is kept, and its requests too', async () => {
    await another().route([], new Set(['web']));
    expect(await answers(4)).toEqual(new Set(['0', '1']));
  });

  it('drains a replica: requests in flight end, no new ones come, and it counts as busy meanwhile', async () => {
    const url = (await traffic.address('web')) ?? '';
    const slow = Promise.all(Array.from({ length: 4 }, async () => (await fetch(`${url}/slow`)).text()));
    await sleep(200);
    await traffic.route([routeTo([target(0, 'drain'), target(1)])], NONE);
    expect((await traffic.states('web', located)).get(0)).toMatchObject({ health: 'unknown', inFlight: 1 });
    expect(await answers(10)).toEqual(new Set(['1']));
    expect(new Set(await slow)).toEqual(new Set(['0', '1']));
    await until(async () => (await traffic.states('web', located)).get(0)?.inFlight === 0);
    // And back again.
    await traffic.route([routeTo(located)], NONE);
    await until(async () => (await healthy()).length === 2);
  });

  it('moves to the port that its file names, and tells another service that it is taken', async () => {
    const port = await freePort();
    await traffic.route([routeTo(located, { port })], NONE);
    expect(await traffic.address('web')).toBe(`http://127.0.0.1:${port}`);
    await until(async () => (await healthy()).length === 2);
    const other = { ...routeTo([], { port }), service: 'other' };
    await expect(traffic.route([other, routeTo(located, { port })], NONE)).rejects.toMatchObject({
      code: 'port-in-use',
    });
    expect(await answers(4)).toEqual(new Set(['0', '1']));
  });

  it('measures whole minutes once CloudWatch has them', async () => {
    const minuteMs = Math.floor(Date.now() / 60_000) * 60_000;
    wallMs = Date.now();
    // So many milliseconds of wall time after now, in the engine's time.
    const at = (ms: number) => epochMs(raw(world.double.now()) + (ms - Date.now()) * WORLD_SPEED);
    const of = (fromMs: number, toMs: number) => traffic.measures(routeTo([]), { fromMs: at(fromMs), toMs: at(toMs) });
    expect(await of(minuteMs, minuteMs + 60_000)).toBeNull();
    await answers(10);
    await sleep(minuteMs + 60_200 - Date.now());
    wallMs = Date.now();
    const seen = await of(minuteMs, minuteMs + 60_000);
    expect(seen?.requests).toBeGreaterThanOrEqual(10);
    expect(seen).toMatchObject({ failed: 0, queued: 0 });
    expect(seen?.p99S).toBeGreaterThan(0);
  }, 90_000);

  it('registers the others where an instance is gone', async () => {
    const group = (await balancer.groups()).get(groupName('world', 'web')) ?? '';
    const gone = { ec2: 'i-0123456789abcdef0', port: 1 };
    const before = await balancer.health(group);
    await balancer.deregister(group, before);
    await balancer.register(group, [gone, ...before]);
    const states = (await balancer.health(group)).map((h) => h.ec2);
    expect(states).toEqual(before.map((h) => h.ec2));
  });

  it('leaves nothing behind of a service that is deleted', async () => {
    await traffic.route([], NONE);
    expect(await balancer.listeners()).toEqual([]);
    expect([...(await balancer.groups()).keys()]).not.toContain(groupName('world', 'web'));
    expect(await traffic.address('web')).toBeNull();
  });
});
