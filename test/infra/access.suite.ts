import { beforeAll, describe, expect, it } from '@jest/globals';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import { RIGHTS, type Right } from '../../lib/infra/rights.ts';
import { Ebbtide } from '../../lib/infra/ebbtide.ts';
import { isAllowed, rolesOf, type Role } from './policies.ts';
import { newApp, resourcesOf, synthesis } from './synthesis.ts';
import * as schema from '../../lib/api/schemas.ts';

interface GatewayResponse {
  readonly ResponseType: string;
  readonly StatusCode: string;
  readonly ResponseParameters: Readonly<Record<string, string>>;
  readonly ResponseTemplates: Readonly<Record<string, string>>;
}

/**
 * Statements whose resource is `*`, which AWS has no narrower one for. Whoever adds one must say why, here and in
 * rights.ts.
 */
const ANY_RESOURCE: Readonly<Record<string, readonly string[]>> = {
  ReadSpotPrices: ['ec2:DescribeSpotPriceHistory'],
  ListStreams: ['dynamodb:ListStreams'],
  ReadListPrices: ['pricing:GetProducts'],
  SeeOffers: ['ec2:DescribeInstanceTypeOfferings', 'ec2:DescribeSubnets'],
  SeeInstances: ['ec2:DescribeInstances'],
  SeeBalancers: [
    'elasticloadbalancing:DescribeListeners',
    'elasticloadbalancing:DescribeTargetGroups',
    'elasticloadbalancing:DescribeTargetHealth',
  ],
  SeeRequests: ['cloudwatch:GetMetricData'],
  SeeDefinitions: ['ecs:DescribeTaskDefinition'],
  FindEndpoint: ['ecs:DiscoverPollEndpoint'],
  LogInToEcr: ['ecr:GetAuthorizationToken'],
};

/** What the configuration can add to the rights of the defaults. */
const RESERVATIONS = ['cr-0a1b2c3d4e5f60718', 'cr-0a1b2c3d4e5f60719'];

describe('rights', () => {
  let roles: readonly Role[];
  beforeAll(() => {
    roles = rolesOf(synthesis({ services: 'internal' }).main);
  });

  const role = (start: string): Role => {
    const found = roles.filter((r) => r.id.startsWith(start));
    if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} roles begin with ${start}`);
    return found[0];
  };
  const actions = (start: string): string[] =>
    role(start)
      .statements.flatMap((s) => s.actions)
      .sort();

  it('name every action: none is a pattern', () => {
    const named = roles.flatMap((r) => r.statements.map((s) => ({ role: r.id, ...s })));
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((s) => s.effect !== 'Allow' || 'NotAction' in s.raw || 'NotResource' in s.raw)).toEqual([]);
    expect(named.flatMap((s) => s.actions.filter((a) => a.includes('*')).map((a) => `${s.role} ${a}`))).toEqual([]);
  });

  it('are on every resource only where AWS has none narrower', () => {
    const wide = roles
      .flatMap((r) => r.statements.map((s) => ({ ...s, role: r.id })))
      .filter((s) => s.resources.includes('*'));
    for (const { sid, actions: given, role: id } of wide) {
      // The CDK writes these: X-Ray, and the delivery of the state machine's log.
      if (sid === null) {
        const allowed = id.startsWith('EbbtideCycleMachineRole') ? /^(?:xray|logs):/ : /^xray:Put/;
        expect(given.filter((a) => !allowed.test(a))).toEqual([]);
        continue;
      }
      expect([...given].sort()).toEqual([...(ANY_RESOURCE[sid] ?? [])].sort());
    }
    expect(new Set(wide.map((s) => s.sid).filter((s) => s !== null))).toEqual(new Set(Object.keys(ANY_RESOURCE)));
  });

  it('are explained, and where a resource is a pattern, why it is', () => {
    const explained: Record<string, Right> = Object.fromEntries(Object.values(RIGHTS).map((r) => [r.sid, r]));
    const everyone = [...roles, ...rolesOf(synthesis({ reservations: RESERVATIONS }).main)];
    const ours = everyone.flatMap((r) => r.statements).filter((s) => s.sid !== null && explained[s.sid] !== undefined);
    // The ARN that CloudFormation gives of a log group ends in `:*`.
    const isPattern = (r: string): boolean => r.includes('*') || /TaskLogs\w+\.Arn\}$/.test(r);
    const patterns = ours.filter((s) => s.resources.some(isPattern));
    expect(new Set(patterns.map((s) => s.sid)).size).toBeGreaterThan(20);
    expect(patterns.filter((s) => (explained[s.sid ?? '']?.wide ?? '').length < 20).map((s) => s.sid)).toEqual([]);
    for (const { sid, why, wide } of Object.values(explained)) {
      expect(`${sid}: ${why}`).toMatch(/: .{8,}\.$/);
      const isWide = patterns.some((s) => s.sid === sid);
      // An excuse without a pattern is left over from one that is gone.
      expect(`${sid}: ${wide === undefined ? 'exact' : 'wide'}`).toBe(`${sid}: ${isWide ? 'wide' : 'exact'}`);
    }
  });

  it('pass roles only to the service that they are for', () => {
    const passing = roles.flatMap((r) => r.statements.filter((s) => s.actions.includes('iam:PassRole')));
    const tasks = ['PassTaskRoles', { StringEquals: { 'iam:PassedToService': 'ecs-tasks.amazonaws.com' } }];
    expect(passing.map((s) => [s.sid, s.conditions])).toEqual([
      ['PassScheduleRole', { StringEquals: { 'iam:PassedToService': 'scheduler.amazonaws.com' } }],
      ['PassInstanceRole', { StringEquals: { 'iam:PassedToService': 'ec2.amazonaws.com' } }],
      tasks,
      tasks,
      tasks,
    ]);
    for (const s of passing)
      for (const r of s.resources) expect(r).toMatch(/^\{Ebbtide(?:Capacity|Schedules)\w*Role\w+\.Arn\}$/);
  });

  it('end instances only where the tag says that they are ours', () => {
    for (const start of ['EbbtideFunctionsActRole', 'EbbtideFunctionsObserveRole', 'EbbtideFunctionsSweepRole']) {
      const [ending] = role(start).statements.filter((s) => s.actions.includes('ec2:TerminateInstances'));
      expect(ending?.conditions).toEqual({ StringEquals: { 'aws:ResourceTag/ebb:stack': 'ebbtide' } });
    }
    const others = roles.filter((r) => !/Functions(?:Act|Observe|Sweep)Role/.test(r.id));
    expect(others.flatMap((r) => r.statements.flatMap((s) => s.actions))).not.toContain('ec2:TerminateInstances');
  });

  it('are all in policies of their roles, with as many zones as there may be: what overflows is nowhere explained', () => {
    for (const zones of [3, 6]) synthesis({ zones }).main.resourceCountIs('AWS::IAM::ManagedPolicy', 0);
  });

  it('launch only from the one template, into the deployment’s subnets and group', () => {
    const { statements } = role('EbbtideFunctionsActRole');
    const on = (action: string, kind: string): string[] =>
      statements
        .filter((s) => s.actions.includes(action))
        .flatMap((s) => s.resources.filter((r) => r.includes(`:${kind}/`)));
    const template = expect.stringMatching(/\{EbbtideCapacityTemplate\w+\}$/);
    expect(on('ec2:CreateFleet', 'launch-template')).toEqual([template]);
    expect(on('ec2:RunInstances', 'launch-template')).toEqual([template]);
    const of = (kind: string): string[] => on('ec2:RunInstances', kind);
    expect(of('security-group')).toEqual([expect.stringMatching(/\{EbbtideNetworkInstances\w+\.GroupId\}$/)]);
    expect(of('subnet')).toHaveLength(3);
    for (const subnet of of('subnet')) expect(subnet).not.toMatch(/\*$/);
  });

  // What a launch asks for, all of which must be allowed: EC2 User Guide, "Example policies", "Launch instances
  // (RunInstances)".
  describe('to launch', () => {
    const template = 'lt-own';
    const names = { EbbtideCapacityTemplate: template, EbbtideNetworkInstances: 'sg-own', subnet: 'subnet-own' };
    const arnOf = (kind: string, id: string): string =>
      kind === 'image' ? `arn:aws:ec2:eu-central-1::image/${id}` : `arn:aws:ec2:eu-central-1:1:${kind}/${id}`;
    interface Launch {
      /** Null: of none. */
      readonly template?: string | null;
      readonly image?: Record<string, string>;
      readonly instance?: Record<string, string>;
      readonly tag?: string | null;
      readonly group?: string;
      /** Whether EC2 sets the keys that are documented for RunInstances, and not for those of a fleet. */
      readonly isKeyed?: boolean;
    }
    const launch = ({
      template: from = template,
      image = { 'ec2:Owner': 'amazon' },
      instance = { 'ec2:MetadataHttpTokens': 'required' },
      tag = 'ebbtide',
      group = 'sg-own',
      isKeyed = true,
    }: Launch = {}): boolean => {
      const named = from === null ? [] : [arnOf('launch-template', from)];
      const shared = Object.fromEntries(isKeyed ? named.map((arn) => ['ec2:LaunchTemplate', arn]) : []);
      const tags: Record<string, string> = tag === null ? {} : { 'aws:RequestTag/ebb:stack': tag };
      const asked: [string, Record<string, string>][] = [
        ...named.map((arn): [string, Record<string, string>] => [arn, {}]),
        [arnOf('image', 'ami-1'), { ...shared, ...(isKeyed ? image : {}) }],
        [arnOf('instance', '*'), { ...shared, ...tags, ...(isKeyed ? instance : {}) }],
        [arnOf('volume', '*'), shared],
        [arnOf('network-interface', '*'), shared],
        [arnOf('security-group', group), shared],
        [arnOf('spot-instances-request', '*'), {}],
      ];
      const { statements } = role('EbbtideFunctionsActRole');
      return asked.every(([resource, context]) =>
        isAllowed(statements, { action: 'ec2:RunInstances', resource, context }, names),
      );
    };

    it('takes the template, an image of Amazon’s and tokens for metadata', () => {
      expect(launch()).toBe(true);
    });

    it('is not refused for keys that nobody has documented for the launches of a fleet', () => {
      expect(launch({ isKeyed: false })).toBe(true);
    });

    it('from another template, or without the deployment’s tag, is refused', () => {
      expect(launch({ template: 'lt-other' })).toBe(false);
      expect(launch({ template: 'lt-other', isKeyed: false })).toBe(false);
      for (const isKeyed of [true, false]) {
        expect(launch({ tag: null, isKeyed })).toBe(false);
        expect(launch({ tag: 'other', isKeyed })).toBe(false);
      }
    });

    it('of an image of somebody else’s, without tokens, or into another group, is refused', () => {
      expect(launch({ image: { 'ec2:Owner': '123456789012' } })).toBe(false);
      expect(launch({ instance: { 'ec2:MetadataHttpTokens': 'optional' } })).toBe(false);
      expect(launch({ group: 'sg-other' })).toBe(false);
    });
  });

  it('to call another function have the API, of the one that asks the trained model, and those that start services', () => {
    const asking = roles.flatMap((r) =>
      r.statements.filter((s) => s.actions.includes('lambda:InvokeFunction')).map((s) => [r.id, s.resources] as const),
    );
    const [forecast, serve] = ['Forecast', 'Serve'].map((name) =>
      expect.stringMatching(`EbbtideFunctions${name}[\\dA-F]{8}`),
    );
    expect(asking.filter(([id]) => id.startsWith('EbbtideFunctions')).toSorted()).toEqual([
      [expect.stringMatching(/^EbbtideFunctionsAcquireRole/), [serve]],
      [expect.stringMatching(/^EbbtideFunctionsApiRole/), [forecast]],
      [expect.stringMatching(/^EbbtideFunctionsApiRole/), [serve]],
      [expect.stringMatching(/^EbbtideFunctionsSnapshotRole/), [serve]],
    ]);
  });

  it('of estimate and forecast are to read, and to hand on what they find', () => {
    for (const start of ['EbbtideFunctionsEstimateRole', 'EbbtideFunctionsForecastRole']) {
      const writing = role(start).statements.filter((s) => s.actions.some((a) => /:(?:Put|Update|Delete)/.test(a)));
      expect(writing.map((s) => [s.sid, s.actions])).toEqual([
        ['WriteLog', ['logs:CreateLogStream', 'logs:PutLogEvents']],
        ['PassCycleState', ['s3:GetObject', 's3:PutObject']],
      ]);
    }
  });

  it('over objects are by kind: no function reads or deletes what tasks keep, but for their notes', () => {
    const kinds = roles
      .filter((r) => r.id.startsWith('EbbtideFunctions'))
      .flatMap((r) => r.statements.filter((s) => s.actions.some((a) => /^s3:\w+Object(Tagging)?$/.test(a))))
      .flatMap((s) => s.resources.flatMap((r) => s.actions.map((a) => `${/\/([^/]*\/?\*)$/.exec(r)?.[1]} ${a}`)));
    expect([...new Set(kinds)].sort()).toEqual(
      [
        ...['commits', 'specs', 'memory', 'plans'].flatMap((p) =>
          ['GetObject', 'PutObject', 'PutObjectTagging'].map((action) => `${p}/* s3:${action}`),
        ),
        'cycle/* s3:GetObject',
        'cycle/* s3:PutObject',
        'archive/* s3:PutObject',
        'kept/* s3:GetObject',
        'orders/* s3:PutObject',
        'env/* s3:PutObject',
      ].sort(),
    );
  });

  it('over task definitions end with the deployment’s name', () => {
    const given = roles
      .flatMap((r) => r.statements)
      .filter((s) => s.resources.some((x) => x.includes('task-definition/')));
    expect(new Set(given.flatMap((s) => s.actions))).toEqual(new Set(['ecs:RegisterTaskDefinition', 'ecs:RunTask']));
    const request = (family: string) => ({
      action: 'ecs:RunTask',
      resource: `arn:aws:ecs:eu-central-1:1:task-definition/${family}:3`,
      context: { 'ecs:cluster': '{EbbtideCapacityCluster}' },
    });
    for (const s of given) {
      const open = [{ ...s, actions: ['ecs:RunTask'], conditions: {} }];
      expect(isAllowed(open, request('ebbtide_0123456789abcdef'), {})).toBe(true);
      expect(isAllowed(open, request('ebbtide-x_0123456789abcdef'), {})).toBe(false);
      expect(isAllowed(open, request('ebbtide-0123456789abcdef'), {})).toBe(false);
    }
  });

  it('tag only what is being launched or started', () => {
    const tagging = role('EbbtideFunctionsActRole').statements.filter((s) => s.actions.some((a) => /Tag/.test(a)));
    expect(tagging.map((s) => s.conditions)).toEqual([
      { StringEquals: { 'ec2:CreateAction': ['CreateFleet', 'RunInstances'] } },
      { StringEquals: { 'ecs:CreateAction': 'RunTask' } },
    ]);
  });

  it('on capacity reservations are of those that the configuration names, and none is there without', () => {
    const text = (of: readonly Role[]): string => JSON.stringify(of.map((r) => r.statements));
    expect(text(roles)).not.toMatch(/capacity-?reservation/i);
    const reserving = rolesOf(synthesis({ reservations: RESERVATIONS, services: 'internal' }).main);
    const having = (sid: string) =>
      reserving.flatMap((r) => r.statements.filter((s) => s.sid === sid).map((s) => [r.id.slice(0, 22), s] as const));
    const [[launching, use] = [], ...others] = having('UseReservations');
    expect([launching, others]).toEqual(['EbbtideFunctionsActRol', []]);
    expect(use?.actions).toEqual(['ec2:RunInstances']);
    expect(use?.resources).toEqual(RESERVATIONS.map((id) => expect.stringMatching(`:\\*:capacity-reservation/${id}$`)));
    const asking = having('SeeReservations');
    expect(asking.map(([id]) => id).sort()).toEqual(['EbbtideFunctionsCheckR', 'EbbtideFunctionsPrices']);
    for (const [, s] of asking)
      expect(s).toMatchObject({ actions: ['ec2:DescribeCapacityReservations'], resources: ['*'] });
    // Without the two rights nothing is different.
    const added = ['UseReservations', 'SeeReservations'];
    const rest = reserving.map((r) => ({ ...r, statements: r.statements.filter((s) => !added.includes(s.sid ?? '')) }));
    expect(text(rest)).toBe(text(roles));
  });

  it('to buy has one function', () => {
    const buyers = roles.filter((r) => r.statements.some((s) => s.actions.includes('ec2:CreateFleet')));
    expect(buyers.map((r) => r.id)).toEqual([expect.stringMatching(/^EbbtideFunctionsActRole/)]);
  });

  it('of a task are its checkpoints, files and notes, and nothing else', () => {
    const prefixes = (resources: readonly unknown[]): string[] =>
      resources.map((r) => String(JSON.stringify(r)).replace(/^.*?(\w+\/\*)\W*$/, '$1'));
    const { statements } = role('EbbtideCapacityTaskRole');
    expect(statements.slice(0, -1).map((s) => [[...s.actions].sort(), prefixes(s.resources)])).toEqual([
      [['s3:DeleteObject', 's3:GetObject', 's3:PutObject'], ['checkpoints/*']],
      [['s3:GetObject', 's3:PutObject'], ['work/*']],
      [['s3:GetObject'], ['orders/*']],
      [['s3:PutObject'], ['kept/*']],
    ]);
    expect(statements.at(-1)).toMatchObject({
      actions: ['s3:ListBucket'],
      conditions: { StringLike: { 's3:prefix': ['checkpoints/*', 'work/*'] } },
    });
  });

  it('of the solver are objects under cycle/: it reads no table', () => {
    expect(actions('EbbtideFunctionsSolveRole')).toEqual([
      'logs:CreateLogStream',
      'logs:PutLogEvents',
      's3:GetObject',
      's3:ListBucket',
      's3:PutObject',
    ]);
  });

  it('let nobody but a service of this account take a role', () => {
    for (const { id, trusted } of roles) for (const who of trusted) expect(`${id} ${who}`).toMatch(/\.amazonaws\.com$/);
  });

  it('of the intake and the API never reach EC2 or ECS', () => {
    for (const start of ['EbbtideFunctionsIntakeRole', 'EbbtideFunctionsApiRole'])
      expect(actions(start).filter((a) => /^(?:ec2|ecs|iam):/.test(a))).toEqual([]);
  });

  it('to ask and to submit can be granted', () => {
    const stack = new Stack(newApp(), 'Own');
    const ebbtide = new Ebbtide(stack, 'Ebbtide');
    const [reader, submitter] = ['Reader', 'Submitter'].map(
      (id) => new iam.Role(stack, id, { assumedBy: new iam.AccountRootPrincipal() }),
    );
    if (reader === undefined || submitter === undefined) throw new Error('two roles');
    ebbtide.grantRead(reader);
    ebbtide.grantSubmit(submitter);
    const granted = rolesOf(Template.fromStack(stack)).filter((r) => /^(?:Reader|Submitter)/.test(r.id));
    const calls = (r: Role | undefined): string[] =>
      (r?.statements ?? []).flatMap((s) => s.resources.map((x) => x.replace(/^.*\/v1\//, ''))).sort();
    const [read, submit] = ['Reader', 'Submitter'].map((start) => granted.find((r) => r.id.startsWith(start)));
    expect(calls(read)).toEqual(['GET/*']);
    expect(calls(submit)).toEqual(
      [
        'GET/*',
        'POST/api/jobs',
        'POST/api/jobs/batch',
        'POST/api/jobs/*/cancel',
        'POST/api/jobs/*/release',
        'DELETE/api/jobs/*',
      ].sort(),
    );
  });

  it('cannot be granted where tokens decide: the right would open nothing', () => {
    const userPoolArn = 'arn:aws:cognito-idp:eu-central-1:123456789012:userpool/eu-central-1_abc';
    const { ebbtide } = synthesis({ auth: 'jwt', userPoolArn }).stacks.main;
    const nobody = new iam.AccountPrincipal('123456789012');
    for (const grant of [() => ebbtide.grantRead(nobody), () => ebbtide.grantSubmit(nobody)]) {
      const allowed = expect.stringContaining('grants are for auth: iam');
      expect(grant).toThrow(expect.objectContaining({ code: 'usage', facts: expect.objectContaining({ allowed }) }));
    }
  });
});

describe('the API', () => {
  it('asks every caller for a signature', () => {
    const { main } = synthesis();
    const methods = Object.values(main.findResources('AWS::ApiGateway::Method')) as {
      Properties: Record<string, unknown>;
    }[];
    expect(methods.length).toBeGreaterThan(4);
    for (const { Properties } of methods) expect(Properties['AuthorizationType']).toBe('AWS_IAM');
  });

  it('or for a token of the user pool that was named', () => {
    const userPoolArn = 'arn:aws:cognito-idp:eu-central-1:123456789012:userpool/eu-central-1_abc';
    const { main } = synthesis({ auth: 'jwt', userPoolArn });
    main.resourceCountIs('AWS::Cognito::UserPool', 0);
    main.hasResourceProperties('AWS::ApiGateway::Authorizer', {
      Type: 'COGNITO_USER_POOLS',
      ProviderARNs: [userPoolArn],
    });
    const methods = Object.values(main.findResources('AWS::ApiGateway::Method')) as {
      Properties: Record<string, unknown>;
    }[];
    for (const { Properties } of methods) expect(Properties['AuthorizationType']).toBe('COGNITO_USER_POOLS');
  });

  it('takes no more than it was told to, and writes down who asked', () => {
    synthesis({ requestsPerSecond: 7 }).main.hasResourceProperties('AWS::ApiGateway::Stage', {
      AccessLogSetting: Match.objectLike({ DestinationArn: Match.anyValue() }),
      MethodSettings: [Match.objectLike({ ThrottlingRateLimit: 7, ThrottlingBurstLimit: 14, DataTraceEnabled: false })],
    });
  });

  it('tells the functions whose jobs are whose, where that is asked for', () => {
    const told = (main: Template): unknown[] =>
      Object.values(main.findResources('AWS::Lambda::Function') as Record<string, { Properties: Properties }>).flatMap(
        ({ Properties: { Environment } }) => {
          const text = JSON.stringify(Environment?.Variables['EBB_CONFIG'] ?? null);
          return text === 'null' ? [] : [/ownerIsCaller.*role\/Ops/.test(text)];
        },
      );
    interface Properties {
      readonly Environment?: { readonly Variables: Readonly<Record<string, unknown>> };
    }
    const strict = synthesis({ ownerIsCaller: true, admins: ['arn:aws:iam::111122223333:role/Ops'] }).main;
    expect(new Set(told(strict))).toEqual(new Set([true]));
    expect(new Set(told(synthesis().main))).toEqual(new Set([false]));
  });

  it('answers in the form of the handlers where the gateway itself answers, also when a function died', () => {
    const { main } = synthesis();
    const responses = Object.values(resourcesOf(main, 'AWS::ApiGateway::GatewayResponse')).map(
      ({ Properties }) => Properties as unknown as GatewayResponse,
    );
    const types = responses.map((r) => r.ResponseType);
    expect(types).toEqual(expect.arrayContaining(['DEFAULT_5XX', 'DEFAULT_4XX', 'ACCESS_DENIED', 'INVALID_SIGNATURE']));
    for (const { ResponseType, StatusCode, ResponseParameters, ResponseTemplates } of responses) {
      expect(ResponseParameters['gatewayresponse.header.content-type']).toBe("'application/problem+json'");
      // As the gateway fills it in: a message with quotes comes as a JSON string.
      const body = (ResponseTemplates['application/json'] ?? '')
        .replaceAll('$context.error.messageString', '"no \\"such\\" token"')
        .replaceAll('$context.requestId', 'r-1');
      const problem = schema.problem.parse(JSON.parse(body));
      expect([ResponseType, String(problem.status), problem.requestId]).toEqual([ResponseType, StatusCode, 'r-1']);
    }
  });

  it('sends submissions to intake and everything else to api', () => {
    const { main } = synthesis();
    const resources = main.findResources('AWS::ApiGateway::Resource') as Record<
      string,
      { Properties: { ParentId: { Ref?: string }; PathPart: string } }
    >;
    const pathOf = (id: string | undefined): string => {
      const found = id === undefined ? undefined : resources[id];
      return found === undefined ? '' : `${pathOf(found.Properties.ParentId.Ref)}/${found.Properties.PathPart}`;
    };
    const methods = Object.values(main.findResources('AWS::ApiGateway::Method')) as {
      Properties: { HttpMethod: string; ResourceId: { Ref?: string }; Integration: unknown };
    }[];
    const routes = methods.map(({ Properties: p }) => {
      const target = /EbbtideFunctions(\w+?)[\dA-F]{8}/.exec(JSON.stringify(p.Integration))?.[1];
      return `${p.HttpMethod} ${pathOf(p.ResourceId.Ref)} -> ${target ?? '?'}`;
    });
    expect(routes.sort()).toEqual([
      'ANY  -> Api',
      'ANY /api -> Api',
      'ANY /api/jobs -> Api',
      'ANY /api/jobs/batch -> Api',
      'ANY /api/jobs/{proxy+} -> Api',
      'ANY /api/{proxy+} -> Api',
      'POST /api/jobs -> Intake',
      'POST /api/jobs/batch -> Intake',
    ]);
  });
});
