/** Logs and bills for the API, without the parts that buy and start. Loaded at the first question. */
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import type { AttemptId } from '../../../kernel/ids.ts';
import type { BillingRules } from '../../../market/billing.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { Fleet } from '../../../ports/fleet.ts';
import type { Table } from '../store/dynamo-table.ts';
import { instanceBill } from './bill.ts';
import { Inbox } from './inbox.ts';
import { logStreamOf } from './log-place.ts';
import { TaskLogs } from './task-logs.ts';

/** Log name in the stored `attempt-started` observation (domain/job.ts); null before. */
export type LogOf = (attempt: AttemptId) => Promise<string | null>;

export interface ReadingParts {
  readonly table: Table;
  readonly region: string;
  readonly logGroup: string;
  readonly logOf: LogOf;
  readonly nowMs: () => number;
  readonly prices: () => Promise<MarketTrace>;
  readonly rules: BillingRules;
}

export function readingFleet({
  table,
  nowMs,
  prices,
  rules,
  ...place
}: ReadingParts): Required<Pick<Fleet, 'logs' | 'logEnd' | 'bill'>> {
  const inbox = new Inbox(table, nowMs);
  const logs = taskLogs(new CloudWatchLogsClient({ region: place.region }), place, inbox);
  return {
    logs: (...asked) => logs.read(...asked),
    logEnd: (attempt) => logs.end(attempt),
    bill: (instance, until) => instanceBill({ inbox, prices, rules }, instance, until),
  };
}

export const taskLogs = (
  client: CloudWatchLogsClient,
  of: { readonly logGroup: string; readonly region: string; readonly logOf: LogOf },
  inbox: Inbox,
): TaskLogs =>
  new TaskLogs({
    client,
    logGroup: of.logGroup,
    region: of.region,
    streamOf: async (attempt) => {
      const task = (await of.logOf(attempt)) ?? (await inbox.taskOf(attempt));
      return task === null ? null : logStreamOf(task);
    },
  });
