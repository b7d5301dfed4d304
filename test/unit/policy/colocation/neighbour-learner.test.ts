import { describe, expect, it } from '@jest/globals';
import type { Attempt, Job, Usage } from '../../../../lib/domain/job.ts';
import { NO_LOAD, type Load } from '../../../../lib/domain/load.ts';
import { attemptId, jobId } from '../../../../lib/kernel/ids.ts';
import { epochMs, mib, seconds } from '../../../../lib/kernel/units.ts';
import type { AttemptEnded } from '../../../../lib/policy/learner.ts';
import { neighbourLearner } from '../../../../lib/policy/colocation/neighbour-learner.ts';
import { attempt, job, spec } from '../../../support/builders.ts';
import { pool, resources, stage } from '../../../support/decision-world.ts';

const MOST = { diskRead: 100, diskWritten: 100, netReceived: 10, netSent: 10 };
const POOL = pool({ vcpus: 4, gib: 16 });
const MAIN = stage({ name: 'main', resources: resources(2, 8) });

const jobOf = (program: string): Job =>
  job({ id: jobId(`j-${program}`), template: `ana/${program}/${program}`, spec: spec({ stages: [MAIN] }) });

const LOADS: Readonly<Record<string, Partial<Load>>> = {
  cruncher: { cpu: 0.95 },
  reader: { cpu: 0.2, diskRead: 80, ioWait: 0.5 },
};
const loadOf = (program: string): Load => ({ ...NO_LOAD, ...LOADS[program] });

/** An attempt that ended after 100 s, with what ran beside it all the time: the one that began first is `beside`. */
function ended(
  program: string,
  beside: readonly string[],
  over: { readonly runtimeS?: number; readonly machine?: Load } = {},
) {
  const ran = (name: string, startedS: number): Attempt =>
    attempt({
      id: attemptId(`j-${name}.main.0.1`),
      stage: 'main',
      resources: MAIN.resources,
      startedMs: epochMs(1000 * startedS),
    });
  const usage: Usage = {
    maxRss: mib(4096),
    cpuS: seconds(50),
    own: loadOf(program),
    machine: { load: over.machine ?? loadOf(program), most: MOST },
  };
  return {
    kind: 'attempt-ended',
    atMs: epochMs(200_000),
    outcome: 'succeeded',
    job: jobOf(program),
    stage: MAIN,
    attempt: ran(program, 100),
    runtimeS: seconds(over.runtimeS ?? 100),
    pool: POOL,
    neighbours: beside.map((name) => ({ attempt: ran(name, 50), job: jobOf(name) })),
    usage,
  } as unknown as AttemptEnded;
}

const template = (program: string): string => `ana/${program}/${program}/main`;

/** A world in which readers disturb one another, and nobody else. */
function taught() {
  const learner = neighbourLearner();
  const good: Load = { ...NO_LOAD, cpu: 0.9, diskRead: 60, ioWait: 0.1 };
  const bad: Load = { ...NO_LOAD, cpu: 0.2, diskRead: 100, ioWait: 0.7 };
  for (let n = 0; n < 40; n++) {
    learner.observe(ended('cruncher', ['reader'], { machine: good }));
    learner.observe(ended('reader', ['cruncher'], { machine: good }));
    learner.observe(ended('reader', ['reader'], { machine: bad, runtimeS: 150 }));
    learner.observe(ended('reader', [], { runtimeS: 100 }));
  }
  return learner;
}

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
      belief.slowdown(template('reader'), [{ template: template(program), part: 0.5 }]);
    expect(beside('reader').factor).toBeCloseTo(1.5, 1);
    expect(beside('cruncher').factor).toBeLessThan(1.05);
    expect(belief.isSlowed(template('reader'))).toBe(true);
    expect(belief.isSlowed(template('cruncher'))).toBe(false);
  });

  it('holds for a program that was never measured, if one like it was', () => {
    const belief = taught().belief();
    expect(belief.groupOf('ben/nightly/reader/main')).toBe(belief.groupOf(template('reader')));
    expect(belief.groupOf('ben/nightly/unheard-of/main')).toBeNull();
    expect(belief.slowdown('ben/nightly/unheard-of/main', [{ template: template('reader'), part: 1 }]).factor).toBe(1);
  });

  it('survives a restart', () => {
    const learner = taught();
    const again = neighbourLearner();
    again.restore(learner.takeDirty());
    const beside = [{ template: template('reader'), part: 0.5 }];
    expect(again.belief().slowdown(template('reader'), beside)).toEqual(
      learner.belief().slowdown(template('reader'), beside),
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
    for (const spoil of [(t: string) => t.slice(1), (t: string) => t.replace('"version":1', '"version":2'), () => '']) {
      const again = neighbourLearner();
      again.restore(new Map(rows.map(([key, text]) => [key, spoil(text)])));
      expect(again.belief().groups).toEqual([]);
      expect(again.belief().templates()).toEqual([]);
      again.observe(ended('reader', ['reader']));
      expect(again.belief().groups).toHaveLength(1);
    }
  });

  it('is nothing without measurements', () => {
    const learner = neighbourLearner();
    learner.observe({ ...ended('reader', ['reader']), usage: null });
    expect(learner.belief().templates()).toEqual([]);
    expect(learner.takeDirty().size).toBe(0);
  });

  it('is bounded, however many programs there are', () => {
    const learner = neighbourLearner();
    for (let n = 0; n < 2100; n++) learner.observe(ended(`p${n}`, []));
    expect(learner.belief().templates()).toHaveLength(2000);
    expect(learner.belief().groups.length).toBeLessThanOrEqual(20);
  });
});
