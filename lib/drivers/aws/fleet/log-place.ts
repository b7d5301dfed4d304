/** Places of a task's output in CloudWatch Logs. */

/** Name of our tasks' only container. */
export const CONTAINER = 'task';
export const LOG_PREFIX = 'ebb';

/** Name of the log stream of a task, as the awslogs driver makes it. */
export const logStreamOf = (task: string): string => `${LOG_PREFIX}/${CONTAINER}/${task.split('/').at(-1) ?? ''}`;

/**
 * Consoles of partitions other than `aws`, with the prefixes of their regions ("AWS Management Console", endpoints).
 */
export const OTHER_CONSOLES = [
  { partition: 'aws-cn', regions: 'cn-', host: 'console.amazonaws.cn' },
  { partition: 'aws-us-gov', regions: 'us-gov-', host: 'console.amazonaws-us-gov.com' },
] as const;

/** Page of a log stream in the CloudWatch console, which encodes names twice and writes `$` for `%`. */
export function logUrl(of: { readonly region: string; readonly logGroup: string }, stream: string): string {
  const { region, logGroup } = of;
  const twice = (name: string): string => encodeURIComponent(encodeURIComponent(name)).replaceAll('%', '$');
  const other = OTHER_CONSOLES.find(({ regions }) => region.startsWith(regions));
  const host = other?.host ?? `${region}.console.aws.amazon.com`;
  return `https://${host}/cloudwatch/home?region=${region}#logsV2:log-groups/log-group/${twice(logGroup)}/log-events/${twice(stream)}`;
}
