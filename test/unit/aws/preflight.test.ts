import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { preflight, type Preflight } from '../../../lib/aws/deploying/preflight.ts';

const ACCOUNT = '111122223333';

/** What the account is like; each test turns one knob. Answers are as the services' API references have them. */
interface Knobs {
  keys: 'good' | 'expired';
  bootstrap: number | 'none' | 'denied';
  deployRole: 'granted' | 'denied';
  spotRole: 'there' | 'absent' | 'denied';
  quotas: Record<string, number> | 'denied';
}
const HEALTHY: Knobs = {
  keys: 'good',
  bootstrap: 27,
  deployRole: 'granted',
  spotRole: 'there',
  quotas: { 'L-34B43A08': 640, 'L-1216C47A': 640 },
};

let knobs: Knobs;
let asked: { readonly action: string; readonly authorization: string }[];

const fault = (code: string, message: string, status = 403): readonly [number, string] => [
  status,
  `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
];

function answer(action: string, form: URLSearchParams, body: string): readonly [number, string] {
  switch (action) {
    case 'GetCallerIdentity':
      return knobs.keys === 'good'
        ? [200, `<GetCallerIdentityResult><Account>${ACCOUNT}</Account></GetCallerIdentityResult>`]
        : fault('ExpiredToken', 'The security token included in the request is expired');
    case 'DescribeStacks':
      if (knobs.bootstrap === 'denied') return fault('AccessDenied', 'not authorized: cloudformation:DescribeStacks');
      if (knobs.bootstrap === 'none') return fault('ValidationError', 'Stack with id CDKToolkit does not exist', 400);
      return [
        200,
        `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member><StackName>CDKToolkit</StackName><Outputs><member><OutputKey>BootstrapVersion</OutputKey><OutputValue>${knobs.bootstrap}</OutputValue></member></Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`,
      ];
    case 'AssumeRole':
      return knobs.deployRole === 'granted' &&
        (form.get('RoleArn') ?? '').includes(`role/cdk-hnb659fds-deploy-role-${ACCOUNT}`)
        ? [200, '<AssumeRoleResult/>']
        : fault('AccessDenied', 'User: me is not authorized to perform: sts:AssumeRole');
    case 'GetRole':
      if (knobs.spotRole === 'absent') return fault('NoSuchEntity', 'The role cannot be found.', 404);
      return knobs.spotRole === 'there' ? [200, '<GetRoleResult/>'] : fault('AccessDenied', 'iam:GetRole');
    default: {
      if (knobs.quotas === 'denied') return [400, '{"__type":"AccessDeniedException","Message":"no servicequotas"}'];
      const { QuotaCode = '' } = JSON.parse(body) as { QuotaCode?: string };
      return [200, JSON.stringify({ Quota: { QuotaCode, Value: knobs.quotas[QuotaCode] } })];
    }
  }
}

describe('preflight', () => {
  let server: Server;
  const before = { ...process.env };
  let cloudFormation: CloudFormationClient;

  beforeAll(async () => {
    server = createServer((request, response) => {
      void text(request).then((body) => {
        const form = new URLSearchParams(body);
        const action = form.get('Action') ?? String(request.headers['x-amz-target']).split('.')[1] ?? '';
        asked.push({ action, authorization: request.headers.authorization ?? '' });
        const [status, content] = answer(action, form, body);
        response.writeHead(status, { 'content-type': content.startsWith('{') ? 'application/json' : 'text/xml' });
        response.end(content);
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    for (const service of ['STS', 'IAM', 'SERVICE_QUOTAS']) process.env[`AWS_ENDPOINT_URL_${service}`] = url;
    cloudFormation = new CloudFormationClient({
      endpoint: url,
      region: 'eu-central-1',
      credentials: { accessKeyId: 'AKIA', secretAccessKey: 'secret' },
      maxAttempts: 1,
    });
  });
  afterAll(() => {
    cloudFormation.destroy();
    server.closeAllConnections();
    server.close();
    process.env = before;
  });
  beforeEach(() => {
    knobs = { ...HEALTHY };
    asked = [];
  });
  afterEach(() => expect(asked.every((a) => a.authorization.startsWith('AWS4-HMAC-SHA256'))).toBe(true));

  const look = (over: { account?: string; maxVcpus?: number } = {}): Promise<Preflight> =>
    preflight({
      caller: {
        region: 'eu-central-1',
        credentials: () => Promise.resolve({ accessKeyId: 'AKIA', secretAccessKey: 'secret' }),
      },
      cloudFormation,
      maxVcpus: 256,
      ...over,
    });
  const said = ({ failures, notes }: Preflight): readonly (readonly string[])[] => [
    failures.map((i) => `${i.at}: ${i.message}`),
    notes.map((i) => `${i.at}: ${i.message}`),
  ];

  it('finds nothing in an account that has everything, and changes nothing', async () => {
    expect(await look({ account: ACCOUNT })).toEqual({ account: ACCOUNT, failures: [], notes: [] });
    expect(asked.map((a) => a.action)).toEqual([
      'GetCallerIdentity',
      'DescribeStacks',
      'AssumeRole',
      'GetRole',
      'GetServiceQuota',
      'GetServiceQuota',
    ]);
    // IAM is one for all regions.
    expect(asked[3]?.authorization).toContain('/us-east-1/iam/');
    expect(asked[0]?.authorization).toContain('/eu-central-1/sts/');
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

  it.each([
    ['none', /the CDK is not set up in eu-central-1: run `npx cdk bootstrap aws:\/\/111122223333\/eu-central-1`/],
    [5, /is of version 5, and 6 is needed: run `npx cdk bootstrap/],
  ] as const)('says what to run where the CDK is set up: %s', async (bootstrap, words) => {
    knobs.bootstrap = bootstrap;
    expect(said(await look())[0]).toEqual([expect.stringMatching(words)]);
    expect(asked.map((a) => a.action)).not.toContain('AssumeRole');
  });

  it('only notes what it may not look at', async () => {
    Object.assign(knobs, { bootstrap: 'denied', spotRole: 'denied', quotas: 'denied' });
    const [failures, notes] = said(await look());
    expect(failures).toEqual([]);
    expect(notes).toEqual([
      expect.stringContaining('cloudformation:DescribeStacks'),
      expect.stringContaining('iam:GetRole'),
      expect.stringContaining('L-34B43A08 (spot): could not be looked at (servicequotas:GetServiceQuota)'),
      expect.stringContaining('L-1216C47A (on-demand)'),
    ]);
  });

  it('names the right that is missing to deploy, and on what', async () => {
    knobs.deployRole = 'denied';
    expect(said(await look())[0]).toEqual([
      expect.stringMatching(/^sts:AssumeRole: .*not authorized.*have sts:AssumeRole on .*role\/cdk-hnb659fds-\*/),
    ]);
  });

  it('tells how the role of spot instances is made, once', async () => {
    knobs.spotRole = 'absent';
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
