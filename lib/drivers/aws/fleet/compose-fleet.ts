import type { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import type { EC2Client } from '@aws-sdk/client-ec2';
import type { ECSClient } from '@aws-sdk/client-ecs';
import type { Clock, ClockAnchor } from '../../../kernel/clock.ts';
import { EbbError } from '../../../kernel/errors.ts';
import type { AttemptId } from '../../../kernel/ids.ts';
import type { BillingRules } from '../../../market/billing.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { Table } from '../store/dynamo-table.ts';
import { instanceBill } from './bill.ts';
import { Ec2, type Ec2Options } from './ec2.ts';
import { Ecs, type EcsOptions } from './ecs.ts';
import { AwsFleet } from './aws-fleet.ts';
import { Hosts } from './hosts.ts';
import { Inbox } from './inbox.ts';
import type { LastWords } from './task-logs.ts';
import { taskLogs, type LogOf } from './reading-fleet.ts';
import { Watch } from './watch.ts';

export interface AwsFleetOptions extends Omit<Ec2Options, 'client'>, Omit<EcsOptions, 'client' | 'speed'> {
  readonly clients: { readonly ec2: EC2Client; readonly ecs: ECSClient; readonly logs: CloudWatchLogsClient };
  readonly table: Table;
  readonly clock: Clock;
  /** Wall time. */
  readonly nowMs: () => number;
  /** Anchor of the engine clock; absent: wall time. */
  readonly anchor: ClockAnchor | undefined;
  /** Wall time of an attempt's latest checkpoint mark; null if there is none. */
  readonly keptAt: (attempt: AttemptId) => Promise<number | null>;
  /** Called for a log whose end is unreadable: the task's usage stays unknown. */
  readonly onUnreadLog?: (attempt: AttemptId, error: EbbError) => void;
  readonly logOf?: LogOf;
  /** Expected time from launch to first task, engine seconds. */
  readonly startDelayS: number;
  /** Prices as far as they are known. */
  readonly prices: () => Promise<MarketTrace>;
  readonly rules: BillingRules;
}

/** The fleet, and the parts that feed it with observations. */
export interface AwsFleetOnAws {
  readonly fleet: AwsFleet;
  readonly inbox: Inbox;
  readonly ec2: Ec2;
  readonly ecs: Ecs;
  readonly hosts: Hosts;
  readonly watch: Watch;
}

export function awsFleet(options: AwsFleetOptions): AwsFleetOnAws {
  const { clients, table, clock, anchor, nowMs, keptAt, startDelayS, prices, rules } = options;
  const speed = anchor?.speed ?? 1;
  const inbox = new Inbox(table, nowMs);
  const ec2 = new Ec2({ ...options, client: clients.ec2 });
  const ecs = new Ecs({ ...options, client: clients.ecs, speed });
  const hosts = new Hosts({ inbox, ec2, ecs, clock, startDelayS });
  const logs = taskLogs(clients.logs, { logOf: async () => null, ...options }, inbox);
  const fleet = new AwsFleet({
    inbox,
    ec2,
    hosts,
    clock,
    bill: (instance, until) => instanceBill({ inbox, prices, rules }, instance, until),
    logs: (...asked) => logs.read(...asked),
  });
  const engineMs = (wallMs: number): number =>
    anchor === undefined ? wallMs : anchor.engineMs + (wallMs - anchor.wallMs) * anchor.speed;
  // Last words of a log, if readable. A task's end is not delayed for its usage.
  const lastWords = (attempt: AttemptId, task: string): Promise<LastWords | null> =>
    logs.lastWords(attempt, task).catch((error: unknown) => {
      if (!(error instanceof EbbError) || error.code === 'internal') throw error;
      options.onUnreadLog?.(attempt, error);
      return null;
    });
  const watch = new Watch({ inbox, ec2, hosts, keptAt, lastWords, engineMs });
  return { fleet, inbox, ec2, ecs, hosts, watch };
}
