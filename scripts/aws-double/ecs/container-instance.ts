import type { Ec2Instance } from '../ec2/instance.ts';
import type { Tags } from './definitions.ts';

/** Instance as ECS shows it, registered by its agent. */
export interface ContainerInstance {
  readonly id: string;
  readonly arn: string;
  readonly cluster: Cluster;
  readonly host: Ec2Instance;
  readonly registered: Take;
  readonly registeredMs: number;
  readonly attributes: Map<string, string>;
  status: 'ACTIVE' | 'DRAINING' | 'INACTIVE';
  agentConnected: boolean;
  version: number;
  /** Resources taken, by task. */
  readonly taken: Map<string, Take>;
  running: number;
}

export interface Cluster {
  readonly name: string;
  readonly arn: string;
  readonly tags: Tags;
}

/** Resources that a task takes of an instance. */
export interface Take {
  readonly cpu: number;
  readonly memoryMiB: number;
  readonly gpus: number;
}
