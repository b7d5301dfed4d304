import { z } from 'zod';

/** Which calls a fault or a throttle meets: `CreateFleet`, or `*` for all. */
const action = z.string().min(1);

const fault = z.strictObject({
  action,
  /** `before`: nothing has happened. `after`: the effect has, and only its answer is lost. */
  when: z.enum(['before', 'after']).default('before'),
  /** Null cuts the connection without an answer. */
  code: z.string().nullable().default('InternalError'),
  message: z.string().default('An internal error has occurred'),
  status: z.int().min(400).max(599).default(500),
  /** How many calls it meets; then it is over. */
  times: z.int().min(1).default(1),
});
export type Fault = z.infer<typeof fault>;

const throttle = z.strictObject({
  /** Tokens per wall second: 0 never refills. */
  ratePerS: z.number().min(0),
  burst: z.int().min(0),
});

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html, as far as it differs. */
const reservation = z.strictObject({
  state: z.string().default('active'),
  instanceMatchCriteria: z.enum(['open', 'targeted']).default('targeted'),
  tenancy: z.enum(['default', 'dedicated']).default('default'),
  instancePlatform: z.string().default('Linux/UNIX'),
  reservationType: z.enum(['default', 'capacity-block']).default('default'),
});

/**
 * What may be changed while the double runs: faults, limits and delays. With all defaults it does what the market does,
 * at once and exactly once. Delays are market seconds.
 */
export const knobsSchema = z.strictObject({
  /** Token buckets by action. https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html */
  throttle: z.record(action, throttle).default({}),
  /** Pools (`c5.large/us-east-1a/spot`, `*` as wildcard) without capacity, whatever the market says. */
  insufficientCapacity: z.array(z.string()).default([]),
  /** How many more instances a pool has, by its id; a pool that is not named has as many as the market says. */
  capacityLeft: z.record(z.string(), z.int().min(0)).default({}),
  /** Of capacity reservations, by their pools (`c5.large/us-east-1a/reserved`): what is not as usual. */
  reservations: z.record(z.string(), reservation).default({}),
  /**
   * Quota of running spot instances in vCPUs; null: none.
   * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html
   */
  spotVcpus: z.int().min(0).nullable().default(null),
  /**
   * The same on demand.
   * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits
   */
  onDemandVcpus: z.int().min(0).nullable().default(null),
  /** Whether the account's one VPC is its default VPC, with a default subnet per zone. */
  defaultVpc: z.boolean().default(true),
  /**
   * How long a new resource cannot be described.
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
      /** Events are shuffled among so many neighbours; 0 and 1 keep the order. */
      reorderWindow: z.int().min(0).max(1000).default(0),
    })
    .prefault({}),
  faults: z.array(fault).default([]),
  /**
   * Errors that CreateFleet answers with, in place of instances, to the next requests: one each. A fleet of type
   * `instant` throws few: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html (`Errors`).
   */
  fleetErrors: z.array(z.strictObject({ code: z.string().min(1), message: z.string().default('no') })).default([]),
  /**
   * Images that cannot be pulled, and images whose tasks are killed for memory as soon as they run; `*` as wildcard.
   */
  unpullableImages: z.array(z.string()).default([]),
  outOfMemoryImages: z.array(z.string()).default([]),
});
export type Knobs = z.infer<typeof knobsSchema>;
export type KnobSettings = z.input<typeof knobsSchema>;

/** The knobs as they stand, changed by naming those that change. Throws ZodError for a knob that is not there. */
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

  /** The fault that this call meets, used up by it. */
  takeFault(called: string, when: Fault['when']): Fault | null {
    const found = this.#now.faults.find((f) => f.when === when && (f.action === called || f.action === '*'));
    if (found === undefined) return null;
    const faults = this.#now.faults.flatMap((f) =>
      f !== found ? [f] : f.times > 1 ? [{ ...f, times: f.times - 1 }] : [],
    );
    this.#now = { ...this.#now, faults };
    return found;
  }

  /** The error that this CreateFleet answers with, used up by it. */
  takeFleetError(): Knobs['fleetErrors'][number] | null {
    const [error = null, ...rest] = this.#now.fleetErrors;
    this.#now = { ...this.#now, fleetErrors: rest };
    return error;
  }

  /** Takes one of what a pool has left; false where that is none. */
  takeCapacity(pool: string): boolean {
    const left = this.#now.capacityLeft[pool];
    if (left === undefined) return true;
    if (left > 0) this.#now = { ...this.#now, capacityLeft: { ...this.#now.capacityLeft, [pool]: left - 1 } };
    return left > 0;
  }

  /** What a capacity reservation is like, but for what the market says of it. */
  reservation(pool: string): z.infer<typeof reservation> {
    return this.#now.reservations[pool] ?? reservation.parse({});
  }

  /** Takes a token for the call; false when its bucket is empty. `atMs` is wall time. */
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
