import { z } from 'zod';

/** Calls that a fault or throttle applies to: `CreateFleet`, or `*` for all. */
const action = z.string().min(1);

const fault = z.strictObject({
  action,
  /** `before`: without effect. `after`: the effect happens and only the answer is lost. */
  when: z.enum(['before', 'after']).default('before'),
  /** Error code; null cuts the connection. */
  code: z.string().nullable().default('InternalError'),
  message: z.string().default('An internal error has occurred'),
  status: z.int().min(400).max(599).default(500),
  /** Number of calls that fail. */
  times: z.int().min(1).default(1),
});
export type Fault = z.infer<typeof fault>;

const throttle = z.strictObject({
  /** Tokens per wall second; 0 never refills. */
  ratePerS: z.number().min(0),
  burst: z.int().min(0),
});

/**
 * Attributes of a reservation that differ:
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
 */
const reservation = z.strictObject({
  state: z.string().default('active'),
  instanceMatchCriteria: z.enum(['open', 'targeted']).default('targeted'),
  tenancy: z.enum(['default', 'dedicated']).default('default'),
  instancePlatform: z.string().default('Linux/UNIX'),
  reservationType: z.enum(['default', 'capacity-block']).default('default'),
});

/**
 * Faults, limits and delays, which may change while the double runs. The defaults follow the market, at once and
 * exactly once. Delays are market seconds.
 */
export const knobsSchema = z.strictObject({
  /** Token buckets by action. https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html */
  throttle: z.record(action, throttle).default({}),
  /** Pools without capacity, whatever the market says (`c5.large/us-east-1a/spot`, `*` as wildcard). */
  insufficientCapacity: z.array(z.string()).default([]),
  /** Remaining instances by pool id; other pools follow the market. */
  capacityLeft: z.record(z.string(), z.int().min(0)).default({}),
  /** Unusual attributes of capacity reservations, by pool (`c5.large/us-east-1a/reserved`). */
  reservations: z.record(z.string(), reservation).default({}),
  /**
   * Quota of running spot instances in vCPUs; null: none.
   * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html
   */
  spotVcpus: z.int().min(0).nullable().default(null),
  /**
   * Quota on demand, likewise.
   * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits
   */
  onDemandVcpus: z.int().min(0).nullable().default(null),
  /** True: the account's only VPC is its default VPC, with a default subnet per zone. */
  defaultVpc: z.boolean().default(true),
  /**
   * Time for which a new resource cannot be described.
   * https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
   */
  describeDelayS: z.number().min(0).default(0),
  events: z
    .strictObject({
      /**
       * Fractions of all events. EventBridge delivers at least once and in no order:
       * https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-service-event.html
       */
      duplicate: z.number().min(0).max(1).default(0),
      lose: z.number().min(0).max(1).default(0),
      /** Neighbouring events that are shuffled together; 0 and 1 keep the order. */
      reorderWindow: z.int().min(0).max(1000).default(0),
    })
    .prefault({}),
  faults: z.array(fault).default([]),
  /**
   * Errors of the next CreateFleet requests in place of instances, one each. For errors of type `instant` see
   * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html (`Errors`).
   */
  fleetErrors: z.array(z.strictObject({ code: z.string().min(1), message: z.string().default('no') })).default([]),
  /** Images that cannot be pulled, and images whose tasks run out of memory at once; `*` as wildcard. */
  unpullableImages: z.array(z.string()).default([]),
  outOfMemoryImages: z.array(z.string()).default([]),
});
export type Knobs = z.infer<typeof knobsSchema>;
export type KnobSettings = z.input<typeof knobsSchema>;

/** Current knobs. A change names the knobs that change. Throws ZodError for an unknown knob. */
export class KnobBoard {
  #now: Knobs;
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  constructor(settings: KnobSettings = {}) {
    this.#now = knobsSchema.parse(settings);
  }

  get now(): Knobs {
    return this.#now;
  }

  set(settings: KnobSettings): void {
    this.#now = knobsSchema.parse({ ...this.#now, ...settings });
    if (settings.throttle !== undefined) this.#buckets.clear();
  }

  /** Fault for this call, which is then used up. */
  takeFault(called: string, when: Fault['when']): Fault | null {
    const found = this.#now.faults.find((f) => f.when === when && (f.action === called || f.action === '*'));
    if (found === undefined) return null;
    const faults = this.#now.faults.flatMap((f) =>
      f !== found ? [f] : f.times > 1 ? [{ ...f, times: f.times - 1 }] : [],
    );
    this.#now = { ...this.#now, faults };
    return found;
  }

  /** Error for this CreateFleet, which is then used up. */
  takeFleetError(): Knobs['fleetErrors'][number] | null {
    const [error = null, ...rest] = this.#now.fleetErrors;
    this.#now = { ...this.#now, fleetErrors: rest };
    return error;
  }

  /** Takes one instance of a pool's remaining capacity; false if there is none. */
  takeCapacity(pool: string): boolean {
    const left = this.#now.capacityLeft[pool];
    if (left === undefined) return true;
    if (left > 0) this.#now = { ...this.#now, capacityLeft: { ...this.#now.capacityLeft, [pool]: left - 1 } };
    return left > 0;
  }

  /** Knobs of a capacity reservation. */
  reservation(pool: string): z.infer<typeof reservation> {
    return this.#now.reservations[pool] ?? reservation.parse({});
  }

  /** Takes a token for the call; false if its bucket is empty. `atMs`: wall time. */
  admits(called: string, atMs: number): boolean {
    const name = called in this.#now.throttle ? called : '*';
    const limit = this.#now.throttle[name];
    if (limit === undefined) return true;
    const bucket = this.#buckets.get(name) ?? { tokens: limit.burst, atMs };
    const tokens = Math.min(limit.burst, bucket.tokens + (limit.ratePerS * (atMs - bucket.atMs)) / 1000);
    const admitted = tokens >= 1;
    this.#buckets.set(name, { tokens: admitted ? tokens - 1 : tokens, atMs });
    return admitted;
  }
}
