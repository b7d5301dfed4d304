import { describe, expect, it } from '@jest/globals';
import { neighbourLearner } from '../../../../lib/policy/colocation/neighbour-learner.ts';
import { pool } from '../../../support/decision-world.ts';
import { ended, taughtNeighbours as taught, template, TYPE } from '../../../support/neighbours.ts';

describe('what neighbours teach', () => {
  it('is which program is to begin beside which', () => {
    const belief = taught().belief();
    const [cruncher, reader] = [belief.groupOf(template('cruncher')), belief.groupOf(template('reader'))];
    expect(cruncher).not.toBe(reader);
    const all = [cruncher ?? '', reader ?? ''];
    expect(belief.chances(reader ?? '', all)[0]).toBeGreaterThan(0.9);
    const single = [template('cruncher'), template('reader')];
    expect(belief.chances(template('reader'), single, true)[0]).toBeGreaterThan(0.9);
  });

  it('is how much longer a program runs beside another', () => {
    const belief = taught().belief();
    // It had half of the machine.
    const beside = (program: string) =>
      belief.slowdown(template('reader'), [{ template: template(program), part: 0.5 }], TYPE);
    expect(beside('reader').factor).toBeCloseTo(1.5, 1);
    expect(beside('cruncher').factor).toBeLessThan(1.05);
  });

  it('holds for a program that was never measured, if one like it was', () => {
    const belief = taught().belief();
    expect(belief.groupOf('ben/nightly/reader/main')).toBe(belief.groupOf(template('reader')));
    expect(belief.groupOf('ben/nightly/unheard-of/main')).toBeNull();
    expect(
      belief.slowdown('ben/nightly/unheard-of/main', [{ template: template('reader'), part: 1 }], TYPE).factor,
    ).toBe(1);
  });

  it('survives a restart', () => {
    const learner = taught();
    const again = neighbourLearner({ isKept: true });
    again.restore(learner.takeDirty());
    const beside = [{ template: template('reader'), part: 0.5 }];
    expect(again.belief().slowdown(template('reader'), beside, TYPE)).toEqual(
      learner.belief().slowdown(template('reader'), beside, TYPE),
    );
    expect(
      again
        .belief()
        .templates()
        .map((t) => t.group),
    ).toEqual(
      learner
        .belief()
        .templates()
        .map((t) => t.group),
    );
    expect(learner.takeDirty().size).toBe(0);
  });

  it('begins anew where rows are spoiled or of another version', () => {
    const rows = [...taught().takeDirty()];
    for (const spoil of [(t: string) => t.slice(1), (t: string) => t.replace('"version":2', '"version":1'), () => '']) {
      const again = neighbourLearner({ isKept: true });
      again.restore(new Map(rows.map(([key, text]) => [key, spoil(text)])));
      expect(again.belief().groups).toEqual([]);
      expect(again.belief().templates()).toEqual([]);
      again.observe(ended('reader', ['reader']));
      expect(again.belief().groups).toHaveLength(1);
    }
  });

  it('is nothing without measurements', () => {
    const learner = neighbourLearner({ isKept: true });
    learner.observe({ ...ended('reader', ['reader']), usage: null });
    expect(learner.belief().templates()).toEqual([]);
    expect(learner.takeDirty().size).toBe(0);
  });

  it('is bounded, however many programs there are', () => {
    const learner = neighbourLearner({ isKept: true });
    for (let n = 0; n < 2100; n++) learner.observe(ended(`p${n}`, [`p${n - 1}`]));
    expect(learner.belief().templates()).toHaveLength(2000);
    // Rows that are not empty: of templates, and of those that are told apart.
    const rows = [...learner.takeDirty()].flatMap(([key, text]) => (text === '' ? [] : [key.split('/')[1]]));
    expect(rows.filter((kind) => kind === 't')).toHaveLength(2000);
    expect(rows.filter((kind) => kind === 's').length).toBeLessThanOrEqual(64);
    expect(learner.belief().groups.length).toBeLessThanOrEqual(20);
  });
});

describe('slow-downs against what is usual', () => {
  const beside = (program: string, tasks: number) => [{ template: template(program), part: 0.25, tasks }];

  it('are below 1 where there are fewer neighbours than usual, and above where there are more', () => {
    const belief = taught().belief();
    const factor = (tasks: number) =>
      belief.againstUsual(template('reader'), beside('reader', tasks), { type: TYPE, known: 1 }).factor;
    expect(factor(0)).toBeLessThan(0.95);
    expect(factor(3)).toBeGreaterThan(1.05);
    expect(factor(3)).toBeGreaterThan(factor(1));
  });

  it('take what is not known of a place as usual', () => {
    const belief = taught().belief();
    const nothing = belief.againstUsual(template('reader'), [], { type: TYPE, known: 0 });
    expect(nothing).toEqual({ factor: 1, sd: 0 });
  });

  it('grow with what neighbours take of a smaller machine', () => {
    const belief = taught().belief();
    const of = (vcpus: number) =>
      belief.slowdown(template('reader'), beside('reader', 2), pool({ vcpus, gib: 16, type: `m5.of${vcpus}` }).type);
    expect(of(64).factor).toBeLessThanOrEqual(of(2).factor);
  });

  it('are nobody’s for programs that do not slow down', () => {
    const belief = taught().belief();
    expect(belief.tells(template('reader'))).toBe(true);
    expect(belief.tells(template('cruncher'))).toBe(false);
    expect(belief.tellsAny()).toBe(true);
    expect(neighbourLearner({ isKept: true }).belief().tellsAny()).toBe(false);
  });
});

describe('noisy neighbours', () => {
  it('are named where an attempt ran longer beside them', () => {
    const belief = taught().belief();
    const longer = belief.ranLonger(ended('reader', ['reader', 'cruncher'], { runtimeS: 160, slowed: 1.6 }));
    expect(longer?.beside).toBe(template('reader'));
    expect(longer?.factor).toBeGreaterThan(1.4);
    expect(longer?.factor).toBeLessThan(1.8);
  });

  it('are not blamed for what nobody is known for, nor where it did not run longer', () => {
    const belief = taught().belief();
    expect(belief.ranLonger(ended('cruncher', ['reader'], { runtimeS: 160 }))).toBeNull();
    expect(belief.ranLonger(ended('reader', ['reader'], { runtimeS: 100 }))).toBeNull();
    expect(belief.ranLonger(ended('reader', [], { runtimeS: 160, slowed: 1.6 }))).toBeNull();
    expect(belief.ranLonger(ended('unheard-of', ['reader'], { runtimeS: 160 }))).toBeNull();
  });
});
