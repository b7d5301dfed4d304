import {
  GetLogEventsCommand,
  ResourceNotFoundException,
  type CloudWatchLogsClient,
  type GetLogEventsCommandInput,
} from '@aws-sdk/client-cloudwatch-logs';
import type { AttemptId } from '../../../kernel/ids.ts';
import type { LogChunk, LogEnd } from '../../../ports/fleet.ts';
import { classify } from '../errors.ts';
import { logStreamOf, logUrl } from './log-place.ts';
import { endMarkOf } from './request-names.ts';
import { isReport, parseReport, type TaskReport } from './report.ts';
import { wholeCharacters } from '../../log-text.ts';

export interface TaskLogsOptions {
  readonly region: string;
  readonly client: CloudWatchLogsClient;
  readonly logGroup: string;
  /** Log stream of an attempt; null before its task exists. */
  readonly streamOf: (attempt: AttemptId) => Promise<string | null>;
}

/** End of an attempt's log. */
export interface LastWords {
  /** Report of the entrypoint; null if missing, as after a kill or a lost instance. */
  readonly report: TaskReport | null;
  /** Last lines of the program. */
  readonly text: string;
}

/** Place to go on reading: `token` finds what follows `offset` bytes of a stream. */
interface Mark {
  readonly offset: number;
  readonly token: string;
}

/** Streams whose marks are kept. A follower's next question reads nothing twice. */
const STREAMS = 200;
/** Lines read from the end. Lines of the other output may follow the report, since both are sent as they are read. */
const LAST_LINES = 100;

/**
 * Output of tasks from CloudWatch Logs, by byte offset as in a file. The awslogs driver sends lines without their ends.
 * They are joined by line feeds, so the last line has none until the next one comes. The driver sends both outputs to
 * one stream, so either request gets both, and the answer says so. The entrypoint's report is left out.
 */
export class TaskLogs {
  readonly #options: TaskLogsOptions;
  readonly #marks = new Map<string, Mark>();

  constructor(options: TaskLogsOptions) {
    this.#options = options;
  }

  async read(attempt: AttemptId, _stream: 'stdout' | 'stderr', offset: number, maxBytes: number): Promise<LogChunk> {
    const name = await this.#options.streamOf(attempt);
    if (name === null) return { text: '', nextOffset: offset, totalBytes: 0, isMerged: true };
    const mark = this.#marks.get(name);
    const from = mark !== undefined && mark.offset <= offset ? mark : null;
    const to = offset + Math.max(0, maxBytes);
    const { wanted, totalBytes, next } = await this.#piece({ name, mark: endMarkOf(attempt) }, from, { offset, to });
    if (next !== null) this.#remember(name, next);
    const whole = wholeCharacters(wanted);
    const url = logUrl(this.#options, name);
    return { text: whole.toString('utf8'), nextOffset: offset + whole.length, totalBytes, isMerged: true, url };
  }

  /** End of a task's log as far as it has arrived. Throws refusals of CloudWatch Logs. */
  async lastWords(attempt: AttemptId, task: string): Promise<LastWords> {
    const mark = endMarkOf(attempt);
    const page = await this.#page(logStreamOf(task), { startFromHead: false, limit: LAST_LINES });
    const lines = page?.lines ?? [];
    const said = lines.findLast((line) => isReport(line, mark));
    return {
      report: said === undefined ? null : parseReport(said),
      text: lines.filter((line) => !isReport(line, mark)).join('\n'),
    };
  }

  /** Last lines of both outputs, in one request for a log of any length. */
  async end(attempt: AttemptId): Promise<LogEnd> {
    const name = await this.#options.streamOf(attempt);
    const page = name === null ? null : await this.#page(name, { startFromHead: false, limit: LAST_LINES });
    const mark = endMarkOf(attempt);
    return { text: (page?.lines ?? []).filter((line) => !isReport(line, mark)).join('\n'), isMerged: true };
  }

  /**
   * Bytes `offset` to `to` of the stream, read from a mark or the beginning. One more line shows whether the stream
   * goes on.
   */
  async #piece(
    { name, mark }: { readonly name: string; readonly mark: string },
    from: Mark | null,
    { offset, to }: { readonly offset: number; readonly to: number },
  ): Promise<{ wanted: Buffer; totalBytes: number; next: Mark | null }> {
    let at = from?.offset ?? 0;
    let token = from?.token;
    let next: Mark | null = null;
    const parts: Buffer[] = [];
    while (at <= to) {
      const page = await this.#page(name, {
        startFromHead: true,
        ...(token === undefined ? {} : { nextToken: token }),
      });
      if (page === null) break;
      for (const line of page.lines) {
        if (isReport(line, mark)) continue;
        const bytes = Buffer.from(at === 0 ? line : `\n${line}`);
        if (at < to && at + bytes.length > offset) parts.push(bytes.subarray(Math.max(0, offset - at), to - at));
        at += bytes.length;
      }
      // "If you have reached the end of the stream, it returns the same token you passed in" (API_GetLogEvents).
      if (page.token === undefined || page.token === token) break;
      token = page.token;
      if (at <= offset && at > 0) next = { offset: at, token };
    }
    return { wanted: Buffer.concat(parts), totalBytes: at, next };
  }

  async #page(
    logStreamName: string,
    from: Pick<GetLogEventsCommandInput, 'startFromHead' | 'limit' | 'nextToken'>,
  ): Promise<{ lines: string[]; token: string | undefined } | null> {
    try {
      const answer = await this.#options.client.send(
        new GetLogEventsCommand({ logGroupName: this.#options.logGroup, logStreamName, ...from }),
      );
      return { lines: (answer.events ?? []).map((e) => e.message ?? ''), token: answer.nextForwardToken };
    } catch (error) {
      // Missing stream: it appears with the first line.
      if (error instanceof ResourceNotFoundException) return null;
      throw classify(error, 'logs GetLogEvents');
    }
  }

  #remember(name: string, mark: Mark): void {
    this.#marks.delete(name);
    this.#marks.set(name, mark);
    for (const oldest of this.#marks.keys()) {
      if (this.#marks.size <= STREAMS) break;
      this.#marks.delete(oldest);
    }
  }
}
