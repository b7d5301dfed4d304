import { describe, expect, it } from '@jest/globals';
import type { InstanceView, RunningTask } from '../../../../lib/domain/snapshot.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
import type { NeighbourBelief, Tenant } from '../../../../lib/policy/colocation/neighbour-learner.ts';
import { NO_SLOWDOWN } from '../../../../lib/policy/colocation/slowdowns.ts';
import type { DecisionContext } from '../../../../lib/policy/contracts.ts';
import { firstFit } from '../../../../lib/stages/place/first-fit.ts';
import { amongGoodNeighbours } from '../../../../lib/stages/place/good-neighbours.ts';
import { job, spec } from '../../../support/builders.ts';
import { instance, pool, resources, stage } from '../../../support/decision-world.ts';
import { host, nameOf, tasksOf } from '../../../support/tasks-to-place.ts';

const POOL = pool({ vcpus: 4, gib: 16 });
const MAIN = stage({ name: 'main', resources: resources(1, 4) });
const jobOf = (name: string) =>
  job({ id: jobId(name), template: `ana/${name}/${name}`, spec: spec({ name, stages: [MAIN] }) });

/** Readers slow readers down by half for each that has all of a machine; nobody else minds. */
const isReader = (template: string): boolean => template.includes('reader');
const belief: Pick<NeighbourBelief, 'slowdown' | 'isSlowed'> = {
  isSlowed: isReader,
  slowdown: (template: string, beside: readonly Tenant[]) => {
    if (!isReader(template)) return NO_SLOWDOWN;
    const readers = beside.filter((b) => isReader(b.template)).reduce((sum, b) => sum + b.part, 0);
    return { factor: 1 + 4 * readers, sd: 0 };
  },
};

const running = (name: string): RunningTask =>
  ({ attempt: { job: jobId(name), resources: MAIN.resources }, stage: MAIN }) as unknown as RunningTask;
const withTasks = (id: string, names: readonly string[]): InstanceView => ({
  ...instance(id, POOL),
  attempts: names.map(running),
});

function place(name: string, count: number, there: readonly InstanceView[], of: Partial<typeof belief> = {}) {
  const jobs = new Map(['reader', 'cruncher', 'reader-too'].map((n) => [jobId(n), jobOf(n)]));
  const context = {
    snapshot: { jobs, instances: new Map(there.map((v) => [v.instance.id, v])) },
    beliefs: { of: () => ({ ...belief, ...of }) },
  } as unknown as DecisionContext;
  const hosts = there.map(({ instance: { id } }) => ({
    ...host({ id: nameOf(id), vcpus: 4, gib: 16 }),
    on: id,
    pool: POOL,
  }));
  const tasks = tasksOf({ id: name, count, runtimeS: 60, need: MAIN.resources }).map((t) => ({
    ...t,
    task: { job: jobId(name), stage: 'main', index: t.task.index },
  }));
  return amongGoodNeighbours(firstFit)(tasks, hosts, context)
    .map((p) => nameOf(p.on))
    .sort();
}

describe('placement among good neighbours', () => {
  it('keeps programs apart that slow one another down, where there is another place', () => {
    const there = [withTasks('i-1', ['reader']), withTasks('i-2', ['cruncher'])];
    expect(place('reader-too', 1, there)).toEqual(['i-2']);
    expect(place('cruncher', 1, there)).toEqual(['i-1']);
  });

  it('spreads programs that slow their own kind down', () => {
    expect(place('reader', 2, [withTasks('i-1', []), withTasks('i-2', [])])).toEqual(['i-1', 'i-2']);
  });

  it('makes nothing wait: the last place will do', () => {
    expect(place('reader-too', 2, [withTasks('i-1', ['reader'])])).toEqual(['i-1', 'i-1']);
  });

  it('is the packer alone where nothing is known', () => {
    const there = [withTasks('i-1', ['reader']), withTasks('i-2', ['cruncher'])];
    expect(place('reader-too', 2, there, { isSlowed: () => false })).toEqual(['i-1', 'i-1']);
  });
});
