import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { ForeignOutput, plainJson, terminalText, visible } from '../../../lib/kernel/terminal-text.ts';
import { renderError } from '../../../lib/cli/failure.ts';
import { json, makeOutput, type Output } from '../../../lib/cli/output.ts';
import { explanation } from '../../../lib/cli/views/explanation.ts';
import { jobStatus, jobsTable } from '../../../lib/cli/views/job-views.ts';
import { renderFrame } from '../../../lib/cli/views/live.ts';
import { jobCostOf, jobOf, moneyOf } from './views.ts';

const NOW = '2026-03-01T12:00:00.000Z';
/** Title, clipboard, cursor, screen, 8-bit CSI, conceal, backspace, bell, reversed order. */
const ATTACK =
  'a\u001b]0;title\u0007b\u001b]52;c;ZWNobw==\u0007c\u001b[2J\u001b[1;1Hd\u009b31me\u001b[8mf\bg\u202eh\u001bPq\u001b\\\rroot#';
/** What a terminal would obey but for line ends, tabs and colours. */
const OBEYED =
  // oxlint-disable-next-line no-control-regex -- those are the ones that it is about
  /\u001b(?!\[(?:[\d;]*)m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u;

function terminal(isTTY: boolean): Output & { readonly out: () => string; readonly err: () => string } {
  let out = '';
  let err = '';
  const at = { isTTY, columns: 100, rows: 30 };
  const output = makeOutput({
    stdout: { ...at, write: (text: string) => (out += text) },
    stderr: { ...at, write: (text: string) => (err += text) },
    env: {},
    noColor: false,
  });
  return { ...output, out: () => out, err: () => err };
}

const hostile = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\u001b', '\u009b', '[', ']', ';', '8', '3', '1', 'm', 'J', '\r', '\n', '\t', '\b', '\u202e', 'x'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
  maxLength: 60,
});

describe('what a terminal would obey', () => {
  it('is not in foreign text, whatever it is', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(visible(text)).not.toMatch(OBEYED);
        for (const control of ['\n', '\t', '\u001b']) expect(visible(text)).not.toContain(control);
        expect(terminalText(text)).not.toMatch(OBEYED);
        // Nor once more: what is shown stays as it is.
        expect(terminalText(terminalText(text))).toBe(terminalText(text));
      }),
      { seed: 1, numRuns: 2000 },
    );
    expect(visible('a\u001b[31mb\nc')).toBe('a\\x1b[31mb\\x0ac');
    expect(terminalText('\u001b[8mhidden\u001b[1;8m\u001b[38;5;1m')).not.toContain('\u001b');
  });

  it('is not in the output of a program, however it is cut into pieces', () => {
    fc.assert(
      fc.property(hostile, fc.array(fc.nat(60), { maxLength: 5 }), (text, cuts) => {
        const foreign = new ForeignOutput();
        const edges = [0, ...cuts.map((c) => Math.min(c, text.length)).sort((a, b) => a - b), text.length];
        const shown = edges.slice(1).map((to, i) => foreign.take(text.slice(edges[i], to)));
        expect(shown.join('')).not.toMatch(OBEYED);
        expect(shown.join('')).not.toContain('\u001b');
      }),
      { seed: 2, numRuns: 2000 },
    );
    const foreign = new ForeignOutput();
    const pieces = ['\u001b[31mred\u001b[0m\r', '\n10%\r20%\r', '\n', '\ttab ü 漢'];
    expect(pieces.map((p) => foreign.take(p)).join('')).toBe('red\n10%\n20%\n\ttab ü 漢');
  });

  it('leaves the colours of our own views', () => {
    const { colors } = terminal(true);
    const painted = colors.bold(colors.red('failed')) + colors.dim(' x') + colors.inverse('y') + colors.bgBlue('z');
    expect(painted).toContain('\u001b[');
    expect(terminalText(painted)).toBe(painted);
  });

  it('reaches no terminal by a result, a remark, a log, an error, a table or a picture', () => {
    const on = terminal(true);
    const job = jobOf({ name: ATTACK, owner: ATTACK, headline: ATTACK, stateReason: ATTACK });
    const facts = { what: ATTACK, got: ATTACK, next: ATTACK, issues: [{ at: ATTACK, message: ATTACK }] };
    on.line(ATTACK);
    on.note(ATTACK);
    on.write(ATTACK);
    on.note(renderError(new EbbError('usage', facts), on));
    on.line(jobsTable(on, [job], NOW));
    on.line(jobStatus(on, job, jobCostOf()));
    on.line(
      explanation(on, {
        ...{ job: 'j-1', name: ATTACK, state: 'pending', at: NOW, headline: ATTACK, waiting: [], considered: [] },
        ...{
          placed: [{ stage: ATTACK, tasks: 1, pool: ATTACK, why: ATTACK }],
          copies: [{ stage: ATTACK, index: 0, state: 'runs', why: ATTACK }],
          moves: [
            {
              stage: ATTACK,
              index: 0,
              from: { instance: 'i-1', pool: 'p' },
              to: { instance: null, pool: 'p' },
              state: 'waits',
              why: ATTACK,
              savedUsd: 1,
              riskUsd: null,
            },
          ],
          excluded: [],
          forecast: [],
          runtime: null,
        },
        admission: { feasible: true, notes: [ATTACK] },
      }),
    );
    json(on, { ATTACK });
    const event = { sequence: 1, at: NOW, atMs: 0, type: 'x', job: null, text: ATTACK, data: {} };
    const health = { market: { name: ATTACK, speed: 1 }, now: NOW, preset: ATTACK };
    on.line(
      on.drawn(
        renderFrame(on, {
          ...{ health: health as never, jobs: [job], instances: [], prices: new Map(), spent: moneyOf() },
          recent: [event],
        }),
      ),
    );
    for (const text of [on.out(), on.err()]) {
      expect(text).toContain('title');
      expect(text).not.toMatch(OBEYED);
      expect(text).not.toContain('\u001b[8m');
    }
  });

  it('passes to files and pipes in logs as the program wrote it', () => {
    const on = terminal(false);
    on.write(ATTACK);
    expect(on.out()).toBe(ATTACK);
  });

  it('is escaped in JSON, which stays the same value', () => {
    const text = plainJson(JSON.stringify({ ATTACK }));
    expect(text).not.toMatch(OBEYED);
    expect(JSON.parse(text)).toEqual({ ATTACK });
  });
});
