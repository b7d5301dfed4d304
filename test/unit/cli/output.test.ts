import { describe, expect, it } from '@jest/globals';
import { makeOutput, type OutputOptions } from '../../../lib/cli/output.ts';

const stream = (size: object) => ({ write: () => true, isTTY: true, ...size });
const outputOn = (size: object, of: Partial<OutputOptions> = {}) =>
  makeOutput({ stdout: stream(size), stderr: stream(size), env: {}, noColor: false, ...of });

describe('where a command writes', () => {
  it('redraws a terminal of some size, as wide as it is', () => {
    expect(outputOn({ columns: 77, rows: 24 })).toMatchObject({ live: true, liveNotes: true, columns: 77 });
  });

  it('writes lines to a terminal without a window, for nothing would be seen of what is drawn there', () => {
    expect(outputOn({ columns: 0, rows: 24 })).toMatchObject({ live: false, liveNotes: false, columns: 80 });
    expect(outputOn({ columns: 80, rows: 0 })).toMatchObject({ live: false, liveNotes: false, columns: 80 });
  });

  it('takes COLUMNS where the terminal does not say, within reason', () => {
    expect(outputOn({}, { env: { COLUMNS: '132' } }).columns).toBe(132);
    expect(outputOn({ columns: 77 }, { env: { COLUMNS: '132' } }).columns).toBe(77);
    for (const odd of ['', 'wide', '-5', '0', '1e9']) expect(outputOn({}, { env: { COLUMNS: odd } }).columns).toBe(80);
    expect(outputOn({ columns: 3 }).columns).toBe(40);
  });

  it('writes lines where somebody asks for plain text', () => {
    const size = { columns: 80, rows: 24 };
    expect(outputOn(size, { noColor: true })).toMatchObject({ live: false, liveNotes: false });
    expect(outputOn(size, { env: { TERM: 'dumb' } })).toMatchObject({ live: false, liveNotes: false });
  });
});
