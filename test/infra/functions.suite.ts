import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Template } from 'aws-cdk-lib/assertions';
import { lambdaEnvironment, readEnvironment } from '../../lib/drivers/aws/compose/environment.ts';
import { factsOf, FUNCTION_NAMES } from '../../lib/infra/functions.ts';
import { shown } from './policies.ts';
import { resourceNamed, resourcesOf, synthesis } from './synthesis.ts';

const FUNCTION = 'AWS::Lambda::Function';
const SERVICES = {
  services: 'internal',
  servicesCertificateArn: 'arn:aws:acm:eu-central-1:123456789012:certificate/0a1b2c3d',
} as const;
/** Functions that are told of another one. */
const TOLD: Readonly<Record<string, readonly string[]>> = {
  EBB_FORECAST_FUNCTION: ['api'],
  EBB_SERVE_FUNCTION: ['api', 'snapshot', 'acquire'],
};
const idOf = (name: string): string => `EbbtideFunctions${name.charAt(0).toUpperCase()}${name.slice(1)}`;
const propertiesOf = (template: Template, name: string): Record<string, unknown> => {
  const found = Object.entries(resourcesOf(template, FUNCTION)).find(
    ([id]) => id.replace(/[\dA-F]{8}$/, '') === idOf(name),
  );
  if (found === undefined) throw new Error(`no function ${name}`);
  return found[1].Properties;
};

describe('the functions', () => {
  let main: Template;
  beforeAll(() => {
    ({ main } = synthesis({ settings: { solverSeconds: 2 }, preset: 'greedy', draining: true, ...SERVICES }));
  });

  it('are those of the table and no others: the CDK adds none of its own', () => {
    expect(
      Object.keys(resourcesOf(main, FUNCTION))
        .map((id) => id.replace(/[\dA-F]{8}$/, ''))
        .sort(),
    ).toEqual(FUNCTION_NAMES.map(idOf).sort());
  });

  it('have none for services, nor anything else of them, where those are off', () => {
    const { main: off } = synthesis();
    expect(Object.keys(resourcesOf(off, FUNCTION)).some((id) => id.startsWith(idOf('serve')))).toBe(false);
    off.resourceCountIs('AWS::ElasticLoadBalancingV2::LoadBalancer', 0);
    expect(JSON.stringify(off.toJSON())).not.toMatch(/elasticloadbalancing|EBB_LOAD_BALANCER|EBB_VPC/);
  });

  it.each(FUNCTION_NAMES)(
    '%s runs on Node 24 and ARM, untraced, with a log that ends and has no line for what went well',
    (name) => {
      const { Runtime, Architectures, Handler, TracingConfig, LoggingConfig, ...rest } = propertiesOf(main, name);
      expect({ Runtime, Architectures, Handler }).toEqual({
        Runtime: 'nodejs24.x',
        Architectures: ['arm64'],
        Handler: 'index.handler',
      });
      expect(TracingConfig).toBeUndefined();
      const { LogGroup, ...format } = LoggingConfig as { LogGroup: { Ref: string } };
      expect(format).toEqual({ LogFormat: 'JSON', SystemLogLevel: 'WARN' });
      expect(resourcesOf(main, 'AWS::Logs::LogGroup')[LogGroup.Ref]?.Properties['RetentionInDays']).toBe(30);
      // A new account has ten executions in all, and Lambda refuses to reserve any of them.
      expect(rest).not.toHaveProperty('ReservedConcurrentExecutions');
    },
  );

  it('are traced where that is asked for, but for those that a clock or a stream begins', () => {
    const { main: traced } = synthesis({ traces: true, services: 'internal' });
    // Traces of a clock that ticks all day would cost more than the rest of an idle deployment.
    const byClock: readonly string[] = ['acquire', 'prices', 'sweep', 'archive', 'serve'];
    const modes = FUNCTION_NAMES.map((name) => propertiesOf(traced, name)['TracingConfig']);
    expect(modes).toEqual(FUNCTION_NAMES.map((n) => ({ Mode: byClock.includes(n) ? 'PassThrough' : 'Active' })));
    traced.hasResourceProperties('AWS::StepFunctions::StateMachine', { TracingConfiguration: { Enabled: true } });
    traced.hasResourceProperties('AWS::ApiGateway::Stage', { TracingEnabled: true });
  });

  it('that is asked before the rest is made needs nothing of it', () => {
    const { Variables } = propertiesOf(main, 'check')['Environment'] as { Variables: Record<string, unknown> };
    expect(Object.keys(Variables).every((name) => name.startsWith('POWERTOOLS_'))).toBe(true);
    const [check] = Object.values(resourcesOf(main, 'Custom::EbbtideRegion'));
    const used = new Set(JSON.stringify(check).match(/Ebbtide[A-Za-z]+[\dA-F]{8}/g));
    expect([...used].map((id) => id.replace(/[\dA-F]{8}$/, ''))).toEqual(['EbbtideFunctionsCheck']);
  });

  const told = FUNCTION_NAMES.filter((name) => factsOf(name).isAlone !== true);
  it('run on Intel where that was asked for', () => {
    const { main: intel } = synthesis({ lambdaArch: 'x86_64', services: 'internal' });
    const all = Object.values(resourcesOf(intel, FUNCTION)).map((f) => f.Properties['Architectures']);
    expect(all).toEqual(FUNCTION_NAMES.map(() => ['x86_64']));
  });

  const VERSION = 'EBB_LAUNCH_TEMPLATE_VERSION';
  /** As CloudFormation has it: the newest version, which this deployment made. */
  const versionOf = (value: unknown): string => {
    expect(shown(value)).toMatch(/^\{EbbtideCapacityTemplate\w+\.LatestVersionNumber\}$/);
    return '2';
  };
  it.each(told)('%s reads the environment that it is given', (name) => {
    const { Variables } = propertiesOf(main, name)['Environment'] as { Variables: Record<string, unknown> };
    const names = Object.keys(lambdaEnvironment.shape).filter(
      (key) => key !== 'EBB_CLOCK' && (TOLD[key]?.includes(name) ?? true),
    );
    expect(Object.keys(Variables).sort()).toEqual(names.sort());
    const read = readEnvironment(
      Object.fromEntries(
        Object.entries(Variables).map(([key, value]) => [key, key === VERSION ? versionOf(value) : shown(value)]),
      ),
    );
    expect(read.EBB_CONFIG).toMatchObject({
      name: 'ebbtide',
      families: ['c6i', 'c7i', 'm6i', 'm7i', 'r6i', 'r7i'],
      vcpus: 256,
      draining: true,
      settings: { preset: 'greedy', solverSeconds: 2 },
    });
    expect(read.EBB_SUBNETS.size).toBe(3);
    expect(read.POWERTOOLS_METRICS_NAMESPACE).toBe('Ebbtide');
  });

  it('are told of capacity reservations where there are any, and asked for anew when they change', () => {
    const reservations = ['cr-0a1b2c3d4e5f60718'];
    const reserving = synthesis({ reservations }).main;
    const { EBB_CONFIG } = (propertiesOf(reserving, 'act')['Environment'] as { Variables: Record<string, unknown> })
      .Variables as { EBB_CONFIG: string };
    expect(JSON.parse(EBB_CONFIG)).toMatchObject({ reservations });
    for (const type of ['Custom::EbbtideRegion', 'Custom::EbbtidePrices']) {
      expect(Object.values(resourcesOf(reserving, type))).toMatchObject([
        { Properties: { Reservations: reservations } },
      ]);
      expect(Object.values(resourcesOf(main, type))[0]?.Properties).not.toHaveProperty('Reservations');
    }
  });

  it('end before those who wait for them: the gateway, the state machine, the queue', () => {
    const timeout = (name: string): number => propertiesOf(main, name)['Timeout'] as number;
    for (const name of ['intake', 'api']) expect(timeout(name)).toBeLessThanOrEqual(29);
    const steps = timeout('snapshot') + Math.max(timeout('estimate'), timeout('forecast')) + timeout('solve');
    expect(steps + timeout('record') + timeout('act') + timeout('confirm')).toBeLessThanOrEqual(300);
    const queue = resourceNamed(main, 'AWS::SQS::Queue', 'EbbtideTriggerQueue').Properties;
    expect(queue['VisibilityTimeout']).toBeGreaterThanOrEqual(2 * timeout('observe'));
  });

  it('have no secret and no credential in their environment', () => {
    for (const name of FUNCTION_NAMES) {
      const text = JSON.stringify(propertiesOf(main, name)['Environment']);
      expect(text).not.toMatch(/secret|password|token|AKIA|api[_-]?key/i);
    }
  });
});
