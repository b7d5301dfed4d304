/**
 * One-off schedules (EventBridge Scheduler) that wake the cycle shortly before windows of allocations end
 * (lib/stages/scale/window.ts), independent of the clock's period.
 *
 * A schedule stands for a minute, not for an instance. Windows that end in the same minute share it, so there are at
 * most sixty. A cycle makes calls only for new or superfluous minutes. The minute is the name, so a repeated call has
 * no effect. Schedules delete themselves after they fired.
 * A schedule only sends a message to the trigger queue. If it fires twice, late, or for a lost instance, it costs one
 * superfluous cycle.
 *
 * The item WINDOWS lists the minutes with a schedule and is written last. Crash points: a schedule that is missing in
 * the item is made again, without effect, or fires in vain. Failed calls are repeated by the next cycle, and the clock
 * ticks every minute anyway.
 */
import {
  ActionAfterCompletion,
  CreateScheduleCommand,
  DeleteScheduleCommand,
  FlexibleTimeWindowMode,
  type SchedulerClient,
} from '@aws-sdk/client-scheduler';
import { msBetween, type EpochMs } from '../../../kernel/units.ts';
import type { SchedulerConfig } from '../../../domain/config.ts';
import type { Snapshot } from '../../../domain/snapshot.ts';
import { windowEndMs } from '../../../stages/scale/window.ts';
import { faultOf } from '../errors.ts';
import { tokenOf } from '../fleet/request-names.ts';
import { body, bodyOf } from '../store/codec.ts';
import { WINDOWS } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';

const MINUTE_MS = 60_000;
/**
 * Lead of a schedule, ms. It fires within a minute after its time ("60-second precision", EventBridge Scheduler user
 * guide), and a cycle takes some seconds.
 */
const LEAD_MS = 2 * MINUTE_MS;
/** Age after which an event is useless, s. The service's minimum is 60 s. */
const MAX_AGE_S = 120;
/** Time to a window's end below which the current cycle already decides, ms. */
const NEAR_MS = 30_000;

export interface WindowEndsParts {
  readonly client: SchedulerClient;
  readonly table: Pick<Table, 'get' | 'write'>;
  /** Schedule group of the deployment. */
  readonly group: string;
  /** ARN of the role that may send to the queue, and of the queue. */
  readonly role: string;
  readonly queue: string;
  /** Wall time. */
  readonly nowMs: () => number;
  /** Called with failures. */
  readonly warn: (what: string, context: object) => void;
}

/** Ends of the windows of all instances in a snapshot, wall time. `speed`: engine seconds per wall second. */
export function windowEndsOf(
  { nowMs, instances }: Pick<Snapshot, 'nowMs' | 'instances'>,
  config: SchedulerConfig,
  wall: { readonly nowMs: number; readonly speed: number },
): readonly number[] {
  const toWall = (at: EpochMs): number => wall.nowMs + msBetween(nowMs, at) / wall.speed;
  return [...instances.values()].flatMap((view) => {
    const endMs = windowEndMs(view, nowMs, config);
    return endMs === null ? [] : [toWall(endMs)];
  });
}

export class WindowEnds {
  readonly #parts: WindowEndsParts;

  constructor(parts: WindowEndsParts) {
    this.#parts = parts;
  }

  /**
   * Keeps one schedule before each of these times (wall ms), and no others. Never throws: the clock makes up for
   * failures.
   */
  async keep(endsMs: readonly number[]): Promise<void> {
    try {
      await this.#keep(endsMs);
    } catch (error) {
      this.#parts.warn('windows have no schedules', { error });
    }
  }

  async #keep(endsMs: readonly number[]): Promise<void> {
    const { table } = this.#parts;
    const nowMs = this.#parts.nowMs();
    const isAhead = (minute: number): boolean => minute * MINUTE_MS > nowMs + NEAR_MS;
    const wanted = new Set(endsMs.map((at) => Math.floor((at - LEAD_MS) / MINUTE_MS)).filter(isAhead));
    const item = await table.get(WINDOWS);
    const known = new Set(item === undefined ? [] : bodyOf<number[]>(item).filter((m) => m * MINUTE_MS > nowMs));
    const fresh = [...wanted].filter((minute) => !known.has(minute));
    const stale = [...known].filter((minute) => !wanted.has(minute) && isAhead(minute));
    if (fresh.length === 0 && stale.length === 0) return;
    await Promise.all([
      ...fresh.map(async (minute) => {
        if (await this.#done('CreateSchedule', () => this.#create(minute))) known.add(minute);
      }),
      ...stale.map(async (minute) => {
        if (await this.#done('DeleteSchedule', () => this.#remove(minute))) known.delete(minute);
      }),
    ]);
    await table.write({ key: WINDOWS, set: { b: body([...known].sort((a, b) => a - b)) } });
  }

  /** True if the schedule is as wanted: made or already there (`conflict`); removed or already gone. */
  async #done(call: string, does: () => Promise<unknown>): Promise<boolean> {
    try {
      await does();
      return true;
    } catch (error) {
      const { name } = error as Error;
      if (name === 'ConflictException' && call === 'CreateSchedule') return true;
      if (name === 'ResourceNotFoundException' && call === 'DeleteSchedule') return true;
      this.#parts.warn(`${call} failed`, { fault: faultOf(error), error });
      return false;
    }
  }

  #create(minute: number): Promise<unknown> {
    const { client, group, role, queue } = this.#parts;
    const Name = nameOf(minute);
    return client.send(
      new CreateScheduleCommand({
        Name,
        GroupName: group,
        Description: 'Ebbtide wakes its cycle: windows of allocations end two minutes later.',
        ScheduleExpression: `at(${textOf(minute)}:00)`,
        ScheduleExpressionTimezone: 'UTC',
        FlexibleTimeWindow: { Mode: FlexibleTimeWindowMode.OFF },
        ActionAfterCompletion: ActionAfterCompletion.DELETE,
        ClientToken: tokenOf('window', group, Name),
        Target: {
          Arn: queue,
          RoleArn: role,
          Input: JSON.stringify({ why: 'window', minute: textOf(minute) }),
          RetryPolicy: { MaximumEventAgeInSeconds: MAX_AGE_S, MaximumRetryAttempts: 5 },
        },
      }),
    );
  }

  #remove(minute: number): Promise<unknown> {
    const { client, group } = this.#parts;
    return client.send(new DeleteScheduleCommand({ Name: nameOf(minute), GroupName: group }));
  }
}

/** `2026-11-21T12:05` */
const textOf = (minute: number): string => new Date(minute * MINUTE_MS).toISOString().slice(0, 16);
/** Name of a schedule: letters, digits, `.`, `-` and `_`. */
const nameOf = (minute: number): string => `window-${textOf(minute).replace(':', '.')}`;
