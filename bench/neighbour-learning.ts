/**
 * Time that learning about neighbours takes in a cycle, and whether it grows with what is known.
 *   npm run bench:neighbour-learning -- [--cycles 200] [--ends 100]
 *
 * A deployment with templates, of 20 kinds of programs, and instances with ten neighbours each; in every cycle `ends`
 * attempts end, on instances drawn at random, and what changed is made ready for the store. Clustering is in it. The
 * same changes are timed with a hundredth of the templates and instances: O(changes) is a ratio near 1.
 */
import { parseArgs } from 'node:util';
import type { Job, Usage } from '../lib/domain/job.ts';
import { NO_LOAD, type Load } from '../lib/domain/load.ts';
import { attemptId, instanceId } from '../lib/kernel/ids.ts';
import { epochMs, mib, plus, seconds } from '../lib/kernel/units.ts';
import { randomStream, type Uniform } from '../lib/kernel/random.ts';
import { transfersOf } from '../lib/market/transfers.ts';
import { neighbourLearner } from '../lib/policy/colocation/neighbour-learner.ts';
import type { AttemptEnded } from '../lib/policy/learner.ts';
import { asMs, machine, percentile, printLine } from './figures.ts';
import { attempt, job, needOf, NOW, poolOf, spec, stage } from './load/values.ts';

const { values: options } = parseArgs({
  options: { cycles: { type: 'string', default: '200' }, ends: { type: 'string', default: '100' } },
});
const [cycles, ends] = [Number(options.cycles), Number(options.ends)];
const SEED = 7;
const KINDS_OF_PROGRAMS = 20;
const NEIGHBOURS = 10;
const MB = 1e6;
const POOL = poolOf({ type: 'm5.4xlarge', vcpus: 16, gib: 64 });
const MOST = transfersOf(POOL.type);
const NEED = needOf(1, 4096);

/** Programs of one kind use machines alike, with some spread. */
function loadOf(template: number, draw: Uniform): Load {
  const kind = template % KINDS_OF_PROGRAMS;
  const spread = 0.98 + 0.04 * draw();
  return {
    ...NO_LOAD,
    cpu: (0.05 + 0.2 * (kind % 5)) * spread,
    diskRead: 20 * MB * Math.floor(kind / 5) * spread,
    netSent: kind % 3 === 0 ? 100 * MB * spread : 0,
    ioWait: (kind % 4) / 5,
  };
}

interface Size {
  readonly templates: number;
  readonly instances: number;
}

function timed({ templates, instances }: Size) {
  const draw = randomStream(SEED, `${templates} ${instances}`);
  const any = (n: number): number => Math.floor(draw() * n);
  const jobs: readonly Job[] = Array.from({ length: templates }, (_, n) =>
    job(`j-${n}`, { template: `team-${n % 9}/flow-${n}/program-${n}`, spec: spec({ stages: [stage()] }) }),
  );
  const jobAt = (n: number): Job => jobs[n % templates] as Job;
  let count = 0;
  const end = (template: number, cycle: number): AttemptEnded => {
    const endsAt = plus(NOW, seconds(10 * cycle));
    const began = plus(NOW, seconds(10 * cycle - 300));
    const ran = (of: number) => ({
      ...attempt({ id: attemptId(`a${count++}`), instance: instanceId(`i-${any(instances)}`), resources: NEED }),
      job: jobAt(of).id,
      stage: 'main',
      startedMs: epochMs(Number(began) + any(100_000)),
    });
    const load = loadOf(template, draw);
    const usage: Usage = { maxRss: mib(1000), cpuS: seconds(10), own: load, machine: { load, most: MOST } };
    return {
      kind: 'attempt-ended',
      atMs: endsAt,
      outcome: 'succeeded',
      job: jobAt(template),
      stage: stage(),
      attempt: ran(template),
      runtimeS: seconds(200 * (0.9 + 0.2 * draw())),
      pool: POOL,
      neighbours: Array.from({ length: NEIGHBOURS }, () => {
        const other = any(templates);
        return { attempt: ran(other), job: jobAt(other) };
      }),
      usage,
    } as unknown as AttemptEnded;
  };
  const learner = neighbourLearner({ isKept: true });
  // Every template and instance is known before it is timed.
  for (let n = 0; n < Math.max(templates, instances); n++) learner.observe(end(n % templates, 0));
  learner.takeDirty();
  const ms: number[] = [];
  let rows = 0;
  for (let cycle = 1; cycle <= cycles; cycle++) {
    const events = Array.from({ length: ends }, () => end(any(templates), cycle));
    const began = performance.now();
    for (const event of events) learner.observe(event);
    rows += learner.takeDirty().size;
    ms.push(performance.now() - began);
  }
  return { ms, rows: rows / cycles, groups: learner.belief().groups.length };
}

console.log(machine());
console.log(`seed ${SEED}, ${cycles} cycles with ${ends} ends each\n`);
const shown = (size: Size) => {
  const { ms, rows, groups } = timed(size);
  const name = `${size.templates} templates in ${groups} groups, ${size.instances} instances`;
  printLine(name, ms, asMs);
  console.log(`  rows for the store per cycle: ${rows.toFixed(0)}`);
  return percentile(ms, 0.5);
};
shown({ templates: 10, instances: 100 });
const small = shown({ templates: 20, instances: 100 });
const large = shown({ templates: 1000, instances: 10_000 });
console.log(`\nmedian of the large over that of the small: ${(large / small).toFixed(2)}`);
console.log(
  `to reach: below 20 ms a cycle; ${large < 20 ? 'reached' : 'MISSED'} in the median, see p99 for clustering`,
);
