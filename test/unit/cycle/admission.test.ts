import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { admitter, mostAtOnce } from '../../../lib/cycle/admit/admission.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import type { Pool } from '../../../lib/domain/pool.ts';
import type { Limits } from '../../../lib/domain/snapshot.ts';
import { marketWithCluster } from '../../../lib/market/cluster.ts';
import { LoggedHistory } from '../../../lib/stages/estimate/logged-history.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import { pool, resources, spec, stage } from '../../support/builders.ts';

const NOW = epochMs(0);
const sized = (cpus: number, memGiB = cpus * 4): Pool =>
  pool({ type: `t.${cpus}-${memGiB}`, cpus, memoryMiB: memGiB * 1024 });

function refusal(of: Parameters<typeof stage>[0], pools: readonly Pool[], limits: Limits): EbbError | null {
  const admit = admitter({ pools, limits, config: schedulerConfig.parse({}), history: new LoggedHistory() });
  try {
    admit(spec({ class: 'best-effort', deadline: null, stages: [stage(of)] }), NOW);
    return null;
  } catch (error) {
    if (error instanceof EbbError) return error;
    throw error;
  }
}

describe('admission of gangs', () => {
  const pools = [sized(2), sized(4), sized(16)];
  const limits: Limits = { vcpus: 12, raisedBy: 'start it with a higher --vcpus' };

  it('refuses a gang that the vCPU limit can never hold, and names how to raise it', () => {
    const error = refusal({ gang: true, tasks: 20, resources: resources(1) }, pools, limits);
    expect(error?.code).toBe('job.unplaceable');
    expect(error?.message).toMatch(/20 tasks.*at most 12/s);
    expect(error?.facts.next).toContain('--vcpus');
  });

  it('takes the same tasks without the gang, and a gang that just fits', () => {
    expect(refusal({ gang: false, tasks: 20, resources: resources(1) }, pools, limits)).toBeNull();
    expect(refusal({ gang: true, tasks: 12, resources: resources(1) }, pools, limits)).toBeNull();
  });

  it('counts whole instances: what a task leaves free on its instance counts against the limit', () => {
    expect(refusal({ gang: true, tasks: 4, resources: resources(3) }, pools, limits)?.code).toBe('job.unplaceable');
    expect(refusal({ gang: true, tasks: 3, resources: resources(3) }, pools, limits)).toBeNull();
  });

  it('counts every kind of resource, not CPU alone', () => {
    const large = resources(1, 14 * 1024);
    expect(refusal({ gang: true, tasks: 3, resources: large }, [sized(4, 16)], limits)).toBeNull();
    expect(refusal({ gang: true, tasks: 4, resources: large }, [sized(4, 16)], limits)?.message).toMatch(/at most 3/);
  });

  it('refuses a gang that no rack of a cluster has the machines for, and names the largest', () => {
    const racks = marketWithCluster(null, '6x{cpu: 4, memory: 16GiB, rack: 2}').pools;
    const roomy: Limits = { vcpus: 100 };
    expect(refusal({ gang: true, tasks: 12, resources: resources(1) }, racks, roomy)).toBeNull();
    const error = refusal({ gang: true, tasks: 13, resources: resources(1) }, racks, roomy);
    expect(error?.message).toMatch(/at most 12 of them, on the 3 machines of machine\/rack-1/);
    expect(refusal({ gang: false, tasks: 13, resources: resources(1) }, racks, roomy)).toBeNull();
  });

  it('names the limit for a single task that no instance within it can hold', () => {
    const error = refusal({ tasks: 1, resources: resources(14) }, pools, limits);
    expect(error?.facts.next).toContain('--vcpus');
  });

  it('finds what trying every number of every instance finds', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.integer({ min: 1, max: 24 }),
        fc.integer({ min: 1, max: 3 }),
        (sizes, vcpus, need) => {
          const of = sizes.map(([cpus, memGiB]) => sized(cpus, memGiB));
          const held = (p: Pool): number =>
            Math.min(
              Math.floor(Number(p.type.capacity.cpu) / 1000 / need),
              Math.floor(Number(p.type.capacity.memory) / 1024),
            );
          const tried = (room: number): number =>
            of.reduce((best, p) => {
              const size = Number(p.type.capacity.cpu) / 1000;
              return size > room || held(p) === 0 ? best : Math.max(best, held(p) + tried(room - size));
            }, 0);
          expect(mostAtOnce(resources(need, 1024), of, { vcpus, enough: Infinity })).toBe(tried(vcpus));
        },
      ),
      { numRuns: 100, seed: 28 },
    );
  });
});

describe('admission of preferences', () => {
  const limits: Limits = { vcpus: 12, raisedBy: 'start it with a higher --vcpus' };
  const notesOf = (of: Parameters<typeof stage>[0]): readonly string[] => {
    const admit = admitter({
      pools: [pool({ zone: 'us-east-1a' }), pool({ zone: 'us-east-1b' })],
      limits,
      config: schedulerConfig.parse({}),
      history: new LoggedHistory(),
    });
    return admit(spec({ class: 'best-effort', deadline: null, stages: [stage(of)] }), NOW).notes;
  };
  const zones = (...patterns: string[]) => ({ prefer: { zones: patterns }, weight: 0.1 });

  it('compares what the cycle will compare, and names a preference that nothing can meet', () => {
    expect(notesOf({ preferences: [zones('*1a'), zones('*'.repeat(63) + 'x')] })).toEqual([
      'stage main: preferences[1] has no effect: no pool within the constraints is so',
    ]);
    expect(notesOf({ constraints: { zones: ['*b'] }, preferences: [zones('*1a')] })).toHaveLength(1);
    expect(notesOf({ preferences: [zones('us-*')] })).toEqual([]);
    expect(notesOf({ preferences: [{ ...zones('eu-*'), slowdown: 1.5 }] })).toEqual([
      'stage main: preferences[0] makes every task take 1.5 times as long: no pool within the constraints is so',
    ]);
  });
});
