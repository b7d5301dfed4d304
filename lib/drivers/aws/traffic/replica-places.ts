import type { AttemptId } from '../../../kernel/ids.ts';
import type { Located } from '../../../ports/traffic.ts';
import type { Ecs } from '../fleet/ecs.ts';
import type { Inbox } from '../fleet/inbox.ts';
import type { Endpoint } from './load-balancer.ts';

/**
 * Where requests reach replicas. A container has a network of its own (mode `bridge`), and ECS chooses a free port of
 * its instance for it, which a description of the task tells ("hostPort", API_PortMapping).
 */
export class ReplicaPlaces {
  readonly #inbox: Pick<Inbox, 'records'>;
  readonly #ecs: Pick<Ecs, 'describe'>;
  /** The port of a running task never changes. */
  readonly #known = new Map<AttemptId, Endpoint>();

  constructor(inbox: Pick<Inbox, 'records'>, ecs: Pick<Ecs, 'describe'>) {
    this.#inbox = inbox;
    this.#ecs = ecs;
  }

  /** Endpoints by replica. Those that ECS does not tell yet are missing. O(replicas); one call per 100 new ones. */
  async of(located: readonly Located[]): Promise<ReadonlyMap<number, Endpoint>> {
    await this.#learn(located.filter(({ attempt }) => !this.#known.has(attempt)));
    return new Map(
      located.flatMap(({ replica, attempt }) => {
        const endpoint = this.#known.get(attempt);
        return endpoint === undefined ? [] : [[replica, endpoint] as const];
      }),
    );
  }

  async #learn(unknown: readonly Located[]): Promise<void> {
    if (unknown.length === 0) return;
    const records = await this.#inbox.records([...new Set(unknown.map((u) => u.instance))]);
    const byInstance = new Map(records.map((r) => [r.instance, r]));
    const asked = new Map<string, { readonly attempt: AttemptId; readonly ec2: string }>();
    for (const { attempt, instance } of unknown) {
      const record = byInstance.get(instance);
      const task = record?.attempts[attempt]?.task ?? null;
      if (task !== null && record?.ec2 !== null && record?.ec2 !== undefined)
        asked.set(task, { attempt, ec2: record.ec2 });
    }
    for (const { taskArn = '', containers = [] } of await this.#ecs.describe([...asked.keys()])) {
      const of = asked.get(taskArn);
      const port = containers[0]?.networkBindings?.[0]?.hostPort;
      if (of !== undefined && port !== undefined) this.#known.set(of.attempt, { ec2: of.ec2, port });
    }
  }
}
