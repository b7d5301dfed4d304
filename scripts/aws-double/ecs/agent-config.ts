/** Settings of an instance's container agent, from its user data. */
export interface AgentConfig {
  readonly cluster: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** True: a spot interruption notice sets the container instance to DRAINING. */
  readonly drainsOnNotice: boolean;
  /** Time from SIGTERM to SIGKILL if the container's definition has none. */
  readonly stopTimeoutS: number;
}

/** https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-agent-config.html */
const DEFAULT_STOP_TIMEOUT_S = 30;

/**
 * Reads the agent's variables from a script that writes /etc/ecs/ecs.config:
 * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/bootstrap_container_instance.html. The script is not run:
 * a value is the text after `NAME=`, quoted or up to the next space.
 */
export function agentConfig(userData: string | undefined): AgentConfig {
  const script = Buffer.from(userData ?? '', 'base64').toString('utf8');
  const attributes = variable(script, 'ECS_INSTANCE_ATTRIBUTES');
  return {
    cluster: variable(script, 'ECS_CLUSTER') ?? 'default',
    attributes: attributes === null ? {} : (JSON.parse(attributes) as Record<string, string>),
    drainsOnNotice: variable(script, 'ECS_ENABLE_SPOT_INSTANCE_DRAINING') === 'true',
    stopTimeoutS: secondsOf(variable(script, 'ECS_CONTAINER_STOP_TIMEOUT')) ?? DEFAULT_STOP_TIMEOUT_S,
  };
}

function variable(script: string, name: string): string | null {
  const found = new RegExp(`(?:^|[\\s"'])${name}=(\\{[^\\n]*\\}|"[^"]*"|'[^']*'|[^\\s"']*)`, 'm').exec(script)?.[1];
  return found === undefined ? null : found.replace(/^(["'])(.*)\1$/, '$2');
}

/** Seconds of Go's durations: `30s`, `2m`, `1m30s`. */
function secondsOf(text: string | null): number | null {
  const found = /^(?:(\d+)m)?(?:(\d+)s)?$/.exec(text ?? '');
  if (text === null || text === '' || found === null) return null;
  return Number(found[1] ?? 0) * 60 + Number(found[2] ?? 0);
}
