import { describe, expect, it } from '@jest/globals';
import type { RunningTask } from '../../../../lib/domain/snapshot.ts';
import { instanceId, jobId } from '../../../../lib/kernel/ids.ts';
import { minus, plus, seconds } from '../../../../lib/kernel/units.ts';
import type { NeighbourBelief } from '../../../../lib/policy/colocation/neighbour-belief.ts';
import type { PlanInput } from '../../../../lib/policy/contracts.ts';
import { goodNeighboursFirst, neighbourSettings } from '../../../../lib/stages/plan/good-neighbours.ts';
import { attempt, job, spec } from '../../../support/builders.ts';
import { distribution } from '../../../../lib/domain/distribution.ts';
import { group, instance, NOW, pool, resources, stage, world } from '../../../support/decision-world.ts';

const MAIN = stage({ name: 'main', resources: resources(1, 1) });
/** Jobs are called after their programs: `reader-3` runs `reader`. */
const programOf = (name: string): string => name.split('-')[0] ?? name;
const jobOf = (name: string, waitedS: number) =>
  job({
    id: jobId(name),
    template: `ana/${programOf(name)}/x`,
    submittedMs: minus(NOW, seconds(waitedS)),
    spec: spec({ name, stages: [MAIN] }),
  });

/** Beside a reader nine of ten are crunchers, and the other way round. */
const belief: Pick<NeighbourBelief, 'groupOf' | 'chances' | 'slowdown'> = {
  groupOf: (template) => template.split('/')[1] ?? null,
  chances: (running, all) => {
    const weights = all.map((key) => (key === running ? 1 : 9));
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map((w) => w / sum);
  },
  // Crunchers slow everybody down, readers nobody.
  slowdown: (template, beside) => ({
    factor: [template, ...beside.map((b) => b.template)].some((t) => t.includes('cruncher')) ? 1.5 : 1,
    sd: 0,
  }),
};

interface World {
  /** Seconds of waiting by job, in the order of submission. */
  readonly waiting: Readonly<Record<string, number>>;
  readonly runs?: string;
  readonly atS?: number;
  /** Running time of each job, seconds, and vCPUs of the cluster, one of which each job takes. */
  readonly runtimeS?: number;
  readonly vcpus?: number;
}

/** Names in the order of the plan. */
function order(
  { waiting, runs = 'reader-0', atS = 0, runtimeS = 600, vcpus = 64 }: World,
  settings: object = {},
): readonly string[] {
  const jobs = new Map([runs, ...Object.keys(waiting)].map((n) => [jobId(n), jobOf(n, waiting[n] ?? 0)]));
  const running = [
    {
      attempt: attempt({
        job: jobId(runs),
        instance: instanceId('i-1'),
        resources: MAIN.resources,
        startedMs: NOW,
        resumedFromS: seconds(0),
      }),
      stage: MAIN,
      readS: seconds(0),
      savedS: seconds(0),
    } as unknown as RunningTask,
  ];
  const groups = Object.keys(waiting).map((n) => group({ id: `${n}/g`, job: jobId(n), stage: MAIN }));
  const { forecasts } = world({ pools: [], groups, runtime: () => distribution([[runtimeS, 1]]) });
  const input = {
    forecasts,
    snapshot: {
      nowMs: plus(NOW, seconds(atS)),
      jobs,
      running,
      groups,
      pools: [],
      limits: { vcpus: 1e9 },
      instances: new Map([['i-1', instance('i-1', pool({ vcpus, gib: 256 }))]]),
    },
    beliefs: { of: () => belief },
  } as unknown as PlanInput;
  const rank = goodNeighboursFirst(neighbourSettings.parse(settings))(input);
  return Object.keys(waiting).toSorted(
    (a, b) => rank(undefined as never, jobId(a)) - rank(undefined as never, jobId(b)),
  );
}
/** How often the first job is of a program, of 200 decisions. */
const firsts = (world: World, settings: object, program: string): number =>
  Array.from({ length: 200 }, (_, n) => order({ ...world, atS: n }, settings)[0] ?? '').filter(
    (name) => programOf(name) === program,
  ).length;

describe('jobs by their neighbours', () => {
  const both = { waiting: { 'reader-1': 30, 'reader-2': 20, 'cruncher-1': 10 } };

  it('are mostly of the program that is good beside those that run', () => {
    expect(firsts(both, {}, 'cruncher')).toBeGreaterThan(160);
    expect(firsts({ ...both, runs: 'cruncher-0' }, {}, 'reader')).toBeGreaterThan(160);
  });

  it('are the same again in the same decision', () => {
    expect(order(both)).toEqual(order(both));
  });

  it('count singly where chances are of jobs', () => {
    const waiting = Object.fromEntries([
      ...Array.from({ length: 30 }, (_, i) => [`reader-${i + 1}`, 30] as const),
      ['cruncher-1', 10],
    ]);
    const programs = firsts({ waiting }, {}, 'cruncher');
    const jobs = firsts({ waiting }, { draws: 'jobs' }, 'cruncher');
    expect(programs).toBeGreaterThan(160);
    // 9 of 9 + 30.
    expect(jobs).toBeGreaterThan(20);
    expect(jobs).toBeLessThan(80);
  });

  it('start before all preferences once they have waited for the limit', () => {
    const waiting = { 'reader-1': 5000, 'cruncher-1': 10, 'cruncher-2': 10 };
    expect(firsts({ waiting }, { byWaiting: true, waitingLimitS: 3600 }, 'reader')).toBe(200);
    expect(firsts({ waiting }, { waitingLimitS: 3600 }, 'reader')).toBeLessThan(60);
  });

  it('start in the order of submission before one of them would wait for too long', () => {
    // 40 jobs of ten minutes on four vCPUs: the last one can start after 100 minutes, some slack taken off.
    const waiting = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`reader-${i + 1}`, 600 - i] as const));
    const of = (limitMinutes: number, settings: object = { aheadOfLimit: true }) =>
      order({ waiting, vcpus: 4 }, { byWaiting: true, waitingLimitS: 60 * limitMinutes, ...settings });
    const submitted = Object.keys(waiting);
    expect(of(90)).toEqual(submitted);
    expect(of(90, {})).not.toEqual(submitted);
    expect(of(300)).not.toEqual(submitted);
  });

  it('are mostly those that slow down and are slowed down little', () => {
    const waiting = { 'cruncher-1': 30, 'cruncher-2': 20, 'reader-1': 10 };
    expect(firsts({ waiting }, { prefers: 'pace', draws: 'jobs' }, 'reader')).toBeGreaterThan(190);
    expect(firsts({ waiting }, { prefers: 'goodness', draws: 'jobs' }, 'reader')).toBeLessThan(50);
  });

  it('of one group are drawn by their waiting times', () => {
    const waiting = { 'cruncher-1': 900, 'cruncher-2': 100 };
    const first = Array.from({ length: 200 }, (_, n) => order({ waiting, atS: n }, { byWaiting: true })[0]);
    const long = first.filter((name) => name === 'cruncher-1').length;
    expect(long).toBeGreaterThan(140);
    expect(long).toBeLessThan(200);
  });
});
