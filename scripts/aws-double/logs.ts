import { z } from 'zod';
import { attemptId } from '../../lib/kernel/ids.ts';
import { action, type Actions } from './api.ts';
import type { ContainerDefinition } from './ecs/definitions.ts';
import { AwsFault } from './fault.ts';
import { nowMs, type Place } from './place.ts';

/** https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html */
const getLogEvents = z.strictObject({
  logGroupName: z.string().optional(),
  logGroupIdentifier: z.string().optional(),
  logStreamName: z.string(),
  startTime: z.int().optional(),
  endTime: z.int().optional(),
  nextToken: z.string().optional(),
  limit: z.int().min(1).max(10_000).default(10_000),
  startFromHead: z.boolean().default(false),
  unmask: z.boolean().optional(),
});

/**
 * Limit of an answer: "as many log events as can fit in a response size of 1 MB (up to 10,000 log events)" (page
 * above).
 */
const MOST_BYTES = 2 ** 20;
/** Bytes per event that the service counts besides its text: API_PutLogEvents. */
const EVENT_BYTES = 26;
const READ_BYTES = 2 ** 20;

interface LogEvent {
  readonly timestamp: number;
  readonly message: string;
  readonly ingestionTime: number;
}

interface Source {
  readonly which: 'stdout' | 'stderr';
  offset: number;
  /** Line without its end so far. */
  partial: string;
}

interface Stream {
  readonly attempt: string;
  readonly events: LogEvent[];
  readonly sources: readonly Source[];
  /** True once the container has started; before that there is no stream. */
  isOpen: boolean;
  /** Queue of reads, so that no line is read twice. */
  reading: Promise<void>;
}

/**
 * Output of tasks as log streams. Both outputs go to one stream, one event per line, like the awslogs driver. Empty
 * lines give none ("message: Minimum length of 1", API_InputLogEvent). Files keep no times, so an event's time is that
 * of its read, at the latest when asked for.
 * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/using_awslogs.html Log groups exist as soon as a task
 * definition names them.
 */
export class LogStreams {
  readonly #place: Place;
  readonly #byName = new Map<string, Stream>();
  readonly #byTask = new Map<string, Stream>();

  constructor(place: Place) {
    this.#place = place;
  }

  readonly actions: Actions<object> = {
    GetLogEvents: action(getLogEvents, (asked) => this.#get(asked)),
  };

  /** Stream of a task's container: `prefix/container/task`; null if the container does not use awslogs. */
  streamFor(container: ContainerDefinition, task: string): { readonly group: string; readonly stream: string } | null {
    const { logDriver, options } = container.logConfiguration ?? { logDriver: 'json-file', options: {} };
    const group = options['awslogs-group'];
    if (logDriver !== 'awslogs' || group === undefined) return null;
    // Prefix, or without one the container's id, as in Docker.
    const prefix = options['awslogs-stream-prefix'];
    const stream = prefix === undefined ? task : `${prefix}/${container.name}/${task}`;
    const sources = (['stdout', 'stderr'] as const).map((which) => ({ which, offset: 0, partial: '' }));
    const opened: Stream = { attempt: task, events: [], sources, isOpen: false, reading: Promise.resolve() };
    this.#byName.set(nameOf(group, stream), opened);
    this.#byTask.set(task, opened);
    return { group, stream };
  }

  async #get(asked: z.infer<typeof getLogEvents>): Promise<object> {
    const group =
      asked.logGroupName ?? asked.logGroupIdentifier?.replace(/^arn:aws:logs:[^:]*:\d*:log-group:/, '') ?? '';
    const stream = this.#byName.get(nameOf(group, asked.logStreamName));
    if (stream?.isOpen !== true)
      throw new AwsFault('ResourceNotFoundException', 'The specified log stream does not exist.');
    await this.#read(stream);
    const from = asked.startTime ?? -Infinity;
    const to = asked.endTime ?? Infinity;
    const inTime = (event: LogEvent): boolean => event.timestamp >= from && event.timestamp < to;
    const { first, end } = windowOf(stream.events, asked);
    return {
      events: stream.events.slice(first, end).filter(inTime),
      nextForwardToken: `f/${end}`,
      nextBackwardToken: `b/${first}`,
    };
  }

  #read(stream: Stream): Promise<void> {
    stream.reading = stream.reading.then(() => this.#readOn(stream));
    return stream.reading;
  }

  async #readOn(stream: Stream): Promise<void> {
    const at = Math.floor(nowMs(this.#place));
    for (const source of stream.sources) {
      for (;;) {
        const chunk = await this.#place.fleet.logs(attemptId(stream.attempt), source.which, source.offset, READ_BYTES);
        if (chunk.nextOffset === source.offset) break;
        source.offset = chunk.nextOffset;
        const lines = `${source.partial}${chunk.text}`.split('\n');
        source.partial = lines.pop() ?? '';
        for (const message of lines.filter((l) => l !== ''))
          stream.events.push({ timestamp: at, message, ingestionTime: at });
      }
    }
  }

  /** Start of a task's container. */
  open(attempt: string): void {
    const stream = this.#byTask.get(attempt);
    if (stream !== undefined) stream.isOpen = true;
  }

  /** End of a task: its last, unfinished line is complete. */
  async flush(attempt: string): Promise<void> {
    const stream = this.#byTask.get(attempt);
    if (stream === undefined) return;
    await this.#read(stream);
    const at = Math.floor(nowMs(this.#place));
    for (const source of stream.sources) {
      if (source.partial !== '') stream.events.push({ timestamp: at, message: source.partial, ingestionTime: at });
      source.partial = '';
    }
  }
}

const nameOf = (group: string, stream: string): string => JSON.stringify([group, stream]);

/** Events of a page. Tokens name positions: forward pages start there, backward pages end there. */
function windowOf(
  events: readonly LogEvent[],
  asked: { readonly nextToken?: string | undefined; readonly limit: number; readonly startFromHead: boolean },
): { readonly first: number; readonly end: number } {
  const token = asked.nextToken === undefined ? null : /^([fb])\/(\d+)$/.exec(asked.nextToken);
  if (asked.nextToken !== undefined && token === null) {
    throw new AwsFault('InvalidParameterException', 'The specified nextToken is invalid.');
  }
  const forward = token === null ? asked.startFromHead : token[1] === 'f';
  let first = token === null ? (forward ? 0 : events.length) : Math.min(Number(token[2]), events.length);
  let end = first;
  let bytes = 0;
  const room = (event: LogEvent | undefined): boolean => {
    bytes += event === undefined ? Infinity : Buffer.byteLength(event.message) + EVENT_BYTES;
    return end - first < asked.limit && (bytes <= MOST_BYTES || end === first) && event !== undefined;
  };
  if (forward) while (room(events[end])) end++;
  else while (room(events[first - 1])) first--;
  return { first, end };
}
