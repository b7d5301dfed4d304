import { describe, expect, it } from '@jest/globals';
import { pacesBeside } from '../../../lib/cycle/decide/paces.ts';
import { slowedText } from '../../../lib/cycle/explain/slowed.ts';
import type { Job, Preference } from '../../../lib/domain/job.ts';
import type { InstanceView } from '../../../lib/domain/snapshot.ts';
import { instanceId, jobId } from '../../../lib/kernel/ids.ts';
import type { NeighbourBelief } from '../../../lib/policy/colocation/neighbour-belief.ts';
import { job } from '../../support/builders.ts';
import { config, instance, pool, resources, stage, world } from '../../support/decision-world.ts';

const POOL = pool({ vcpus: 8, gib: 32 });
const NEED = resources(2, 8);
const MAIN = stage({ name: 'main', resources: NEED });
const READER = 't/reader/main';

/** Each neighbour of a reader makes it 10 % slower; two are usual. */
const belief = {
  tells: (template: string) => template === READER,
  tellsAny: () => true,
  slowdown: (_: string, beside: readonly { readonly tasks?: number }[]) => ({
    factor: 1 + 0.1 * beside.reduce((sum, { tasks = 1 }) => sum + tasks, 0),
    sd: 0,
  }),
  againstUsual: (_: string, beside: readonly { readonly tasks?: number }[], { known }: { readonly known: number }) => ({
    factor: 1 + 0.1 * (beside.reduce((sum, { tasks = 1 }) => sum + tasks, 0) - 2 * known),
    sd: 0,
  }),
} as unknown as NeighbourBelief;

const jobs: ReadonlyMap<Job['id'], Job> = new Map(
  ['reader', 'quiet'].map((name) => [jobId(name), job({ id: jobId(name), template: `t/${name}` })]),
);
const running = (names: readonly string[], state = 'running'): InstanceView =>
  ({
    ...instance('i', POOL),
    attempts: names.map((name) => ({ attempt: { job: jobId(name), resources: NEED, state }, stage: MAIN })),
  }) as unknown as InstanceView;

interface Scene {
  readonly there?: InstanceView;
  readonly neighbours?: boolean;
  readonly preferences?: readonly Preference[];
  /** Jobs whose tasks start there; the pace of the first is told. */
  readonly starts?: readonly string[];
}

function paceOf({ there = running([]), neighbours = true, preferences = [], starts = ['reader'] }: Scene) {
  const { snapshot } = world({ pools: [] });
  const all = starts.map((name, index) => ({
    task: { job: jobId(name), stage: 'main', index },
    instance: instanceId('i'),
    stage: { ...MAIN, preferences },
  }));
  const input = {
    snapshot: { ...snapshot, jobs, instances: new Map([[instanceId('i'), there]]) },
    config: config({ neighbours }),
    beliefs: { of: () => belief },
  } as unknown as Parameters<typeof pacesBeside>[0];
  const [first] = all;
  return first === undefined ? null : pacesBeside(input, all)(first);
}

describe('the pace of a starting task', () => {
  it('follows from those that run there and start with it', () => {
    // Alone on a quarter of the machine: a quarter of two usual neighbours fewer.
    expect(paceOf({})).toEqual({ slowdown: 0.95, beside: 0.95 });
    expect(paceOf({ there: running(['quiet', 'quiet', 'quiet']) })).toEqual({ slowdown: 1.1, beside: 1.1 });
    expect(paceOf({ there: running(['quiet']), starts: ['reader', 'reader', 'quiet'] })).toEqual({
      slowdown: 1.1,
      beside: 1.1,
    });
  });

  it('does not count those that stop', () => {
    expect(paceOf({ there: running(['quiet', 'quiet', 'quiet'], 'stopping') })).toEqual({
      slowdown: 0.95,
      beside: 0.95,
    });
  });

  it('is multiplied with that of soft constraints', () => {
    const preferences = [{ prefer: { zones: ['elsewhere'] }, weight: 0, slowdown: 2 }] as unknown as Preference[];
    expect(paceOf({ there: running(['quiet', 'quiet', 'quiet']), preferences })).toEqual({
      slowdown: 2.2,
      beside: 1.1,
    });
    expect(paceOf({ starts: ['quiet'], preferences })).toEqual({ slowdown: 2 });
  });

  it('is as usual for what nobody slows down, where it hardly differs, and where it counts for nothing', () => {
    expect(paceOf({ starts: ['quiet'], there: running(['reader']) })).toEqual({});
    expect(paceOf({ there: running(['quiet']) })).toEqual({});
    expect(paceOf({ neighbours: false })).toEqual({});
  });
});

describe('why a running task takes longer', () => {
  const text = (there: InstanceView, slowdowns: NeighbourBelief | null = belief): string =>
    slowedText({ snapshot: { ...world({ pools: [] }).snapshot, jobs }, slowdowns }, READER, there);

  it('names the neighbour, with the factor', () => {
    expect(text(running(['reader', 'quiet', 'quiet']))).toBe('; takes about 1.2x longer there, beside t/quiet/main');
  });

  it('is nothing for little, and for what is not known', () => {
    expect(text(running(['reader', 'quiet']))).toBe('');
    expect(text(running(['reader', 'quiet', 'quiet']), null)).toBe('');
  });
});
