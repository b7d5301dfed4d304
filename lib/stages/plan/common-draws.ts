/**
 * Equal needs and draws as one object each, for one problem: what is looked up by them is found without reading them. A
 * large plan has 100,000 members, of which a few thousand differ.
 */
import type { PoolId } from '../../kernel/ids.ts';
import type { Pool } from '../../domain/pool.ts';
import { vector, type Resources } from '../../domain/resources.ts';
import { QUOTA, roomOf } from './supply.ts';
import type { Draw } from './strl/supply.ts';

export class CommonDraws {
  readonly #needs = new Map<string, Resources>();
  readonly #ofRooms = new Map<PoolId, Map<Resources, Draw>>();
  readonly #ofQuota = new Map<number, Draw>();

  /** The one object for needs equal to this. */
  need(need: Resources): Resources {
    const key = vector(need).join();
    let common = this.#needs.get(key);
    if (common === undefined) this.#needs.set(key, (common = need));
    return common;
  }

  /** A task in the room of a pool. `need`: one of `need`'s answers. */
  ofRoom({ id }: Pool, need: Resources): Draw {
    let ofPool = this.#ofRooms.get(id);
    if (ofPool === undefined) this.#ofRooms.set(id, (ofPool = new Map<Resources, Draw>()));
    let draw = ofPool.get(need);
    if (draw === undefined) ofPool.set(need, (draw = { partition: roomOf(id), perUnit: vector(need) }));
    return draw;
  }

  /** A task's part of a new instance. */
  ofQuota(milliCpu: number): Draw {
    let draw = this.#ofQuota.get(milliCpu);
    if (draw === undefined) this.#ofQuota.set(milliCpu, (draw = { partition: QUOTA, perUnit: [milliCpu] }));
    return draw;
  }
}
