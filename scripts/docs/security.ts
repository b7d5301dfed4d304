/** docs/security.md: the roles of the synthesised template, with their rights and why. `--check` fails when the page is out of date. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { flattened } from '../../lib/infra/acknowledged.ts';
import { checkedDeployment } from '../../lib/infra/config.ts';
import { FUNCTIONS } from '../../lib/infra/functions.ts';
import { RIGHTS } from '../../lib/infra/rights.ts';
import { ebbtideStacks } from '../../lib/infra/stacks.ts';
import { publish } from './page.ts';

interface Statement {
  readonly Sid?: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: Record<string, Record<string, unknown>>;
}

interface Resource {
  readonly Type: string;
  readonly Properties: Record<string, unknown>;
}

/** Why, for statements of roles that are not functions'. */
const OTHER: Readonly<Record<string, string>> = {
  AskTheModel: 'Forecasts of pools, where a trained model is chosen.',
  JoinCluster: 'The instance joins the cluster, and leaves it.',
  TakeOrders: 'The ECS agent is told what to run, and drains when EC2 takes the instance back.',
  ReportTasks: 'The ECS agent says what became of tasks.',
  TagItself: 'The container instance and its tasks keep their tags.',
  FindEndpoint: 'The ECS agent asks where ECS is.',
  WriteLogs: 'Output of tasks: `ebb logs`.',
  PullImages: 'Images of this account’s registries that jobs name.',
  LogInToEcr: 'Logging in to those registries.',
  ReadEnvironment: 'Values of `env` of a task; the ECS agent fetches them.',
  FindBucket: 'The ECS agent asks where the bucket is.',
  ReadSecrets: 'Secrets of this deployment that jobs name; the ECS agent fetches them.',
  ReadParameters: 'Parameters of this deployment that jobs name; the ECS agent fetches them.',
  Files: 'A task finds its inputs and leaves its outputs.',
  Checkpoints: 'A task saves its work, and finds it again.',
  ReadOrder: 'A task reads its command where that is too long for ECS.',
  Mark: 'A task says that its work is saved.',
  ListOwn: 'A task looks for what is there.',
  SayLook: 'A one-off schedule says that it is time to look.',
  WriteLog: 'Its own log.',
};

/** Statements that the CDK writes have no Sid; they are told by their actions. */
const BY_ACTION: Readonly<Record<string, string>> = {
  'lambda:InvokeFunction': 'The steps of the cycle.',
  'logs:CreateLogDelivery': 'Errors of executions go to the log.',
  'logs:PutResourcePolicy': 'Errors of executions go to the log.',
  'logs:CreateLogStream': 'Traffic that the network refused.',
  'logs:PutLogEvents': 'Traffic that the network refused.',
  'xray:PutTraceSegments': 'Traces.',
  'xray:PutTelemetryRecords': 'Traces.',
  'xray:GetSamplingRules': 'Traces.',
  'sqs:ReceiveMessage': 'Takes what the API and other functions put into the queue.',
  'sqs:ChangeMessageVisibility': 'Takes what the API and other functions put into the queue.',
  'sqs:DeleteMessage': 'Takes what the API and other functions put into the queue.',
  'sqs:SendMessage': 'Puts aside what it failed on for good.',
  'iam:PassRole': 'Gives the network’s log its role.',
};

function resources(): Record<string, Resource> {
  const outdir = mkdtempSync(join(tmpdir(), 'ebb-security-'));
  try {
    const { context } = JSON.parse(readFileSync(new URL('../../cdk.json', import.meta.url), 'utf8')) as {
      context: object;
    };
    const app = new App({ outdir, context: { ...context, 'aws:cdk:bundling-stacks': [] } });
    const { main } = ebbtideStacks(app, checkedDeployment({}, 'docs'));
    const { template } = app.synth().getStackByName(main.stackName) as {
      template: { Resources: Record<string, Resource> };
    };
    return template.Resources;
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

const all = resources();
const idsOf = (type: string): string[] => Object.keys(all).filter((id) => all[id]?.Type === type);
const propertiesOf = (id: string): Record<string, unknown> => all[id]?.Properties ?? {};

/** `EbbtideFunctionsActRoleABCD1234` as `Act`. */
const titleOf = (id: string): string =>
  withoutHash(id)
    .replace(/^Ebbtide(?:Functions|Capacity)?/, '')
    .replace(/(?:Service)?Role$/, '');
const withoutHash = (id: string): string => id.replace(/[\dA-F]{8}$/, '');

function statementsOf(role: string): Statement[] {
  const attached = idsOf('AWS::IAM::Policy')
    .map(propertiesOf)
    .filter((p) => (p['Roles'] as { Ref?: string }[]).some((r) => r.Ref === role))
    .map((p) => p['PolicyDocument']);
  const inline = ((propertiesOf(role)['Policies'] ?? []) as { PolicyDocument: unknown }[]).map((p) => p.PolicyDocument);
  return [...inline, ...attached].flatMap((d) => (d as { Statement: Statement[] }).Statement);
}

/** A resource without what is the same in all of them. */
const short = (resource: unknown): string =>
  flattened(resource)
    .replaceAll(/EbbtideData:ExportsOutput(?:Ref|FnGetAtt)(\w+?)[\dA-F]{8}(?:Arn)?[\dA-F]{8}/g, '<$1>')
    .replaceAll(/arn:(?:<AWS::Partition>|aws):([\w-]+):(?:<AWS::Region>)?:(?:<AWS::AccountId>)?:/g, '$1:')
    .replaceAll(/<Ebbtide(\w+?)[\dA-F]{8}(?:\.Arn|\.GroupId)?>/g, '<$1>');

const code = (text: string): string => `\`${text}\``;
const escaped = (text: string): string => text.replaceAll('|', '\\|');

/** The CDK merges statements on the same resource: all their reasons. */
function whyOfActions(actions: readonly string[]): string | undefined {
  const found = [...new Set(actions.flatMap((a) => BY_ACTION[a] ?? []))];
  return found.length === 0 ? undefined : found.join(' ');
}

function row(statement: Statement): string {
  const { Sid, Action, Resource, Condition } = statement;
  const actions = [Action].flat();
  const right = Object.values(RIGHTS).find((r) => r.sid === Sid);
  const why = right?.why ?? OTHER[Sid ?? ''] ?? whyOfActions(actions);
  if (why === undefined)
    throw new Error(`no reason is written for ${Sid ?? actions.join()}: add it to rights.ts or here`);
  const wide = right !== undefined && 'wide' in right ? ` ${right.wide}` : '';
  const only = Object.entries(Condition ?? {}).flatMap(([operator, keys]) =>
    Object.entries(keys).map(([key, value]) => code(`${key} ${operator} ${[value].flat().map(short).join(', ')}`)),
  );
  const where = [...new Set([Resource].flat().map(short))].map(code).join('<br>');
  return `| ${actions.map(code).join('<br>')} | ${escaped(where)} | ${escaped(only.join('<br>'))} | ${why}${wide} |`;
}

function section(role: string): string {
  const { Description, ManagedPolicyArns = [] } = propertiesOf(role);
  const managed = (ManagedPolicyArns as unknown[]).map((m) => `\n\nAWS’s managed policy ${code(short(m))}.`).join('');
  const rows = statementsOf(role).map(row);
  const table =
    rows.length === 0 ? '' : `\n\n| may | on | only if | why |\n| --- | --- | --- | --- |\n${rows.join('\n')}`;
  return `### ${titleOf(role)}\n\n${(Description as string | undefined) ?? TITLES[titleOf(role)] ?? ''}${managed}${table}\n`;
}

/** Roles that the CDK makes have no description. */
const TITLES: Readonly<Record<string, string>> = {
  CycleMachine: 'The state machine.',
  CycleMachineEvents: 'EventBridge.',
  HttpRestCloudWatch:
    'API Gateway, for its logs: one role per region and account, for which AWS requires its managed policy.',
  NetworkVpcRejectedTrafficIAM: 'The network’s log of refused traffic.',
};

const roles = idsOf('AWS::IAM::Role').sort();
const functions = roles.filter((id) => id.startsWith('EbbtideFunctions'));
const others = roles.filter((id) => !functions.includes(id));
if (functions.length !== Object.keys(FUNCTIONS).length) throw new Error('a function without a role of its own');

await publish(
  new URL('../../docs/security.md', import.meta.url),
  `# Security

<!-- Generated by \`node scripts/docs/security.ts\` from the synthesised template. -->

What a deployment on AWS may do, who may use it, and what protects the data. The tables below are the template's: a test
compares them.

## In short

- **Who gets in.** Every request to the API is signed with AWS credentials (\`auth: iam\`; \`grantRead\` and \`grantSubmit\` give the
  rights), or bears a token of your Cognito user pool (\`auth: jwt\`). With tokens every user of the pool may read, submit and
  cancel. The caller is recorded with each job and cancellation; \`ownerIsCaller\` lets only callers and administrators cancel
  ([deploying](deploy.md#whose-job-it-is)). Whoever may submit runs programs of their choice with the task role: submitting is as powerful as that role.
- **Instances** let nobody in: no ingress rule, no key pair, no Systems Manager agent. Metadata only by IMDSv2 and only one hop
  away, so that containers do not reach the instance's credentials. Volumes are encrypted. Images are AWS's current ones for ECS,
  resolved at each launch. In a new VPC instances have public addresses, because a NAT gateway costs more than they do.
- **Tasks** get the task role and nothing else. In the deployment's bucket it reads and writes \`checkpoints/\` and \`work/\` (and lists them),
  reads \`orders/\` (commands and environments too long for ECS), and writes marks under \`kept/\`. All tasks of a
  deployment share it. So any task can read and overwrite files and checkpoints of another job, can read that job's long command and
  environment, and can forge its progress; names below the last two follow from the attempt's id, which is no secret. What a task used is
  said by its own log, where it can forge its own use and no other's. Credentials
  per task would need a role or a session per attempt, which ECS does not give: keep apart what must not meet, in two deployments.
  Privileged containers are refused.
- **Data** is encrypted at rest (table, bucket, queues, volumes, logs) and in transit (bucket, queues and topic refuse anything but
  TLS). The table can be restored to any second of 35 days, the bucket's objects for 7 ([how](deploy.md#restore)). Both survive their stack, as the
  log of tasks does (\`keepData\`).
- **Rights.** One role per function. No action is a pattern. \`*\` as a resource is only where AWS has no narrower one; each is
  explained below. Instances can be bought with the deployment's tag only, in its own subnets, and of launch templates from its own only;
  they are ended only if they bear that tag. Four roles can be passed: the instances' to EC2, the tasks' two to ECS, and the schedules' to EventBridge Scheduler; no
  other, and to nothing else.
- **Secrets.** No function has one in its environment. A job names its secrets ([secrets](secrets.md)); the agent of ECS fetches them with the
  execution role, limited to names that begin with \`ebbtide/NAME/\`. Values of a job's \`env\` are no secrets: they are stored with the job.
- **Logs** end after \`retentionDays\`. The log of the state machine has no data of jobs.

cdk-nag's AwsSolutions pack finds nothing that has no written reason (\`test/infra/nag.suite.ts\`).

## Not covered

- A web ACL, a private API, keys of your own (KMS), VPC endpoints for ECS: not made; the construct's parts are public, so that
  your app can add them.
- Tasks that attack the kernel of their instance: containers of several jobs share one. Use a deployment per trust domain.
- The rights of whoever deploys: those of the CDK's bootstrap roles.
- These policies were compared with AWS's Service Authorization Reference and rehearsed on LocalStack, which does not enforce them.
- AWS documents the condition keys \`ec2:LaunchTemplate\`, \`ec2:Owner\` and \`ec2:MetadataHttpTokens\` for \`RunInstances\`, but not for the \`RunInstances\` that
  CreateFleet makes. So they bind only where EC2 sets them (\`...IfExists\`); what binds always are resources and the tag of the request. A program that had taken over the
  act function could therefore launch an instance of another image, in the deployment's subnets, with its tag and with no role but the instances'.

## Functions

Each has a log of its own. With \`traces: true\` those of the API and of the cycle may write to X-Ray besides (\`xray:PutTraceSegments\`, \`xray:PutTelemetryRecords\`, on \`*\`:
X-Ray has no resource to name); by default none may.

${functions.map(section).join('\n')}
## Everything else

${others.map(section).join('\n')}`,
);
