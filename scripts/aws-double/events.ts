import { createHash } from 'node:crypto';
import { randomStream, type Uniform } from '../../lib/kernel/random.ts';
import { Kept } from './kept.ts';
import type { KnobBoard } from './knobs.ts';

/**
 * An event as a rule's target gets it. https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html
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

/** Takes events, in the order of delivery. Rejecting makes the double try again, and in the end complain. */
export type Deliver = (events: readonly AwsEvent[]) => Promise<void>;

/** What makes an event; the rest is the same for all. */
export interface Happening {
  readonly source: 'aws.ec2' | 'aws.ecs';
  readonly type: string;
  readonly atMs: number;
  readonly resources: readonly string[];
  readonly detail: Readonly<Record<string, unknown>>;
}

/** A batch of PutEvents. https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html */
const BATCH = 10;
const TRIES = 4;
const RETRY_MS = 250;
/** Events that are remembered. */
const KEPT = 20_000;
/** Held-back events go when nothing has happened for so long, wall ms. */
const QUIET_MS = 100;

/**
 * What has happened, and its delivery: at least once in principle, and as unreliable as the knobs say. An event
 * keeps its id however often it is delivered.
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
  /** What happens is neither told nor remembered. */
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
      // A snapshot: what it describes goes on changing.
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

  /** Sends what is held back, shuffled where the knobs say so. */
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

  /** Resolves when everything that was sent is delivered or given up, and what came of that as well. */
  async delivered(): Promise<void> {
    for (let sending: Promise<void> | null = null; sending !== this.#sending;) {
      sending = this.#sending;
      await sending;
    }
  }

  /** Resolves when everything that has happened is delivered or given up. */
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

/** An id in the form of a UUID, the same for the same text. */
export function uuidOf(text: string): string {
  const hex = hexOf(text, 32);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** `length` hexadecimal digits, the same for the same text. */
export const hexOf = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length);

/**
 * Delivers by PutEvents to an EventBridge at `url`. Its answer names a failed entry, which is then tried again with the
 * rest of its batch. EventBridge itself refuses sources that begin with `aws.`; a stand-in such as LocalStack takes
 * them.
 */
export function putEventsTo(url: string, bus = 'default'): Deliver {
  return async (events) => {
    const region = events[0]?.region ?? 'us-east-1';
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.1',
        'x-amz-target': 'AWSEvents.PutEvents',
        // Not a signature: stand-ins read the service and region from it.
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
