import { describe, expect, it } from '@jest/globals';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import { neighbourLearner } from '../../../../lib/policy/colocation/neighbour-learner.ts';
import {
  exportedRows,
  neighboursFile,
  rowsOfNeighboursFile,
} from '../../../../lib/policy/colocation/neighbours-file.ts';
import { taughtNeighbours, template, TYPE } from '../../../support/neighbours.ts';

const text = (): string => neighboursFile(exportedRows(taughtNeighbours().takeDirty()));

describe('a file of what was learned of neighbours', () => {
  it('teaches another learner the same', () => {
    const [from, to] = [taughtNeighbours().belief(), neighbourLearner({ isKept: true })];
    to.restore(rowsOfNeighboursFile(text(), 'n.json'));
    const beside = [{ template: template('reader'), part: 0.5 }];
    expect(to.belief().slowdown(template('reader'), beside, TYPE)).toEqual(
      from.slowdown(template('reader'), beside, TYPE),
    );
    expect(to.belief().groups).toEqual(from.groups);
    expect(to.belief().templates()).toEqual(from.templates());
  });

  it('has nothing of instances, nor empty rows', () => {
    const rows = exportedRows(
      new Map([
        ['neighbours/i/i-1', '{}'],
        ['neighbours/t/a/b/c', ''],
        ['neighbours/t/a/b/d', '{}'],
        ['neighbours/groups', '{}'],
      ]),
    );
    expect(Object.keys(rows)).toEqual(['neighbours/groups', 'neighbours/t/a/b/d']);
  });

  it.each([
    ['no JSON', 'x', 'the file is no JSON'],
    ['null', 'null', 'another kind of file'],
    ['another kind', '{"format":"x"}', 'another kind of file'],
    ['another version', '{"format":"ebbtide-neighbours","version":1,"rows":{}}', 'of version 1'],
    ['no rows', '{"format":"ebbtide-neighbours","version":2}', 'rows'],
    [
      'rows of another learner',
      '{"format":"ebbtide-neighbours","version":2,"rows":{"runtimes/x":"{}"}}',
      'rows.runtimes/x',
    ],
    [
      'rows of instances',
      '{"format":"ebbtide-neighbours","version":2,"rows":{"neighbours/i/i-1":"{}"}}',
      'neighbours/i/i-1',
    ],
    ['a row that is no text', '{"format":"ebbtide-neighbours","version":2,"rows":{"neighbours/groups":{}}}', 'rows'],
  ])('is refused with a reason: %s', (_, given, what) => {
    let refusal: unknown;
    try {
      rowsOfNeighboursFile(given, 'n.json');
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(EbbError);
    const { code, facts } = refusal as EbbError;
    expect(code).toBe('usage');
    expect(facts.what).toContain(what);
    expect(facts.got).toBe('n.json');
    expect(facts.next).toContain('ebb neighbours export');
  });

  it('is refused with more rows than a deployment has', () => {
    const rows = Object.fromEntries(Array.from({ length: 5001 }, (_, n) => [`neighbours/t/a/b/${n}`, '{}']));
    expect(() => rowsOfNeighboursFile(neighboursFile(rows), 'n.json')).toThrow(EbbError);
  });
});
