/** Ends of attempts that teach who shares a machine well. */
import type { Attempt, Job, Usage } from '../../lib/domain/job.ts';
import { NO_LOAD, timesLoad, type Load } from '../../lib/domain/load.ts';
import { attemptId, jobId } from '../../lib/kernel/ids.ts';
import { epochMs, mib, seconds } from '../../lib/kernel/units.ts';
import { neighbourLearner } from '../../lib/policy/colocation/neighbour-learner.ts';
import type { AttemptEnded } from '../../lib/policy/learner.ts';
import { attempt, job, spec } from './builders.ts';
import { pool, resources, stage } from './decision-world.ts';

const MB = 1e6;
const MOST = { diskRead: 100 * MB, diskWritten: 100 * MB, netReceived: 10 * MB, netSent: 10 * MB };
const POOL = pool({ vcpus: 4, gib: 16 });
export const TYPE = POOL.type;
const MAIN = stage({ name: 'main', resources: resources(2, 8) });

const jobOf = (program: string): Job =>
  job({ id: jobId(`j-${program}`), template: `ana/${program}/${program}`, spec: spec({ stages: [MAIN] }) });

const LOADS: Readonly<Record<string, Partial<Load>>> = {
  cruncher: { cpu: 0.95 },
  reader: { cpu: 0.2, diskRead: 80 * MB, ioWait: 0.5 },
};
const loadOf = (program: string): Load => ({ ...NO_LOAD, ...LOADS[program] });

/** An attempt that ended after 100 s, with what ran beside it all the time: the one that began first is `beside`. */
export function ended(
  program: string,
  beside: readonly string[],
  over: {
    readonly runtimeS?: number;
    readonly machine?: Load;
    /** Times slower than alone: it moves so much less per second. */
    readonly slowed?: number;
  } = {},
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
    own: timesLoad(loadOf(program), 1 / (over.slowed ?? 1)),
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

export const template = (program: string): string => `ana/${program}/${program}/main`;

/** A world in which readers disturb one another, and nobody else. */
export function taughtNeighbours() {
  const learner = neighbourLearner({ isKept: true });
  const good: Load = { ...NO_LOAD, cpu: 0.9, diskRead: 60 * MB, ioWait: 0.1 };
  const bad: Load = { ...NO_LOAD, cpu: 0.2, diskRead: 100 * MB, ioWait: 0.7 };
  for (let n = 0; n < 40; n++) {
    learner.observe(ended('cruncher', ['reader'], { machine: good }));
    learner.observe(ended('reader', ['cruncher'], { machine: good }));
    learner.observe(ended('reader', ['reader'], { machine: bad, runtimeS: 150, slowed: 1.5 }));
    learner.observe(ended('reader', [], { runtimeS: 100 }));
  }
  return learner;
}
