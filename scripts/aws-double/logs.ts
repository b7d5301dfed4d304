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

/** "as many log events as can fit in a response size of 1 MB (up to 10,000 log events)": the page above. */
const MOST_BYTES = 2 ** 20;
/** What the service counts for an event besides its text: API_PutLogEvents. */
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
  /** A line whose end has not come yet. */
  partial: string;
}

interface Stream {
  readonly attempt: string;
  readonly events: LogEvent[];
  readonly sources: readonly Source[];
  /** The container has been started: until then there is no stream. */
  isOpen: boolean;
  /** Readings follow one another, so that no line comes twice. */
  reading: Promise<void>;
}

/**
 * What tasks print, as log streams. Both outputs go to one stream, a line an event, as the awslogs driver sends them;
 * an empty line is none ("message: Minimum length of 1", API_InputLogEvent). An event's time is when the double read it
 * (at the latest when it was asked for), since files keep none.
 * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/using_awslogs.html Log groups are there as soon as a task
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

  /** The stream of a task's container: `prefix/container/task`; null where the container does not log by awslogs. */
  streamFor(container: ContainerDefinition, task: string): { readonly group: string; readonly stream: string } | null {
    const { logDriver, options } = container.logConfiguration ?? { logDriver: 'json-file', options: {} };
    const group = options['awslogs-group'];
    if (logDriver !== 'awslogs' || group === undefined) return null;
    // Without a prefix Docker names it by the container's id.
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

  /** A task's container runs. */
  open(attempt: string): void {
    const stream = this.#byTask.get(attempt);
    if (stream !== undefined) stream.isOpen = true;
  }

  /** A task has ended: nothing is coming after its last, unfinished line. */
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

/** Which events a page has. Tokens name positions: forward ones go on from there, backward ones end there. */
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
