import type { EventView } from '../../api/schemas.ts';
import { clock } from '../format.ts';
import { text } from './text-table.ts';

/** Names of jobs by id; empty if all lines are about one job. */
export type JobNames = ReadonlyMap<string, string>;

interface Line {
  readonly head: string;
  readonly tail: string;
  /** Indices of the line's tasks; none if it is about something else. */
  readonly tasks: number[];
  times: number;
}

/**
 * One line per event, by its time. Events are stored when they are observed: at high speed a short stop comes after
 * later decisions. Equal events of several tasks in one second share a line.
 */
export function eventLines(events: readonly EventView[], names: JobNames): string[] {
  const lines = new Map<string, Line>();
  for (const event of [...events].sort((a, b) => a.atMs - b.atMs || a.sequence - b.sequence)) {
    const { key, line } = lineOf(event, names);
    const alike = lines.get(key);
    if (alike === undefined) lines.set(key, line);
    else {
      alike.times++;
      alike.tasks.push(...line.tasks);
    }
  }
  return [...lines.values()].map(written);
}

/** `stage[3] starts on i-1` is about task 3. */
const OF_TASK = /^([^[\]]+)\[(\d+)\] (.*)$/s;

function lineOf(event: EventView, names: JobNames): { readonly key: string; readonly line: Line } {
  const at = clock(event.at);
  const [, stage, index, rest] = OF_TASK.exec(event.text) ?? [];
  if (stage === undefined || index === undefined || rest === undefined)
    return { key: `${at} ${event.text}`, line: { head: `${at} ${text(event.text)}`, tail: '', tasks: [], times: 1 } };
  const name = event.job === null ? undefined : names.get(event.job);
  const head = `${at} ${name === undefined ? '' : `${text(name)} `}${text(stage)}`;
  return {
    key: `${at} ${event.job ?? ''} ${stage} ${rest}`,
    line: { head, tail: ` ${text(rest)}`, tasks: [Number(index)], times: 1 },
  };
}

function written({ head, tail, tasks, times }: Line): string {
  if (tasks.length > 0) return `${head}[${ranges(tasks)}]${tail}`;
  return times === 1 ? head : `${head} (${times} times)`;
}

/** `0-3,7` for 0, 1, 2, 3 and 7. */
export function ranges(indices: readonly number[]): string {
  const parts: { readonly from: number; to: number }[] = [];
  for (const index of [...new Set(indices)].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last !== undefined && index === last.to + 1) last.to = index;
    else parts.push({ from: index, to: index });
  }
  return parts
    .map(({ from, to }) => (to === from ? `${from}` : to === from + 1 ? `${from},${to}` : `${from}-${to}`))
    .join(',');
}
