/** What sets Ebbtide going, and what tells a person: queues, rules, alarms, the dashboard. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { Match, type Template } from 'aws-cdk-lib/assertions';
import { METRICS } from '../../lib/drivers/aws/metrics/metrics.ts';
import { shown } from './policies.ts';
import { resourceNamed, resourcesOf, synthesis } from './synthesis.ts';

let main: Template;
beforeAll(() => {
  ({ main } = synthesis({ budgetUsdPerDay: 12, alarmEmail: 'ops@example.com' }));
});

const rules = (): Record<string, unknown>[] =>
  Object.values(resourcesOf(main, 'AWS::Events::Rule')).map((r) => r.Properties);

describe('queues', () => {
  it('put a message aside after five tries, for two weeks', () => {
    const { RedrivePolicy } = resourceNamed(main, 'AWS::SQS::Queue', 'EbbtideTriggerQueue').Properties;
    const { maxReceiveCount, deadLetterTargetArn } = RedrivePolicy as Record<string, unknown>;
    expect(maxReceiveCount).toBe(5);
    expect(shown(deadLetterTargetArn)).toMatch(/^\{EbbtideTriggerDeadLetters\w+\.Arn\}$/);
    const letters = resourceNamed(main, 'AWS::SQS::Queue', 'EbbtideTriggerDeadLetters').Properties;
    expect(letters['MessageRetentionPeriod']).toBe(14 * 86_400);
  });

  it('are encrypted and speak TLS only', () => {
    const queues = resourcesOf(main, 'AWS::SQS::Queue');
    expect(Object.keys(queues)).toHaveLength(2);
    for (const { Properties } of Object.values(queues)) expect(Properties['SqsManagedSseEnabled']).toBe(true);
    const closed = Object.values(resourcesOf(main, 'AWS::SQS::QueuePolicy'))
      .filter((p) => JSON.stringify(p).includes('"aws:SecureTransport":"false"'))
      .flatMap((p) => (p.Properties['Queues'] as { Ref: string }[]).map((q) => q.Ref));
    expect(new Set(closed)).toEqual(new Set(Object.keys(queues)));
  });

  it('are read by one function in batches, of which single messages can fail, by two at once', () => {
    main.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      FunctionName: { Ref: Match.stringLikeRegexp('^EbbtideFunctionsObserve') },
      EventSourceArn: { 'Fn::GetAtt': [Match.stringLikeRegexp('^EbbtideTriggerQueue'), 'Arn'] },
      BatchSize: 50,
      MaximumBatchingWindowInSeconds: 2,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      ScalingConfig: { MaximumConcurrency: 2 },
    });
  });
});

describe('the archive', () => {
  it('reads what is over from the stream, rarely, and puts aside what it cannot', () => {
    main.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      FunctionName: { Ref: Match.stringLikeRegexp('^EbbtideFunctionsArchive') },
      EventSourceArn: Match.anyValue(),
      StartingPosition: 'TRIM_HORIZON',
      MaximumBatchingWindowInSeconds: 300,
      BisectBatchOnFunctionError: true,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      MaximumRetryAttempts: 15,
      DestinationConfig: { OnFailure: { Destination: Match.anyValue() } },
    });
    const [mapping] = Object.values(resourcesOf(main, 'AWS::Lambda::EventSourceMapping')).filter(
      (m) => m.Properties['FilterCriteria'] !== undefined,
    );
    const { Filters } = mapping!.Properties['FilterCriteria'] as { Filters: { Pattern: string }[] };
    // The Lambda service takes five.
    expect(
      Filters.map((f) => (JSON.parse(f.Pattern) as { dynamodb: { Keys: { pk: unknown } } }).dynamodb.Keys.pk),
    ).toEqual(['J#', 'I#', 'P#'].map((prefix) => ({ S: [{ prefix }] })));
  });
});

describe('rules', () => {
  it('tick every minute, and more rarely for prices and the sweep', () => {
    const every = rules()
      .filter((r) => r['ScheduleExpression'] !== undefined)
      .map(
        (r) =>
          `${String(r['ScheduleExpression'])} -> ${/Functions(\w+?)[\dA-F]{8}/.exec(JSON.stringify(r['Targets']))?.[1] ?? '?'}`,
      );
    expect(every.sort()).toEqual([
      'rate(1 minute) -> Acquire',
      'rate(10 minutes) -> Prices',
      'rate(10 minutes) -> Sweep',
    ]);
  });

  it('bring everything that EC2 and ECS say of instances and tasks', () => {
    const patterns = rules().flatMap((r) =>
      r['EventPattern'] === undefined ? [] : [r['EventPattern'] as Record<string, unknown>],
    );
    expect(patterns.map((p) => [p['source'], p['detail-type']].flat().join(': ')).sort()).toEqual([
      'aws.ec2: EC2 Instance Rebalance Recommendation',
      'aws.ec2: EC2 Instance State-change Notification',
      'aws.ec2: EC2 Spot Instance Interruption Warning',
      'aws.ecs: ECS Container Instance State Change',
      'aws.ecs: ECS Task State Change',
      'aws.s3: Object Created',
    ]);
    for (const p of patterns.filter((each) => String(each['source']) === 'aws.ecs'))
      expect(shown((p['detail'] as { clusterArn: unknown[] }).clusterArn[0])).toMatch(
        /^\{EbbtideCapacityCluster\w+\.Arn\}$/,
      );
  });

  it('bring only those changes that say something', () => {
    const detailOf = (type: string): Record<string, unknown> | undefined =>
      rules()
        .map((r) => r['EventPattern'] as { 'detail-type'?: string[]; detail?: Record<string, unknown> } | undefined)
        .find((p) => p?.['detail-type']?.[0] === type)?.detail;
    expect(detailOf('EC2 Instance State-change Notification')).toEqual({ state: ['stopping', 'terminated'] });
    expect(detailOf('ECS Task State Change')).toMatchObject({ lastStatus: ['RUNNING', 'STOPPED'] });
    expect(detailOf('ECS Container Instance State Change')).toMatchObject({
      status: ['ACTIVE'],
      agentConnected: [true],
      runningTasksCount: [0],
      pendingTasksCount: [0],
    });
  });

  it('let warnings wait for nothing, and gather all else', () => {
    const targets = rules().flatMap((r) => {
      const { 'detail-type': [type] = [] } = (r['EventPattern'] ?? {}) as { 'detail-type'?: string[] };
      const [target] = r['Targets'] as { Arn: unknown }[];
      return type === undefined ? [] : [[type, /Ebbtide[A-Za-z]+/.exec(shown(target?.Arn))?.[0]] as const];
    });
    const observe = expect.stringMatching(/^EbbtideFunctionsObserve/);
    const gathered = expect.stringMatching(/^EbbtideTriggerQueue/);
    expect(Object.fromEntries(targets)).toEqual({
      'EC2 Spot Instance Interruption Warning': observe,
      'EC2 Instance Rebalance Recommendation': observe,
      'EC2 Instance State-change Notification': gathered,
      'ECS Task State Change': gathered,
      'ECS Container Instance State Change': gathered,
      'Object Created': gathered,
    });
  });

  it('keep what could not be delivered', () => {
    for (const rule of rules())
      for (const target of rule['Targets'] as { DeadLetterConfig?: { Arn: unknown } }[])
        expect(shown(target.DeadLetterConfig?.Arn)).toMatch(/^\{EbbtideTriggerDeadLetters\w+\.Arn\}$/);
  });

  it('hand on what a function failed on for good, so that one that always fails is seen', () => {
    const asked = Object.values(resourcesOf(main, 'AWS::Lambda::EventInvokeConfig')).map(({ Properties }) => {
      const { FunctionName, MaximumRetryAttempts, DestinationConfig } = Properties;
      const of = /EbbtideFunctions([A-Z][a-z]+)/.exec(shown(FunctionName))?.[1];
      const { Destination } = (DestinationConfig as { OnFailure: { Destination: unknown } }).OnFailure;
      expect(shown(Destination)).toMatch(/^\{EbbtideTriggerDeadLetters\w+\.Arn\}$/);
      return `${of}: ${String(MaximumRetryAttempts)}`;
    });
    expect(asked.sort()).toEqual(['Acquire: 1', 'Observe: 2', 'Prices: 1', 'Sweep: 1']);
  });
});

interface MetricQuery {
  readonly Expression?: string;
  readonly MetricStat?: { readonly Metric: { readonly Namespace: string; readonly MetricName: string } };
}

const nameOf = ({ MetricStat }: MetricQuery): string =>
  MetricStat === undefined ? '' : `${MetricStat.Metric.Namespace}.${MetricStat.Metric.MetricName}`;

describe('alarms', () => {
  it('are of what a person must act on', () => {
    const alarms = Object.values(resourcesOf(main, 'AWS::CloudWatch::Alarm')).map((a) => {
      const { AlarmName, Namespace, MetricName, Metrics, Threshold } = a.Properties;
      const queries = (Metrics ?? []) as MetricQuery[];
      const metric =
        MetricName === undefined
          ? (queries.find((q) => q.Expression !== undefined)?.Expression ?? queries.map(nameOf).join())
          : [Namespace, MetricName].join('.');
      return `${String(AlarmName)}: ${metric} >= ${String(Threshold)}`;
    });
    expect(alarms.sort()).toEqual([
      'ebbtide-cycle-failing: Ebbtide.CycleFaults >= 1',
      'ebbtide-dead-letters: AWS/SQS.ApproximateNumberOfMessagesVisible >= 1',
      'ebbtide-denied: Ebbtide.EffectsDenied >= 1',
      'ebbtide-held-jobs: Ebbtide.HeldJobs >= 1',
      'ebbtide-invalid-launch: Ebbtide.LaunchesInvalid >= 1',
      'ebbtide-leaked-instance: Ebbtide.LeakedInstances >= 1',
      'ebbtide-spend-above-budget: Ebbtide.SpentToday >= 12',
      'ebbtide-stale-prices: Ebbtide.PriceAge >= 3600',
    ]);
  });

  it('say what to do, tell the topic, and are quiet while nothing is to do', () => {
    for (const { Properties } of Object.values(resourcesOf(main, 'AWS::CloudWatch::Alarm'))) {
      expect((Properties['AlarmDescription'] as string).length).toBeGreaterThan(40);
      expect(Properties['AlarmActions']).toHaveLength(1);
      // A job stays held while nothing is to do; the last snapshot says when none is any more.
      const isHeld = Properties['AlarmName'] === 'ebbtide-held-jobs';
      expect(Properties['TreatMissingData']).toBe(isHeld ? 'ignore' : 'notBreaching');
    }
    main.hasResourceProperties('AWS::SNS::Subscription', { Protocol: 'email', Endpoint: 'ops@example.com' });
  });
});

describe('the dashboard', () => {
  const body = (): string =>
    shown(resourceNamed(main, 'AWS::CloudWatch::Dashboard', 'EbbtideDashboard').Properties['DashboardBody']);

  it('shows what lies among the dead letters, and requests that failed', () => {
    expect(body()).toContain('"AWS/ApiGateway","5XXError","ApiName","ebbtide"');
    expect(body()).toMatch(
      /"AWS\/SQS","ApproximateNumberOfMessagesVisible","QueueName","\{EbbtideTriggerDeadLetters\w+\.QueueName\}"/,
    );
  });

  it('is one, and shows every metric that is published and none that is not', () => {
    expect(Object.keys(resourcesOf(main, 'AWS::CloudWatch::Dashboard'))).toHaveLength(1);
    const drawn = new Set([...body().matchAll(/"Ebbtide","(\w+)"/g)].map(([, name]) => name));
    expect([...drawn].sort()).toEqual(
      Object.values(METRICS)
        .map((m) => m.name)
        .sort(),
    );
  });

  it('sums what was booked on jobs and owners out of the logs of those that book', () => {
    const text = body();
    for (const by of ['by owner', 'by job, owner']) expect(text).toContain(`as total ${by}`);
    for (const name of ['Snapshot', 'Record', 'Confirm']) expect(text).toContain(`EbbtideFunctions${name}Log`);
  });

  it('sums interruptions as forecast and as they came, and by pool out of the log for a bounded number of pools', () => {
    const text = body();
    for (const key of ['endedExpected', 'endedInterrupted']) expect(text).toContain(`RUNNING_SUM(FILL(${key}, 0))`);
    expect(text).toMatch(/sum\(expected\) as forecast, sum\(interrupted\) as came.{1,300} by pool.{1,60}limit 20/);
    for (const risk of ['capacity', 'price']) expect(text).toContain(`sum(${risk}Expected) as ${risk}Forecast`);
  });

  it('draws the deployment’s own numbers', () => {
    const widgets = (JSON.parse(body()) as { widgets: { properties: { metrics?: unknown[][] } }[] }).widgets;
    const drawn = widgets.flatMap((w) => w.properties.metrics ?? []).filter((m) => m[0] === 'Ebbtide');
    expect(drawn.length).toBeGreaterThan(3);
    for (const metric of drawn) expect(metric.slice(2, 6)).toEqual(expect.arrayContaining(['service', 'ebbtide']));
  });
});
