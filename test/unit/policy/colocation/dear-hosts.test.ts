import { describe, expect, it } from '@jest/globals';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { certain } from '../../../../lib/domain/distribution.ts';
import type { Offer } from '../../../../lib/domain/forecast.ts';
import { offDearHosts } from '../../../../lib/policy/colocation/dear-hosts.ts';
import type { NeighbourBelief } from '../../../../lib/policy/colocation/neighbour-belief.ts';
import { onNewInstances } from '../../../../lib/policy/colocation/on-new-instances.ts';
import type { DecisionContext, Host, TaskToPlace } from '../../../../lib/policy/contracts.ts';
import type { RunningTask, Snapshot } from '../../../../lib/domain/snapshot.ts';
import { attempt, job, spec } from '../../../support/builders.ts';
import { config, group, instance, NOW, pool, resources, stage, view, world } from '../../../support/decision-world.ts';

const POOL = pool({ vcpus: 8, gib: 32, onDemand: 0.4 });
const MAIN = stage({ name: 'main', resources: resources(2, 8) });
const template = (name: string): string => `ana/${name}/${name}/main`;
const jobOf = (name: string) =>
  job({ id: jobId(name), template: `ana/${name}/${name}`, spec: spec({ stages: [MAIN] }) });

/** Readers take `times` as long beside readers and writers; nobody else is slowed down. */
const NOISY = [template('reader'), template('writer')];
const belief = (times: number): NeighbourBelief =>
  ({
    tells: (of: string) => of === template('reader'),
    tellsAny: () => true,
    slowdown: (of: string, beside: readonly { readonly template: string; readonly tasks?: number }[]) => {
      const noisy = beside.filter((b) => NOISY.includes(b.template) && (b.tasks ?? 1) > 0);
      return { factor: of === template('reader') && noisy.length > 0 ? times : 1, sd: 0 };
    },
  }) as unknown as NeighbourBelief;

interface Scene {
  readonly times: number;
  readonly neighbours?: boolean;
  readonly usd?: number;
  readonly gang?: string;
  /** vCPUs of all instances at most. */
  readonly vcpus?: number;
  /** US dollars that the job, and the deployment, may still spend. */
  readonly jobUsd?: number;
  readonly allUsd?: number;
}

const moneyOf = (job: string, { jobUsd, allUsd }: Pick<Scene, 'jobUsd' | 'allUsd'>): Partial<Snapshot> => ({
  ...(jobUsd === undefined
    ? {}
    : { budgets: new Map([[jobId(job), { limitUsd: 5 + jobUsd, spentUsd: 2, reservedUsd: 2, heldUsd: 1 }]]) }),
  ...(allUsd === undefined
    ? {}
    : {
        spendingLimits: [
          {
            period: 'day',
            limitUsd: 5 + allUsd,
            settledUsd: 2,
            spentUsd: 3,
            committedUsd: 2,
            untilMs: NOW,
            isReached: false,
          },
        ],
      }),
});

/** Whether a waiting program may go beside a running one. */
function mayGo(
  waiting: string,
  running: string,
  { times, neighbours = true, usd = 0.1, gang, vcpus = 16, ...left }: Scene,
): boolean {
  const g = group({ id: waiting, need: MAIN.resources, stage: { name: 'main' } });
  const there = instance('i', POOL);
  const run = {
    attempt: attempt({ stage: 'main', job: jobId(running), instance: there.instance.id, resources: MAIN.resources }),
    class: 'best-effort',
    stage: MAIN,
    deadlineMs: null,
    readS: seconds(0),
    savedS: seconds(0),
  } as RunningTask;
  const of = world({ groups: [g], pools: [view(POOL, 0.4)], instances: [{ ...there, attempts: [run] }] });
  const forecast = { runtime: certain(seconds(3600)), basis: 'history', reason: 'given' } as const;
  const context = {
    ...of,
    forecasts: {
      ...of.forecasts,
      runtime: new Map([waiting, running].map((name) => [`${name}/main`, forecast] as const)),
    },
    snapshot: {
      ...of.snapshot,
      ...moneyOf(waiting, left),
      limits: { ...of.snapshot.limits, vcpus },
      jobs: new Map([waiting, running].map((name) => [jobId(name), jobOf(name)])),
    },
    config: config({ neighbours }),
    beliefs: { of: () => belief(times) },
    offers: new Map([
      [g.id, { offers: [{ pool: POOL.id, expectedCostUsd: usd } as Offer], excluded: [], considered: [] }],
    ]),
  } as unknown as DecisionContext;
  const task: TaskToPlace = {
    task: { job: g.job, stage: 'main', index: 0 },
    group: g.id,
    need: g.need,
    runtimeS: seconds(3600),
    gang: gang ?? null,
    allowed: () => true,
  };
  const host: Host = {
    on: there.instance.id,
    pool: POOL,
    capacity: POOL.type.capacity,
    free: resources(6, 24),
    remainingS: seconds(3600),
  };
  const [off] = offDearHosts([task], context);
  return off?.allowed(host) ?? false;
}

describe('hosts where neighbours cost too much', () => {
  it('are those where the time lost costs too much of an instance of its own', () => {
    expect(mayGo('reader', 'reader', { times: 1.05 })).toBe(true);
    expect(mayGo('reader', 'reader', { times: 4 })).toBe(false);
    expect(mayGo('reader', 'reader', { times: 4, usd: 10 })).toBe(true);
  });

  it('are also those where it is the others that lose time', () => {
    expect(belief(4).tells(template('writer'))).toBe(false);
    expect(mayGo('writer', 'reader', { times: 4 })).toBe(false);
    expect(mayGo('writer', 'writer', { times: 4 })).toBe(true);
    expect(mayGo('cruncher', 'reader', { times: 4 })).toBe(true);
    expect(mayGo('reader', 'cruncher', { times: 4 })).toBe(true);
  });

  it('are nowhere where no other can be bought', () => {
    expect(mayGo('reader', 'reader', { times: 4, vcpus: 15 })).toBe(true);
    expect(mayGo('reader', 'reader', { times: 4, jobUsd: 0.39 })).toBe(true);
    expect(mayGo('reader', 'reader', { times: 4, jobUsd: 0.41 })).toBe(false);
    expect(mayGo('reader', 'reader', { times: 4, allUsd: 0.39 })).toBe(true);
    expect(mayGo('reader', 'reader', { times: 4, allUsd: 0.41 })).toBe(false);
  });

  it('are nowhere where it counts for nothing, and gangs may go anywhere', () => {
    expect(mayGo('reader', 'reader', { times: 4, neighbours: false })).toBe(true);
    expect(mayGo('reader', 'reader', { times: 4, gang: 'g' })).toBe(true);
  });

  it('leave tasks that share a function sharing one', () => {
    const of = world({ pools: [view(POOL, 0.4)], groups: [group({ id: 'reader', need: MAIN.resources })] });
    const [g] = of.snapshot.groups;
    const task = { group: g?.id, gang: null, allowed: () => true } as unknown as TaskToPlace;
    const context = {
      ...of,
      config: config(),
      beliefs: { of: () => belief(2) },
      offers: new Map(),
    } as unknown as DecisionContext;
    const [a, b] = offDearHosts([task, { ...task }], context);
    expect(a?.allowed).toBe(b?.allowed);
  });
});

describe('slow-downs on new instances', () => {
  const asked: { tasks: number; known: number }[] = [];
  const listening = {
    tells: (of: string) => of === template('reader'),
    againstUsual: (_: string, beside: readonly { readonly tasks: number }[], { known }: { readonly known: number }) => {
      asked.push({ tasks: beside[0]?.tasks ?? 0, known });
      return { factor: 2, sd: 0 };
    },
  } as unknown as NeighbourBelief;
  const reader = { template: 'ana/reader/reader', stage: MAIN, need: MAIN.resources, count: 3 };

  it('are those beside as many of its own tasks as fit, once for each type', () => {
    const of = onNewInstances(reader, listening);
    const { type } = POOL;
    expect(of?.on(type)).toEqual(of?.on(type));
    // Two tasks of two vCPUs on four.
    of?.on(pool({ type: 'm5.xlarge', vcpus: 4, gib: 16 }).type);
    expect(of?.on(pool({ type: 'm5.medium', vcpus: 1, gib: 4 }).type).factor).toBe(1);
    expect(asked).toEqual([
      { tasks: 2, known: 0.75 },
      { tasks: 1, known: 1 },
    ]);
  });

  it('are alike for counts that hardly differ, and none where nobody is slowed down', () => {
    expect(onNewInstances({ ...reader, count: 33 }, listening)?.key).toBe(
      onNewInstances({ ...reader, count: 60 }, listening)?.key,
    );
    expect(onNewInstances({ ...reader, template: 'ana/quiet/quiet' }, listening)).toBeNull();
  });
});
