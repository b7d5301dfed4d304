import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Double of EventBridge Scheduler: keeps one-off schedules, and fires due ones on request.
 * https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
 */
export interface Scheduled {
  readonly Name: string;
  readonly GroupName: string;
  readonly ScheduleExpression: string;
  readonly ActionAfterCompletion: string;
  readonly FlexibleTimeWindow: { readonly Mode: string };
  readonly ClientToken?: string;
  readonly Target: { readonly Arn: string; readonly RoleArn: string; readonly Input: string };
}

export interface SchedulerDouble {
  readonly url: string;
  readonly schedules: ReadonlyMap<string, Scheduled>;
  /** Calls in order, such as `CreateSchedule window-...`. */
  readonly calls: readonly string[];
  /** Refuses the next calls. */
  refuse(name: string, status: number, times: number): void;
  /** Fires due schedules and removes them. Returns their inputs. */
  fire(atMs: number): readonly string[];
  close(): Promise<void>;
}

const dueMs = ({ ScheduleExpression }: Scheduled): number =>
  Date.parse(`${/^at\((.*)\)$/.exec(ScheduleExpression)?.[1] ?? ''}Z`);

function answer(response: ServerResponse, status: number, content: object): void {
  const type = (content as { __type?: string }).__type;
  response
    .writeHead(status, {
      'content-type': 'application/json',
      ...(type === undefined ? {} : { 'x-amzn-errortype': type }),
    })
    .end(JSON.stringify(content));
}

/** `nowMs`: times before it are refused, as by the service. */
export async function startSchedulerDouble(groups: readonly string[], nowMs: () => number): Promise<SchedulerDouble> {
  const schedules = new Map<string, Scheduled>();
  const calls: string[] = [];
  const refusals: { name: string; status: number }[] = [];
  const keyOf = (group: string, name: string): string => `${group}/${name}`;

  function create(name: string, asked: Scheduled): readonly [number, object] {
    const { GroupName = 'default' } = asked;
    if (!groups.includes(GroupName)) return [404, { __type: 'ResourceNotFoundException', Message: 'no such group' }];
    const known = schedules.get(keyOf(GroupName, name));
    const isSame = known?.ClientToken !== undefined && known.ClientToken === asked.ClientToken;
    if (known !== undefined && !isSame) return [409, { __type: 'ConflictException', Message: 'it is there' }];
    if (!(dueMs(asked) > nowMs()))
      return [400, { __type: 'ValidationException', Message: 'Invalid Schedule Expression' }];
    schedules.set(keyOf(GroupName, name), { ...asked, Name: name, GroupName });
    return [200, { ScheduleArn: `arn:aws:scheduler:eu-central-1:000000000000:schedule/${GroupName}/${name}` }];
  }

  function remove(group: string, name: string): readonly [number, object] {
    if (schedules.delete(keyOf(group, name))) return [200, {}];
    return [404, { __type: 'ResourceNotFoundException', Message: 'no such schedule' }];
  }

  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const url = new URL(request.url ?? '/', 'http://double');
      const name = decodeURIComponent(/^\/schedules\/([^/]+)$/.exec(url.pathname)?.[1] ?? '');
      const action = request.method === 'DELETE' ? 'DeleteSchedule' : 'CreateSchedule';
      calls.push(`${action} ${name}`);
      const refusal = refusals.shift();
      const [status, content] =
        refusal !== undefined
          ? [refusal.status, { __type: refusal.name, Message: 'refused' }]
          : action === 'DeleteSchedule'
            ? remove(url.searchParams.get('groupName') ?? 'default', name)
            : create(name, JSON.parse(Buffer.concat(chunks).toString()) as Scheduled);
      answer(response, status, content);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    schedules,
    calls,
    refuse: (name, status, times) => refusals.push(...Array.from({ length: times }, () => ({ name, status }))),
    fire: (atMs) => {
      const due = [...schedules].filter(([, s]) => dueMs(s) <= atMs);
      for (const [key, { ActionAfterCompletion }] of due) if (ActionAfterCompletion === 'DELETE') schedules.delete(key);
      return due.map(([, s]) => s.Target.Input);
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
