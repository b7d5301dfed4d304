import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CreateLaunchTemplateCommand, EC2Client } from '@aws-sdk/client-ec2';
import { preflight, type Configured, type Preflight } from '../../../../lib/drivers/aws/preflight/preflight.ts';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import { trace, START_MS } from '../../../contract/fleet.ts';
import { startAwsDouble, type AwsDouble } from '../../../../scripts/aws-double/double.ts';
import { poolKey } from '../../../../lib/domain/pool.ts';
import { pool } from '../../../support/builders.ts';

const ACCOUNT = '111122223333';
const QUALIFIED = 'cdk-hnb659fds';
/** Whose keys a request is signed with. */
const PERSON = 'AKIAPERSON';
const DEPLOYER = 'ASIADEPLOY';

/** What the account is like; each test turns one knob. Answers are as the services' API references have them. */
interface Knobs {
  keys: 'good' | 'expired';
  arn: string;
  bootstrap: number | 'none' | 'denied';
  /** Roles that may not be taken. */
  refused: string[];
  /** Roles that IAM does not have, and whether it may be asked at all. */
  absentRoles: string[];
  iam: 'open' | 'denied';
  bucket: 200 | 403 | 404;
  /** Answers of the simulator that are not "allowed", by action. */
  verdicts: Record<string, string>;
  quotas: Record<string, number> | 'denied';
  concurrency: number | 'denied';
  /** Whether the stack is there, and whether the role of the function that launches may be taken. */
  stack: 'none' | 'there' | 'denied';
  isActRoleTaken: boolean;
  /** The stack has no subnets of its own. */
  isDefaultVpc: boolean;
  /** Resources that the simulator does not allow the role to launch. */
  unlaunchable: string[];
}
const HEALTHY: Knobs = {
  keys: 'good',
  arn: `arn:aws:iam::${ACCOUNT}:user/me`,
  bootstrap: 27,
  refused: [],
  absentRoles: [],
  iam: 'open',
  bucket: 200,
  verdicts: {},
  quotas: { 'L-34B43A08': 640, 'L-1216C47A': 640 },
  concurrency: 1000,
  stack: 'none',
  isActRoleTaken: false,
  isDefaultVpc: false,
  unlaunchable: [],
};
const CONFIG: Configured = {
  name: 'ebbtide',
  vpc: 'new',
  zones: 2,
  families: ['c5'],
  reservations: [],
  auth: 'iam',
  services: 'off',
  maxVcpus: 256,
  cycleConcurrency: 4,
};
const ACT_ROLE = 'Ebbtide-EbbtideFunctionsActRole0A1B2C3D-x';

/** The market of the contract, c5.large in four zones, and m5.large in the first of them. */
const withM5: typeof trace = {
  ...trace,
  pools: [...trace.pools, pool({ type: 'm5.large', zone: trace.pools.map((p) => p.zone).sort()[0] ?? '' })],
};

let knobs: Knobs;
let asked: { readonly action: string; readonly authorization: string; readonly form: URLSearchParams }[];

const fault = (code: string, message: string, status = 403): readonly [number, string] => [
  status,
  `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
];
const jsonFault = (code: string, message: string): readonly [number, string] => [
  400,
  JSON.stringify({ __type: code, message }),
];

const EXPLICIT = '<EvalDecision>explicitDeny</EvalDecision>';
const IMPLICIT = '<EvalDecision>implicitDeny</EvalDecision>';
/** Lists within a result have members of their own. */
const STATEMENTS =
  '<MatchedStatements><member><SourcePolicyId>p</SourcePolicyId><EndPosition><Line>9</Line></EndPosition></member></MatchedStatements>';
const MISSING = '<MissingContextValues><member>iam:PermissionsBoundary</member></MissingContextValues>';

/** In pages of ten, the most that must be read on. */
function simulated(form: URLSearchParams): readonly [number, string] {
  const actions = [...form].flatMap(([key, value]) => (key.startsWith('ActionNames.member.') ? [value] : []));
  const from = Number(form.get('Marker') ?? 0);
  const results = actions.slice(from, from + 10).map((action) => {
    const verdict = knobs.verdicts[action] ?? '<EvalDecision>allowed</EvalDecision><MissingContextValues/>';
    return `<member>${STATEMENTS}<EvalActionName>${action}</EvalActionName><EvalResourceName>*</EvalResourceName>${verdict}</member>`;
  });
  const rest = from + 10 < actions.length;
  const next = rest
    ? `<IsTruncated>true</IsTruncated><Marker>${from + 10}</Marker>`
    : '<IsTruncated>false</IsTruncated>';
  return [
    200,
    `<SimulatePrincipalPolicyResponse><SimulatePrincipalPolicyResult>${next}<EvaluationResults>${results.join('')}</EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>`,
  ];
}

/** A launch by the function's role: a result of the action, and below it one for each resource. */
function launchable(form: URLSearchParams): readonly [number, string] {
  const resources = [...form].flatMap(([key, value]) => (key.startsWith('ResourceArns.member.') ? [value] : []));
  const isRefused = (arn: string): boolean => knobs.unlaunchable.some((kind) => arn.includes(`:${kind}/`));
  const each = resources.map(
    (arn) =>
      `<member><EvalResourceName>${arn}</EvalResourceName><EvalResourceDecision>${isRefused(arn) ? 'implicitDeny' : 'allowed'}</EvalResourceDecision></member>`,
  );
  const decision = resources.some(isRefused) ? 'implicitDeny' : 'allowed';
  return [
    200,
    `<EvaluationResults><member><EvalActionName>ec2:RunInstances</EvalActionName><EvalDecision>${decision}</EvalDecision><ResourceSpecificResults>${each.join('')}</ResourceSpecificResults></member></EvaluationResults>`,
  ];
}

let templateId = 'lt-0';

function answer(action: string, form: URLSearchParams, body: string, key: string): readonly [number, string] {
  switch (action) {
    case 'HEAD':
      return [knobs.bucket, ''];
    case 'GetCallerIdentity':
      return knobs.keys === 'good'
        ? [
            200,
            `<GetCallerIdentityResult><Arn>${knobs.arn}</Arn><Account>${ACCOUNT}</Account></GetCallerIdentityResult>`,
          ]
        : fault('ExpiredToken', 'The security token included in the request is expired');
    case 'GetParameter': {
      const { Name } = JSON.parse(body) as { Name?: string };
      if (knobs.bootstrap === 'denied' && key === PERSON)
        return jsonFault('AccessDeniedException', 'no ssm:GetParameter');
      if (knobs.bootstrap === 'none' || Name !== '/cdk-bootstrap/hnb659fds/version')
        return jsonFault('ParameterNotFound', '');
      const Value = knobs.bootstrap === 'denied' ? '27' : String(knobs.bootstrap);
      return [200, JSON.stringify({ Parameter: { Name, Type: 'String', Value } })];
    }
    case 'account-settings':
      return knobs.concurrency === 'denied'
        ? jsonFault('AccessDeniedException', 'no lambda:GetAccountSettings')
        : [200, JSON.stringify({ AccountLimit: { ConcurrentExecutions: knobs.concurrency } })];
    case 'DescribeStackResources': {
      if (knobs.stack === 'denied') return fault('AccessDenied', 'cloudformation:DescribeStackResources');
      if (knobs.stack === 'none') return fault('ValidationError', 'Stack with id Ebbtide does not exist', 400);
      const made = [
        ['IAM::Role', 'EbbtideFunctionsActRole0A1B2C3D', ACT_ROLE],
        ['IAM::Policy', 'EbbtideFunctionsActRoleDefaultPolicy0A1B2C3D', 'policy'],
        ['EC2::LaunchTemplate', 'EbbtideCapacityTemplate0A1B2C3D', templateId],
        ['EC2::SecurityGroup', 'EbbtideNetworkInstances0A1B2C3D', 'sg-1'],
        ...(knobs.isDefaultVpc ? [] : [['EC2::Subnet', 'EbbtideNetworkVpcinstancesSubnet1Subnet0A1B2C3D', 'subnet-1']]),
      ];
      const members = made.map(
        ([type = '', logical = '', id = '']) =>
          `<member><ResourceType>AWS::${type}</ResourceType><LogicalResourceId>${logical}</LogicalResourceId><PhysicalResourceId>${id}</PhysicalResourceId></member>`,
      );
      return [200, `<DescribeStackResourcesResult>${members.join('')}</DescribeStackResourcesResult>`];
    }
    case 'AssumeRole': {
      if (form.get('RoleArn')?.endsWith(ACT_ROLE) === true && knobs.isActRoleTaken) {
        return [
          200,
          '<AssumeRoleResult><Credentials><AccessKeyId>ASIAACT</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken></Credentials></AssumeRoleResult>',
        ];
      }
      const [, role = ''] =
        /role\/cdk-hnb659fds-(.*)-role-111122223333-eu-central-1$/.exec(form.get('RoleArn') ?? '') ?? [];
      return role === '' || knobs.refused.includes(role)
        ? fault('AccessDenied', 'User: me is not authorized to perform: sts:AssumeRole')
        : [
            200,
            `<AssumeRoleResult><Credentials><AccessKeyId>${role === 'deploy' ? DEPLOYER : 'ASIAOTHER'}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken></Credentials></AssumeRoleResult>`,
          ];
    }
    case 'GetRole': {
      if (knobs.iam === 'denied') return fault('AccessDenied', 'iam:GetRole');
      const name = form.get('RoleName') ?? '';
      return knobs.absentRoles.some((r) => name.includes(r))
        ? fault('NoSuchEntity', 'The role cannot be found.', 404)
        : [
            200,
            `<GetRoleResult><Role><Path>/x/</Path><Arn>arn:aws:iam::${ACCOUNT}:role/x/${name}</Arn></Role></GetRoleResult>`,
          ];
    }
    case 'SimulatePrincipalPolicy':
      if (knobs.iam === 'denied') return fault('AccessDenied', 'iam:SimulatePrincipalPolicy');
      return form.get('PolicySourceArn')?.endsWith(ACT_ROLE) === true ? launchable(form) : simulated(form);
    default: {
      if (knobs.quotas === 'denied') return jsonFault('AccessDeniedException', 'no servicequotas');
      const { QuotaCode = '' } = JSON.parse(body) as { QuotaCode?: string };
      return [200, JSON.stringify({ Quota: { QuotaCode, Value: knobs.quotas[QuotaCode] } })];
    }
  }
}

describe('preflight', () => {
  let server: Server;
  let double: AwsDouble;
  let ec2: EC2Client;
  const before = { ...process.env };

  beforeAll(async () => {
    server = createServer((request, response) => {
      void text(request).then((body) => {
        const form = new URLSearchParams(body);
        const target = String(request.headers['x-amz-target']).split('.')[1];
        const path = /account-settings/.exec(request.url ?? '')?.[0];
        const action = request.method === 'HEAD' ? 'HEAD' : (path ?? form.get('Action') ?? target ?? '');
        const authorization = request.headers.authorization ?? '';
        asked.push({ action, authorization, form });
        const key = /Credential=(\w+)\//.exec(authorization)?.[1] ?? '';
        const [status, content] = answer(action, form, body, key);
        response.writeHead(status, { 'content-type': content.startsWith('{') ? 'application/json' : 'text/xml' });
        response.end(content);
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    // Of a service, and of all that have none of their own.
    for (const name of ['AWS_ENDPOINT_URL_STS', 'AWS_ENDPOINT_URL']) process.env[name] = url;
    double = await startAwsDouble({ trace: withM5, from: START_MS, speed: 1, region: 'eu-central-1' });
    const credentials = { accessKeyId: PERSON, secretAccessKey: 'secret' };
    ec2 = new EC2Client({ endpoint: double.url, region: 'eu-central-1', credentials, maxAttempts: 1 });
  });
  afterAll(async () => {
    ec2.destroy();
    await double.close();
    server.closeAllConnections();
    server.close();
    process.env = before;
  });
  beforeEach(() => {
    knobs = structuredClone(HEALTHY);
    asked = [];
    double.knobs.set({ faults: [], defaultVpc: true });
  });
  afterEach(() => expect(asked.every((a) => a.authorization.startsWith('AWS4-HMAC-SHA256'))).toBe(true));

  const look = (over: Partial<Configured> = {}): Promise<Preflight> =>
    preflight({
      caller: {
        region: 'eu-central-1',
        credentials: () => Promise.resolve({ accessKeyId: PERSON, secretAccessKey: 'secret' }),
      },
      ec2,
      config: { ...CONFIG, ...over },
      imageParameter: '/aws/service/ecs/image_id',
      ec2Endpoint: double.url,
    });
  const said = ({ failures, notes }: Preflight): readonly (readonly string[])[] => [
    failures.map((i) => `${i.at}: ${i.message}`),
    notes.map((i) => `${i.at}: ${i.message}`),
  ];
  const zones = (): string[] => double.subnets.map((s) => s.zone).sort();

  it('finds nothing in an account that has everything, and changes nothing', async () => {
    const began = double.calls.length;
    expect(await look({ account: ACCOUNT })).toEqual({ account: ACCOUNT, failures: [], notes: [] });
    const actions = asked.map((a) => a.action);
    expect(actions.filter((a) => a !== 'SimulatePrincipalPolicy')).toEqual([
      ...['GetCallerIdentity', 'AssumeRole', 'AssumeRole', 'GetParameter', 'HEAD'],
      ...['GetRole', 'DescribeStackResources', 'GetRole', 'GetServiceQuota', 'GetServiceQuota', 'account-settings'],
    ]);
    const called = double.calls.slice(began).map((c) => c.action);
    expect(new Set(called)).toEqual(new Set(['DescribeSubnets', 'DescribeInstanceTypeOfferings', 'RunInstances']));
    // IAM is one for all regions.
    expect(asked.find((a) => a.action === 'GetRole')?.authorization).toContain('/us-east-1/iam/');
    expect(asked[0]?.authorization).toContain('/eu-central-1/sts/');
  });

  it('looks at capacity reservations: what stops, and what is to be known', async () => {
    const ids = double.reservations;
    const [expired = '', open = ''] = ['calm', 'spiky'].map((zone) => ids.get(poolKey('c5.large', zone, 'reserved')));
    double.knobs.set({
      reservations: {
        'c5.large/calm/reserved': { state: 'expired' },
        'c5.large/spiky/reserved': { instanceMatchCriteria: 'open' },
      },
    });
    const config = { zones: 4, reservations: [expired, open] };
    const wrong = said(await look(config));
    expect(wrong).toEqual([[`reservations: ${expired} is expired; leave it out, or name one that is active`], []]);
    expect(said(await look({ ...config, reservations: [open] }))).toEqual([
      [],
      [expect.stringMatching(`reservations: ${open} is open: .*make it targeted`)],
    ]);
    double.knobs.set({ reservations: {} });
  });

  it('says that credentials have expired, and asks nothing more', async () => {
    knobs.keys = 'expired';
    expect(said(await look())).toEqual([[expect.stringMatching(/^credentials: .*ExpiredToken.*aws sso login/)], []]);
    expect(asked).toHaveLength(1);
  });

  it('names the key where the credentials are of another account', async () => {
    expect(said(await look({ account: '999999999999' }))[0]).toEqual([
      expect.stringMatching(/^account: is 999999999999, .*111122223333.*AWS_PROFILE/),
    ]);
  });

  it('says that AWS cannot be reached, and what to look at', async () => {
    const url = process.env['AWS_ENDPOINT_URL_STS'];
    process.env['AWS_ENDPOINT_URL_STS'] = 'http://127.0.0.1:1/';
    const error = await look().catch((e: unknown) => e);
    process.env['AWS_ENDPOINT_URL_STS'] = url;
    expect(error).toBeInstanceOf(EbbError);
    expect(error).toMatchObject({ code: 'aws.unavailable', facts: { next: expect.stringContaining('region') } });
  });

  describe('about what is to be bought', () => {
    it('names families that the region lacks, with the key and what to do, as the deployment does', async () => {
      expect(said(await look({ families: ['c5', 'm99'] }))[0]).toEqual([
        `families: m99 is offered in none of ${zones().slice(0, 2).join(', ')}; leave it out, or deploy to another region`,
      ]);
      expect(said(await look({ families: ['m99', 'r99'] }))[0]).toEqual([
        expect.stringMatching(/^families: none of m99, r99 is offered in .*; choose others, or another region$/),
      ]);
    });

    it('says which zones lack a family that others have', async () => {
      const [, second] = zones();
      expect(said(await look({ families: ['c5', 'm5'] }))).toEqual([
        [],
        [`families: ${second} has no m5: other zones have`],
      ]);
    });

    it('names subnets that are elsewhere', async () => {
      const [one, two] = double.subnets;
      const vpc = { id: 'vpc-1', subnets: { [one?.zone ?? '']: two?.id ?? '' } };
      expect(said(await look({ vpc }))[0]).toEqual([
        `vpc.subnets.${one?.zone}: ${two?.id} is in ${two?.zone}; give a subnet of ${one?.zone}`,
      ]);
      const absent = { id: 'vpc-1', subnets: { [one?.zone ?? '']: 'subnet-0a1b2c3d' } };
      expect(said(await look({ vpc: absent }))[0]).toEqual([
        expect.stringMatching(
          /^vpc\.subnets: .*'subnet-0a1b2c3d' does not exist; give subnets of this account and region$/,
        ),
      ]);
    });

    it('says that there is no default VPC where that is to be used, and asks all zones where it is not', async () => {
      expect(said(await look({ vpc: 'default' }))).toEqual([[], []]);
      double.knobs.set({ defaultVpc: false });
      expect(said(await look({ vpc: 'default' }))[0]).toEqual([
        'vpc: this region has no default VPC; set vpc to new, or to the id and subnets of one that you have',
      ]);
      expect(said(await look())).toEqual([[], []]);
      expect(double.calls.at(-3)?.action).not.toBe('DescribeAvailabilityZones');
      expect(double.calls.map((c) => c.action)).toContain('DescribeAvailabilityZones');
    });

    it('takes nothing for good that it may not ask', async () => {
      double.knobs.set({ faults: [{ action: 'DescribeSubnets', code: 'UnauthorizedOperation', status: 403 }] });
      expect(said(await look())).toEqual([
        [],
        [expect.stringMatching(/^families, vpc: could not be asked, the deployment will: .*UnauthorizedOperation/)],
      ]);
      double.knobs.set({
        faults: [{ action: 'DescribeInstanceTypeOfferings', code: 'UnauthorizedOperation', status: 403 }],
      });
      expect(said(await look())[1]).toEqual([expect.stringMatching(/^families, vpc: could not be asked/)]);
    });

    it('says that the region is off', async () => {
      double.knobs.set({ faults: [{ action: 'DescribeInstanceTypeOfferings', code: 'OptInRequired', status: 401 }] });
      expect(said(await look())[0]).toEqual([expect.stringMatching(/^region: EC2 refuses/)]);
    });
  });

  describe('about launches', () => {
    const refuses = (message: string): void =>
      double.knobs.set({
        faults: [{ action: 'RunInstances', code: 'UnauthorizedOperation', message, status: 403, times: 2 }],
      });

    it('names what a policy of the organisation forbids', async () => {
      refuses(
        'You are not authorized to perform this operation. User: me is not authorized to perform: ec2:RunInstances on resource: x with an explicit deny in a service control policy. Encoded authorization failure message: 8sJ2k',
      );
      expect(said(await look())[0]).toEqual([
        expect.stringMatching(
          /^ec2:RunInstances: c5\.large \(on-demand\) may not be launched, by a policy of your organisation/,
        ),
        expect.stringMatching(
          /^families: c5\.large \(spot\).*explicit deny in a service control policy\.; leave it out/,
        ),
      ]);
    });

    it('takes a right that only the asker lacks for a question that was not answered', async () => {
      refuses('You are not authorized to perform this operation. Encoded authorization failure message: 8sJ2k');
      expect(said(await look())).toEqual([
        [],
        [
          'ec2:RunInstances: whether c5.large (on-demand), c5.large (spot) may be launched could not be asked: UnauthorizedOperation: You are not authorized to perform this operation.',
        ],
      ]);
    });
  });

  describe('about the CDK’s roles', () => {
    it.each([
      [
        'none',
        /^bootstrap: the CDK is not set up in eu-central-1: run `npx cdk bootstrap aws:\/\/111122223333\/eu-central-1`/,
      ],
      [5, /^bootstrap: is of version 5, and 6 is needed: run `npx cdk bootstrap/],
    ] as const)('says what to run where the CDK is set up: %s', async (bootstrap, words) => {
      knobs.bootstrap = bootstrap;
      expect(said(await look())[0]).toEqual([expect.stringMatching(words)]);
    });

    it('asks whether you could set it up, if nobody has', async () => {
      Object.assign(knobs, { bootstrap: 'none', refused: ['deploy', 'file-publishing'] });
      knobs.verdicts = { 'iam:CreateRole': IMPLICIT, 'iam:PutRolePolicy': IMPLICIT };
      expect(said(await look())).toEqual([
        [
          expect.stringMatching(/^bootstrap: /),
          expect.stringMatching(
            /^your rights: lacks iam:CreateRole, iam:PutRolePolicy: no policy allows it .*npx cdk bootstrap/,
          ),
        ],
        [],
      ]);
      expect(asked.find((a) => a.action === 'SimulatePrincipalPolicy')?.form.get('PolicySourceArn')).toBe(HEALTHY.arn);
    });

    it.each([
      [`arn:aws:sts::${ACCOUNT}:assumed-role/Admin/me`, `arn:aws:iam::${ACCOUNT}:role/x/Admin`, []],
      [
        `arn:aws:iam::${ACCOUNT}:root`,
        undefined,
        [expect.stringMatching(/^your rights: .*could not be asked of arn:.*:root/)],
      ],
    ])('of a session its role is asked about, and of others nothing: %s', async (arn, principal, notes) => {
      Object.assign(knobs, { bootstrap: 'none', arn });
      expect(said(await look())[1]).toEqual(notes);
      expect(asked.find((a) => a.action === 'SimulatePrincipalPolicy')?.form.get('PolicySourceArn')).toBe(principal);
    });

    it.each(['deploy', 'file-publishing'])('names the right that is missing to take one: %s', async (role) => {
      knobs.refused = [role];
      expect(said(await look())[0]).toEqual([
        expect.stringMatching(
          `^sts:AssumeRole: you may not take arn:aws:iam::${ACCOUNT}:role/${QUALIFIED}-${role}-role-.*not authorized.*have sts:AssumeRole on .*role/cdk-hnb659fds-\\*`,
        ),
      ]);
    });

    it('asks for the one that looks up only where something is looked up, which can be done without it', async () => {
      knobs.refused = ['lookup'];
      expect(said(await look())).toEqual([[], []]);
      expect(said(await look({ vpc: 'default' }))).toEqual([
        [],
        [expect.stringMatching(/^sts:AssumeRole: you may not take .*lookup-role/)],
      ]);
    });

    it('reads the version as the deploying role where you may not', async () => {
      knobs.bootstrap = 'denied';
      expect(said(await look())).toEqual([[], []]);
      knobs.refused = ['deploy'];
      expect(said(await look())[1]).toEqual([
        expect.stringMatching(/^bootstrap: its version could not be asked \(ssm:GetParameter on \/cdk-bootstrap/),
      ]);
    });

    it('looks for the bucket and for CloudFormation’s role, which can be gone though the rest is there', async () => {
      Object.assign(knobs, { bucket: 404, absentRoles: ['cfn-exec'] });
      expect(said(await look())[0]).toEqual([
        expect.stringMatching(
          /^bootstrap: cdk-hnb659fds-assets-111122223333-eu-central-1, for the code, is not there: delete/,
        ),
        expect.stringMatching(
          /^cdk-hnb659fds-cfn-exec-role-111122223333-eu-central-1: is not there: run `npx cdk bootstrap/,
        ),
      ]);
      Object.assign(knobs, { bucket: 403, absentRoles: [] });
      expect(said(await look())).toEqual([[], [expect.stringMatching(/^bootstrap: whether .* could not be asked/)]]);
    });
  });

  describe('about the rights that CloudFormation has', () => {
    it('names each that is lacking, and who keeps it from the role', async () => {
      knobs.verdicts = {
        'iam:CreateRole': IMPLICIT,
        'iam:PassRole': `${IMPLICIT}<PermissionsBoundaryDecisionDetail><AllowedByPermissionsBoundary>false</AllowedByPermissionsBoundary></PermissionsBoundaryDecisionDetail>`,
        'lambda:CreateFunction': EXPLICIT,
        'sqs:CreateQueue': EXPLICIT,
        'dynamodb:CreateTable': `${EXPLICIT}<OrganizationsDecisionDetail><AllowedByOrganizations>false</AllowedByOrganizations></OrganizationsDecisionDetail>`,
      };
      const [failures, notes] = said(await look());
      expect(notes).toEqual([]);
      expect(failures?.toSorted()).toEqual(
        [
          'dynamodb:CreateTable: a policy of your organisation does not allow it',
          'iam:CreateRole: no policy allows it on all resources',
          'iam:PassRole: the permission boundary does not allow it',
          'lambda:CreateFunction, sqs:CreateQueue: a policy denies it',
        ].map((words) =>
          expect.stringContaining(`cfn-exec-role-${ACCOUNT}-eu-central-1: lacks ${words}; CloudFormation`),
        ),
      );
    });

    it('asks about a new VPC only where one is made', async () => {
      knobs.verdicts = { 'ec2:CreateVpc': IMPLICIT };
      expect(said(await look())[0]).toEqual([expect.stringContaining('lacks ec2:CreateVpc: ')]);
      expect(said(await look({ vpc: 'default' }))[0]).toEqual([]);
    });

    it('asks about the region that a condition would see: of IAM another one', async () => {
      await look();
      const contexts = asked
        .filter((a) => a.action === 'SimulatePrincipalPolicy')
        .map(({ form }) => [
          form.get('ActionNames.member.1')?.split(':')[0] === 'iam',
          form.get('ContextEntries.member.1.ContextKeyValues.member.1'),
        ]);
      expect(new Set(contexts.map(String))).toEqual(new Set(['true,us-east-1', 'false,eu-central-1']));
    });

    it('only notes what depends on a condition, and what it may not ask', async () => {
      knobs.verdicts = { 'iam:CreateRole': `${EXPLICIT}${MISSING}` };
      expect(said(await look())).toEqual([
        [],
        [expect.stringMatching(/lacks iam:CreateRole: it depends on conditions/)],
      ]);
      Object.assign(knobs, { iam: 'denied', quotas: 'denied' });
      const [failures, notes] = said(await look());
      expect(failures).toEqual([]);
      expect(notes).toEqual([
        expect.stringMatching(/cfn-exec-role.*rights could not be asked \(iam:SimulatePrincipalPolicy\): AccessDenied/),
        expect.stringContaining('AWSServiceRoleForEC2Spot: could not be read (iam:GetRole)'),
        expect.stringContaining('L-34B43A08 (spot): could not be read (servicequotas:GetServiceQuota)'),
        expect.stringContaining('L-1216C47A (on-demand)'),
      ]);
    });
  });

  describe('about the function that launches, once it is deployed', () => {
    const denied = (times: number) =>
      double.knobs.set({
        faults: [
          { action: 'RunInstances', code: 'UnauthorizedOperation', message: 'not authorized', status: 403, times },
        ],
      });
    beforeAll(async () => {
      const LaunchTemplateData = { ImageId: 'ami-0123456789abcdef0' };
      const made = await ec2.send(new CreateLaunchTemplateCommand({ LaunchTemplateName: 'hosts', LaunchTemplateData }));
      templateId = made.LaunchTemplate?.LaunchTemplateId ?? '';
    });

    it('asks as its own role where that may be taken, and launches nothing', async () => {
      Object.assign(knobs, { stack: 'there', isActRoleTaken: true });
      expect(said(await look())).toEqual([[], []]);
      expect(asked.map((a) => a.action)).toContain('DescribeStackResources');
      // The first two are those of the person who asks.
      denied(3);
      const [failures] = said(await look());
      expect(failures?.at(-1)).toMatch(/^launches by the act function: a dry run as .*ActRole.* UnauthorizedOperation/);
    });

    it('asks IAM where it may not be taken', async () => {
      knobs.stack = 'there';
      expect(said(await look())).toEqual([[], []]);
      knobs.unlaunchable = ['image', 'volume'];
      Object.assign(knobs, { isActRoleTaken: true, isDefaultVpc: true });
      expect(said(await look())[0]).toEqual([
        expect.stringMatching(/lacks ec2:RunInstances on arn:aws:ec2:eu-central-1::image\/.*, arn:.*:volume\/\*/),
      ]);
    });

    it('says what to look at where nothing may be asked', async () => {
      Object.assign(knobs, { stack: 'there', iam: 'denied' });
      expect(said(await look())[1]).toContainEqual(
        expect.stringMatching(/^launches by the act function: could not be asked: .*after the first job.*`denied`/),
      );
      knobs.stack = 'denied';
      expect(said(await look())[1]).toContainEqual(expect.stringContaining('(cloudformation:DescribeStackResources)'));
    });
  });

  it('compares what the account may run at once with what a cycle takes', async () => {
    knobs.concurrency = 10;
    const small = said(await look());
    expect(small).toEqual([[], [expect.stringMatching(/^Lambda concurrency: is 10 .*want 12 together.*It works/)]]);
    expect(said(await look({ cycleConcurrency: 10 }))[0]).toEqual([
      expect.stringMatching(/^Lambda concurrency: is 10 .*a cycle takes 10 .*lower cycleConcurrency.*L-B99A9384/),
    ]);
    knobs.concurrency = 'denied';
    expect(said(await look())[1]).toEqual([expect.stringContaining('(lambda:GetAccountSettings)')]);
  });

  it('tells how the role of spot instances is made, once', async () => {
    knobs.absentRoles = ['AWSServiceRoleForEC2Spot'];
    const [failures, notes] = said(await look());
    expect(failures).toEqual([]);
    expect(notes).toEqual([
      expect.stringContaining('create-service-linked-role --aws-service-name spot.amazonaws.com'),
    ]);
  });

  it('compares quotas with maxVcpus, and fails where nothing could start', async () => {
    knobs.quotas = { 'L-34B43A08': 0, 'L-1216C47A': 5 };
    const small = said(await look({ maxVcpus: 64 }));
    expect(small[0]).toEqual([]);
    expect(small[1]?.[1]).toMatch(
      /is 5 vCPUs, and maxVcpus is 64: lower maxVcpus.*--quota-code L-1216C47A --desired-value 64/,
    );
    knobs.quotas = { 'L-34B43A08': 0, 'L-1216C47A': 0 };
    expect(said(await look())[0]).toEqual([expect.stringMatching(/^EC2 quotas: are 0 for spot and for on-demand/)]);
  });
});
