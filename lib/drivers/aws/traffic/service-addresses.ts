import { number, numberOf } from '../store/codec.ts';
import { trafficKey } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';
import { groupName } from './group-names.ts';

export interface ServiceAddressesParts {
  readonly table: Pick<Table, 'get' | 'write'>;
  /** Name of the deployment. */
  readonly stack: string;
  /** DNS name of the load balancer. */
  readonly dns: string;
  readonly isSecure: boolean;
}

/** Ports of services at the load balancer, by target group, in the table: the API shows them without asking AWS. */
export class ServiceAddresses {
  readonly #parts: ServiceAddressesParts;

  constructor(parts: ServiceAddressesParts) {
    this.#parts = parts;
  }

  /** URL; null until the service has a port. */
  async of(service: string): Promise<string | null> {
    const { table, stack, dns, isSecure } = this.#parts;
    const item = await table.get(trafficKey(groupName(stack, service)));
    if (item?.['port'] === undefined) return null;
    return new URL(`${isSecure ? 'https' : 'http'}://${dns}:${numberOf(item, 'port')}`).href.replace(/\/$/, '');
  }

  async set(group: string, port: number): Promise<void> {
    await this.#parts.table.write({ key: trafficKey(group), set: { port: number(port) } });
  }

  async drop(group: string): Promise<void> {
    await this.#parts.table.write({ key: trafficKey(group), remove: ['port'] });
  }
}
