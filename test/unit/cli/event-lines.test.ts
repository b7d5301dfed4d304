import { describe, expect, it } from '@jest/globals';
import type { EventView } from '../../../lib/api/schemas.ts';
import { eventLines, ranges } from '../../../lib/cli/views/event-lines.ts';

const START_MS = Date.UTC(2026, 0, 14, 10, 43, 0);
let sequence = 0;
function event(afterS: number, text: string, job: string | null = null): EventView {
  const atMs = START_MS + afterS * 1000;
  sequence++;
  return { sequence, at: new Date(atMs).toISOString(), atMs, type: 'attempt-started', job, text, data: {} };
}

describe('lines of what happened', () => {
  it('are in the order in which it happened, not in which it was learned', () => {
    const lines = eventLines([event(9, 'c happened'), event(3, 'a happened'), event(5, 'b happened')], new Map());
    expect(lines).toEqual(['10:43:03 a happened', '10:43:05 b happened', '10:43:09 c happened']);
  });

  it('keep the order of learning within an instant', () => {
    expect(eventLines([event(1, 'first'), event(1, 'second')], new Map())).toEqual([
      '10:43:01 first',
      '10:43:01 second',
    ]);
  });

  it('name the job where there are several', () => {
    const names = new Map([['j-1', 'render']]);
    expect(eventLines([event(0, 'frames[3] succeeded', 'j-1')], names)).toEqual([
      '10:43:00 render frames[3] succeeded',
    ]);
    expect(eventLines([event(0, 'frames[3] succeeded', 'j-1')], new Map())).toEqual(['10:43:00 frames[3] succeeded']);
  });

  it('take together what happened alike to several tasks of a job in a second', () => {
    const events = [0, 1, 2, 5].map((i) => event(7, `frames[${i}] starts on i-1`, 'j-1'));
    const others = [event(7, 'frames[9] starts on i-2', 'j-1'), event(7, 'frames[3] starts on i-1', 'j-2')];
    const names = new Map([
      ['j-1', 'one'],
      ['j-2', 'two'],
    ]);
    expect(eventLines([...events, ...others], names)).toEqual([
      '10:43:07 one frames[0-2,5] starts on i-1',
      '10:43:07 one frames[9] starts on i-2',
      '10:43:07 two frames[3] starts on i-1',
    ]);
  });

  it('count what was done twice at once, such as buying two instances', () => {
    expect(eventLines([event(4, 'buying c5.large'), event(4, 'buying c5.large')], new Map())).toEqual([
      '10:43:04 buying c5.large (2 times)',
    ]);
    expect(eventLines([event(4, 'buying c5.large'), event(5, 'buying c5.large')], new Map())).toHaveLength(2);
  });

  it('show control characters of foreign names instead of sending them', () => {
    expect(eventLines([event(0, 's\u001b[1] succeeded', 'j')], new Map())[0]).toContain('\\x1b');
  });
});

describe('ranges of indices', () => {
  it.each([
    [[4], '4'],
    [[1, 0], '0,1'],
    [[3, 1, 2], '1-3'],
    [[0, 1, 2, 4, 6, 7], '0-2,4,6,7'],
    [[2, 2], '2'],
  ])('%j is written %s', (indices, written) => expect(ranges(indices)).toBe(written));
});
