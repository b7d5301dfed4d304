/** docs/reference/rights.md: the roles of the synthesised template, with their rights and why. */
import { flattened } from '../../lib/infra/acknowledged.ts';
import { FUNCTIONS } from '../../lib/infra/functions.ts';
import { RIGHTS } from '../../lib/infra/rights.ts';
import type { Resources } from './template.ts';

interface Statement {
  readonly Sid?: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: Record<string, Record<string, unknown>>;
}

/** Reasons of statements in roles other than those of functions. */
const OTHER: Readonly<Record<string, string>> = {
  StartServices: 'Starts the controller of services; only where `services` are turned on.',
  AskTheModel: 'Forecasts of pools, where a trained model is chosen.',
  JoinCluster: 'The instance joins the cluster, and leaves it.',
  TakeOrders: 'The ECS agent gets tasks, and drains when EC2 takes the instance back.',
  ReportTasks: 'The ECS agent reports the ends of tasks.',
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
  ListOwn: 'A task lists existing files.',
  SayLook: 'A one-off schedule wakes the cycle.',
  WriteLog: 'Its own log.',
};

/** Reasons by action: statements of the CDK have no Sid. */
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

/** `EbbtideFunctionsActRoleABCD1234` as `Act`. */
const titleOf = (id: string): string =>
  withoutHash(id)
    .replace(/^Ebbtide(?:Functions|Capacity)?/, '')
    .replace(/(?:Service)?Role$/, '');
const withoutHash = (id: string): string => id.replace(/[\dA-F]{8}$/, '');

function statementsOf(all: Resources, role: string): Statement[] {
  const attached = Object.values(all)
    .filter(({ Type }) => Type === 'AWS::IAM::Policy')
    .filter(({ Properties }) => (Properties['Roles'] as { Ref?: string }[]).some((r) => r.Ref === role))
    .map(({ Properties }) => Properties['PolicyDocument']);
  const policies = (all[role]?.Properties['Policies'] ?? []) as { PolicyDocument: unknown }[];
  const inline = policies.map((p) => p.PolicyDocument);
  return [...inline, ...attached].flatMap((d) => (d as { Statement: Statement[] }).Statement);
}

/** Resource without the part that all have in common. */
const short = (resource: unknown): string =>
  flattened(resource)
    .replaceAll(/EbbtideData:ExportsOutput(?:Ref|FnGetAtt)(\w+?)[\dA-F]{8}(?:Arn)?[\dA-F]{8}/g, '<$1>')
    .replaceAll(/arn:(?:<AWS::Partition>|aws):([\w-]+):(?:<AWS::Region>)?:(?:<AWS::AccountId>)?:/g, '$1:')
    .replaceAll(/<Ebbtide(\w+?)[\dA-F]{8}(?:\.Arn|\.GroupId)?>/g, '<$1>');

const code = (text: string): string => `\`${text}\``;
const escaped = (text: string): string => text.replaceAll('|', '\\|');

/** Reasons of a statement; the CDK merges those on the same resource. */
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

function section(all: Resources, role: string): string {
  const { Description, ManagedPolicyArns = [] } = all[role]?.Properties ?? {};
  const managed = (ManagedPolicyArns as unknown[]).map((m) => `\n\nAWS’s managed policy ${code(short(m))}.`).join('');
  const rows = statementsOf(all, role).map(row);
  const table =
    rows.length === 0 ? '' : `\n\n| may | on | only if | why |\n| --- | --- | --- | --- |\n${rows.join('\n')}`;
  return `### ${titleOf(role)}\n\n${(Description as string | undefined) ?? TITLES[titleOf(role)] ?? ''}${managed}${table}\n`;
}

/** Titles of roles that the CDK makes without a description. */
const TITLES: Readonly<Record<string, string>> = {
  CycleMachine: 'The state machine.',
  CycleMachineEvents: 'EventBridge.',
  HttpRestCloudWatch:
    'API Gateway, for its logs: one role per region and account, for which AWS requires its managed policy.',
  NetworkVpcRejectedTrafficIAM: 'The network’s log of refused traffic.',
};

/** Page made from the resources of the template. */
export function rightsPage(all: Resources): string {
  const roles = Object.keys(all)
    .filter((id) => all[id]?.Type === 'AWS::IAM::Role')
    .sort();
  const functions = roles.filter((id) => id.startsWith('EbbtideFunctions'));
  const others = roles.filter((id) => !functions.includes(id));
  if (functions.length !== Object.keys(FUNCTIONS).length) throw new Error('a function without a role of its own');
  const sections = (ids: readonly string[]): string => ids.map((id) => section(all, id)).join('\n');
  return `# Roles and rights

<!-- Generated by \`npm run docs\` from the synthesised template. -->

Every role of a deployment, with its rights and why it has them. [Security](../security.md) says what protects what. No action is a
pattern; \`*\` as a resource is only where AWS has no narrower one.

## Functions

\`Serve\`, and the right of others to start it, are there only where \`services\` are turned on. Each function has a log of its own. With \`traces: true\` functions of the API and of the cycle may also write to X-Ray
(\`xray:PutTraceSegments\`, \`xray:PutTelemetryRecords\`, on \`*\`: X-Ray has no resource to name); by default none may.

${sections(functions)}
## Everything else

${sections(others)}`;
}
