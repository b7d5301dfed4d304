import { createHash } from 'node:crypto';
import { randomStream, type Uniform } from '../../lib/kernel/random.ts';
import { Kept } from './kept.ts';
import type { KnobBoard } from './knobs.ts';

/**
 * Event as a rule's target receives it. https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html
 */
export interface AwsEvent {
  readonly version: '0';
  readonly id: string;
  readonly 'detail-type': string;
  readonly source: string;
  readonly account: string;
  /** Market time, to the second. */
  readonly time: string;
  readonly region: string;
  readonly resources: readonly string[];
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Receiver of events in order of delivery. A rejection makes the double retry, and finally complain. */
export type Deliver = (events: readonly AwsEvent[]) => Promise<void>;

/** Specific part of an event. */
export interface Happening {
  readonly source: 'aws.ec2' | 'aws.ecs';
  readonly type: string;
  readonly atMs: number;
  readonly resources: readonly string[];
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Batch size of PutEvents. https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html */
const BATCH = 10;
const TRIES = 4;
const RETRY_MS = 250;
/** Number of kept events. */
const KEPT = 20_000;
/** Quiet time after which held-back events are sent, wall ms. */
const QUIET_MS = 100;

/**
 * Log and delivery of events: at least once, and as unreliable as the knobs say. Repeated deliveries have the same id.
 */
export class EventLog {
  readonly happened = new Kept<AwsEvent>(KEPT);
  readonly #place: { readonly account: string; readonly region: string };
  readonly #knobs: KnobBoard;
  readonly #deliver: Deliver | null;
  readonly #random: Uniform = randomStream(0, 'aws-double/events');
  #held: AwsEvent[] = [];
  #release: NodeJS.Timeout | null = null;
  #sending: Promise<void> = Promise.resolve();
  #closed = false;
  /** True: events are neither told nor kept. */
  isQuiet = false;

  constructor(place: { readonly account: string; readonly region: string }, knobs: KnobBoard, deliver: Deliver | null) {
    this.#place = place;
    this.#knobs = knobs;
    this.#deliver = deliver;
  }

  add(happening: Happening): void {
    if (this.isQuiet) return;
    const event: AwsEvent = {
      version: '0',
      id: uuidOf(`event/${this.happened.count}`),
      'detail-type': happening.type,
      source: happening.source,
      account: this.#place.account,
      time: `${new Date(happening.atMs).toISOString().slice(0, 19)}Z`,
      region: this.#place.region,
      resources: happening.resources,
      // Copy: the described object goes on changing.
      detail: JSON.parse(JSON.stringify(happening.detail)) as Record<string, unknown>,
    };
    this.happened.add(event);
    if (this.#deliver === null || this.#closed) return;
    const { duplicate, lose, reorderWindow } = this.#knobs.now.events;
    const isLost = this.#random() < lose;
    const isDoubled = this.#random() < duplicate;
    if (isLost) return;
    this.#held.push(...(isDoubled ? [event, event] : [event]));
    if (this.#release !== null) clearTimeout(this.#release);
    this.#release = null;
    if (this.#held.length >= Math.max(1, reorderWindow)) this.#send();
    else this.#release = setTimeout(() => this.#send(), QUIET_MS);
  }

  /** Sends held-back events, shuffled if the knobs say so. */
  #send(): void {
    const events = this.#held;
    this.#held = [];
    if (this.#knobs.now.events.reorderWindow > 1) shuffle(events, this.#random);
    for (let from = 0; from < events.length; from += BATCH) {
      const batch = events.slice(from, from + BATCH);
      this.#sending = this.#sending.then(() => this.#attempt(batch));
    }
  }

  async #attempt(batch: readonly AwsEvent[]): Promise<void> {
    for (let left = TRIES; left > 0 && this.#deliver !== null; left--) {
      try {
        await this.#deliver(batch);
        return;
      } catch (error) {
        if (left === 1) process.stderr.write(`aws-double: ${batch.length} events not delivered: ${String(error)}\n`);
        else await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Resolves when every sent event is delivered or given up, and so are events that followed from it. */
  async delivered(): Promise<void> {
    for (let sending: Promise<void> | null = null; sending !== this.#sending;) {
      sending = this.#sending;
      await sending;
    }
  }

  /** Resolves when every event is delivered or given up. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#release !== null) clearTimeout(this.#release);
    this.#send();
    await this.#sending;
  }
}

function shuffle(items: AwsEvent[], random: Uniform): void {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [items[i], items[j]] = [items[j] as AwsEvent, items[i] as AwsEvent];
  }
}

/** Id in the form of a UUID, the same for the same text. */
export function uuidOf(text: string): string {
  const hex = hexOf(text, 32);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Hexadecimal digits, the same for the same text. */
export const hexOf = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length);

/**
 * Delivery by PutEvents to an EventBridge at `url`. Entries that its answer names as failed are retried with the rest
 * of their batch. EventBridge itself refuses sources that begin with `aws.`; LocalStack accepts them.
 */
export function putEventsTo(url: string, bus = 'default'): Deliver {
  return async (events) => {
    const region = events[0]?.region ?? 'us-east-1';
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.1',
        'x-amz-target': 'AWSEvents.PutEvents',
        // Only the form of a signature: test servers read service and region from it.
        authorization: `AWS4-HMAC-SHA256 Credential=test/20260101/${region}/events/aws4_request, SignedHeaders=host, Signature=0`,
      },
      body: JSON.stringify({ Entries: events.map((event) => entryOf(event, bus)) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`PutEvents answered ${answer.status}: ${text.slice(0, 300)}`);
    const failed = (JSON.parse(text) as { FailedEntryCount?: number }).FailedEntryCount ?? 0;
    if (failed > 0) throw new Error(`PutEvents refused ${failed} of ${events.length}: ${text.slice(0, 300)}`);
  };
}

const entryOf = (event: AwsEvent, bus: string) => ({
  Source: event.source,
  DetailType: event['detail-type'],
  Detail: JSON.stringify(event.detail),
  Resources: event.resources,
  Time: Date.parse(event.time) / 1000,
  EventBusName: bus,
});
