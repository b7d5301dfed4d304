import { afterAll } from '@jest/globals';
import { seconds, usd } from '../../../../lib/kernel/units.ts';
import type { Allotment } from '../../../../lib/domain/plan.ts';
import type { Snapshot } from '../../../../lib/domain/snapshot.ts';
import type { Deciders } from '../../../../lib/drivers/sim/simulation.ts';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { deterministic } from '../../../../lib/policy/solver.ts';
import { greedyPlan } from '../../../../lib/stages/plan/greedy.ts';
import { openWorkload } from '../../../../lib/workload/open.ts';
import type { WorkloadJob } from '../../../../lib/workload/workload.ts';
import { resources } from '../../../support/builders.ts';
import { runOf, zones } from '../../../support/observed-run.ts';
import { simulated, simulatedJob } from '../../../support/simulated.ts';
import { bringing, describeTactic, without, SHORT_OF_MACHINES, BY_NEIGHBOURS } from '../../../support/tactics.ts';

/** Tactics of the plan stage. */

const highs = highsSolver();
const solver = deterministic(highs, 10);
afterAll(() => highs.close());

const RUNTIME_S = 3000;

interface Wanted {
  readonly tasks: number;
  readonly gang?: true;
  readonly worthUsd: number;
  readonly submittedS?: number;
}

/** Best-effort work, each task of which fills an instance. */
function worth(name: string, { tasks, gang = undefined, worthUsd, submittedS = 0 }: Wanted): WorkloadJob {
  const made = simulatedJob(name, submittedS, new Array<number>(tasks).fill(RUNTIME_S), {
    stage: {
      gang: gang === true,
      resources: resources(4),
      expectedRuntimeS: seconds(RUNTIME_S),
      command: [name],
    },
  });
  return { ...made, spec: { ...made.spec, value: { onTimeUsd: usd(worthUsd), worthlessAfterS: null } } };
}

describeTactic({
  tactic: 'what is worth more goes before what came first',
  acts: async (deciders) => {
    const jobs = [worth('first', { tasks: 1, worthUsd: 1 }), worth('dear', { tasks: 1, worthUsd: 9, submittedS: 20 })];
    const { stays } = await runOf({ jobs, trace: zones({}), vcpus: 4, solver }, deciders);
    return stays[0]?.job === 'dear';
  },
  under: ['ebbtide', 'tributary', 'greedy', 'on-demand', 'jvusched', 'jvusched-base'],
  mixed: [
    without('first come, first served', { plan: 'fcfs' }),
    without('the plan of spot-greedy', { plan: 'spot-greedy' }),
    without('the plan of uniform-progress', { plan: 'uniform-progress' }),
    bringing('a fleet with the greedy plan', { extends: 'fleet', plan: 'greedy' }),
  ],
});

describeTactic({
  tactic: 'two gangs that are worth more together go before one that is worth more than either',
  // Room for six instances. The largest is also worth most by the instance, so that a greedy fill begins with it.
  acts: async (deciders) => {
    const jobs = [
      worth('large', { tasks: 4, gang: true, worthUsd: 6 }),
      worth('one', { tasks: 3, gang: true, worthUsd: 4, submittedS: 10 }),
      worth('two', { tasks: 3, gang: true, worthUsd: 4, submittedS: 10 }),
    ];
    const config = { solverGap: 0, lookAheadSlots: 1 };
    const { stays } = await runOf({ jobs, trace: zones({}), vcpus: 24, config, solver }, deciders);
    return stays.slice(0, 6).every((s) => s.job !== 'large');
  },
  under: [
    'ebbtide',
    'tributary',
    'on-demand',
    'srpt',
    'jvusched',
    'jvusched-base',
    'slearn',
    '3sigma',
    '3sigma-tl',
    'point-est',
    'srpt-fused',
    'srpt-speculation',
    'srpt-copies',
    'hopper',
  ],
  mixed: [
    without('the greedy plan', { plan: 'greedy' }),
    without('first come, first served', { plan: 'fcfs' }),
    bringing('a fleet with the solver', { extends: 'fleet', plan: 'milp' }),
    bringing('spot-greedy with the solver', { extends: 'spot-greedy', plan: 'milp' }),
  ],
});

/** How many tasks a plan stops while it starts others of their stage in the same pool. */
function exchanges({ preemptions, starts }: Allotment, { groups, running, instances }: Snapshot): number {
  const stages = new Map(groups.map((g) => [g.id, `${g.job}/${g.stage.name}`]));
  const begun = new Set(starts.map(({ option }) => `${stages.get(option.group) ?? '?'} ${option.offer.pool}`));
  const stopped = new Set(preemptions.map((p) => p.attempt));
  return running.filter(({ attempt }) => {
    const pool = instances.get(attempt.instance)?.pool.id;
    return stopped.has(attempt.id) && begun.has(`${attempt.job}/${attempt.stage} ${pool}`);
  }).length;
}

/** Workloads that exchanges were seen in: jobs of hundreds of tasks, of which a few at a time have room. */
const CROWDED = [
  { seed: 11, vcpus: 24 },
  { seed: 3, vcpus: 24 },
  { seed: 5, vcpus: 16 },
];

async function exchangesOf(deciders: Deciders): Promise<number> {
  let count = 0;
  const plan: typeof deciders.stages.plan = async (input, of) => {
    const allotment = await deciders.stages.plan(input, of);
    count += exchanges(allotment, input.snapshot);
    return allotment;
  };
  for (const { seed, vcpus } of CROWDED) {
    const jobs: WorkloadJob[] = [];
    for await (const job of (await openWorkload('synthetic:jobs=10,perHour=30', { seed })).jobs()) jobs.push(job);
    await simulated(jobs, {
      vcpus,
      seed,
      deciders: () => ({ ...deciders, stages: { ...deciders.stages, plan } }),
    });
  }
  return count;
}

describeTactic({
  tactic: 'no task is exchanged for another of its stage',
  acts: async (deciders) => (await exchangesOf(deciders)) === 0,
  under: [
    'ebbtide',
    'tributary',
    'greedy',
    'on-demand',
    'spot-greedy',
    'uniform-progress',
    'fifo',
    ...BY_NEIGHBOURS,
    'resource-aware',
    'srpt',
    'las',
    'supercloud',
    'fargate',
    'jvusched',
    'jvusched-greedy',
    'jvusched-base',
    ...SHORT_OF_MACHINES,
  ],
  mixed: [
    without('first come, first served', { plan: 'fcfs' }),
    {
      about: 'the greedy plan as it is before exchanges are taken out',
      preset: { extends: 'greedy' },
      swap: (of) => ({ ...of, plan: greedyPlan }),
      acts: false,
    },
  ],
});
