import type { Bid, Pool } from '../../../lib/domain/pool.ts';
import type { InstanceId } from '../../../lib/kernel/ids.ts';
import type { Subnet } from '../place.ts';
import type { AgentConfig } from '../ecs/agent-config.ts';
import type { TemplateVersion } from './templates.ts';

export type Lifecycle = 'spot' | 'on-demand';
/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceState.html */
export const STATE_CODES = {
  pending: 0,
  running: 16,
  'shutting-down': 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
} as const;
export type InstanceStateName = keyof typeof STATE_CODES;

/** Instance as EC2 shows it. The capacity engine uses the same id. */
export interface Ec2Instance {
  readonly id: InstanceId;
  readonly pool: Pool;
  readonly bid: Bid;
  readonly lifecycle: Lifecycle;
  readonly subnet: Subnet;
  readonly template: TemplateVersion;
  readonly agent: AgentConfig;
  /** Its reservation; null: none. */
  readonly reservationId: string | null;
  readonly clientToken: string | undefined;
  readonly privateIp: string;
  readonly launchedMs: number;
  readonly tags: Map<string, string>;
  state: InstanceStateName;
  /** Reason of its end; null while it runs. */
  stateReason: { readonly code: string; readonly message: string } | null;
  /** Text in the form of StateTransitionReason; empty while it runs. */
  transition: string;
  terminatedMs: number | null;
}

export const stateOf = (name: InstanceStateName) => ({ code: STATE_CODES[name], name });
