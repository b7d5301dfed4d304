import { describe, expect, it } from '@jest/globals';
import {
  boundQuotas,
  endQuotaBackOff,
  endBackOff,
  quotaKey,
  quotaUses,
  backOff,
  backOffOf,
  refusedMsOf,
  backOffQuota,
  storedBackOffs,
  type BackOffs,
} from '../../../lib/cycle/observe/back-off.ts';
import { WorkingState } from '../../../lib/cycle/state/working-state.ts';
import { poolKey, type PurchaseOption } from '../../../lib/domain/pool.ts';
import { quotaOf } from '../../../lib/domain/quota.ts';
import { epochMs, plus, raw, seconds, type EpochMs } from '../../../lib/kernel/units.ts';
import { builtInCatalogue } from '../../../lib/market/catalogue.ts';
import { instance } from '../../contract/store-samples.ts';
import { pool as anyPool } from '../../support/builders.ts';

const START_MS = epochMs(1_700_000_000_000);
const at = (s: number): EpochMs => plus(START_MS, seconds(s));
const pool = (type: string, option: PurchaseOption = 'spot', zone = 'a') => poolKey(type, zone, option);
const M5 = pool('m5.large');

const newState = (): WorkingState =>
  new WorkingState({ jobs: [], attempts: [], tasks: [], instances: [], openEffects: [], cursors: new Map() });

describe('the quota that a pool counts towards', () => {
  it.each([
    ['c6i.large', 'spot/standard'],
    ['m7g.large', 'spot/standard'],
    ['im4gn.large', 'spot/standard'],
    ['is4gen.large', 'spot/standard'],
    ['i3en.large', 'spot/standard'],
    ['t3.nano', 'spot/standard'],
    ['z1d.large', 'spot/standard'],
    ['a1.large', 'spot/standard'],
    ['hpc7a.12xlarge', 'spot/hpc'],
    ['h1.2xlarge', 'spot/standard'],
    ['d3en.xlarge', 'spot/standard'],
    ['dl1.24xlarge', 'spot/dl'],
    ['g5.xlarge', 'spot/g'],
    ['gr6.4xlarge', 'spot/g'],
    ['vt1.3xlarge', 'spot/g'],
    ['p4d.24xlarge', 'spot/p'],
    ['x2gd.medium', 'spot/x'],
    ['f1.2xlarge', 'spot/f'],
    ['inf2.xlarge', 'spot/inf'],
    ['trn1.2xlarge', 'spot/trn'],
    ['u-6tb1.56xlarge', 'spot/high-memory'],
    ['u7i-12tb.224xlarge', 'spot/high-memory'],
  ])('%s: %s', (type, quota) => {
    expect(quotaOf(pool(type))).toBe(quota);
  });

  it('is another on demand, and the same in every zone', () => {
    expect(quotaOf(pool('c6i.large', 'on-demand'))).toBe('on-demand/standard');
    expect(quotaOf(pool('c6i.large', 'spot', 'b'))).toBe(quotaOf(pool('c6i.large')));
  });

  it('is one that AWS has for every family of the catalogue', () => {
    const quotas = new Set(
      builtInCatalogue()
        .types()
        .map((type) => quotaOf(pool(type))),
    );
    const known = ['standard', 'g', 'p', 'x', 'f', 'inf', 'trn', 'dl', 'hpc', 'high-memory'];
    expect([...quotas].filter((q) => !known.includes(q.replace('spot/', '')))).toEqual([]);
  });
});

describe('back-off of a pool', () => {
  it('for five minutes, alone', () => {
    const backOffs: BackOffs = new Map();
    backOff(newState(), M5, 'no capacity', { at: at(0), backOffs });
    expect(backOffOf(backOffs, M5, at(299))).toMatchObject({
      refusals: 1,
      why: expect.stringMatching(/^in back-off until .* after 1 refusal\(s\): no capacity$/),
    });
    expect(backOffOf(backOffs, M5, at(300))).toBeNull();
    expect(backOffOf(backOffs, pool('m5.xlarge'), at(1))).toBeNull();
  });

  it('is remembered after its end until a launch succeeds', () => {
    const backOffs: BackOffs = new Map();
    expect(refusedMsOf(backOffs, M5)).toBeNull();
    backOff(newState(), M5, 'no capacity', { at: at(0), backOffs });
    backOff(newState(), M5, 'no capacity', { at: at(400), backOffs });
    expect(refusedMsOf(backOffs, M5)).toEqual(at(400));
    endBackOff(newState(), M5, { at: at(900), backOffs });
    expect(refusedMsOf(backOffs, M5)).toBeNull();
  });

  it('with all that share its quota, and not with others, where that is used up', () => {
    const backOffs: BackOffs = new Map();
    backOffQuota(newState(), M5, 'MaxSpotInstanceCountExceeded', { at: at(0), backOffs });
    for (const backedOff of [M5, pool('c6i.large', 'spot', 'b'), pool('r5.large')]) {
      expect(backOffOf(backOffs, backedOff, at(1))?.why).toMatch(
        /^all pools under the account's vCPU quota spot\/standard are in back-off until .*MaxSpot/,
      );
    }
    for (const open of [pool('m5.large', 'on-demand'), pool('x2gd.medium')])
      expect(backOffOf(backOffs, open, at(1))).toBeNull();
  });

  it('until the later of the two ends', () => {
    const backOffs: BackOffs = new Map();
    backOffQuota(newState(), M5, 'quota', { at: at(0), backOffs });
    backOff(newState(), M5, 'no capacity', { at: at(100), backOffs });
    expect(backOffOf(backOffs, M5, at(350))?.why).toContain('no capacity');
    expect(backOffOf(backOffs, M5, at(350))?.untilMs).toBe(raw(at(400)));
  });

  it('no longer once a launch went well, but for a quota that was refused in the same moment', () => {
    const backOffs: BackOffs = new Map();
    backOffQuota(newState(), M5, 'quota', { at: at(0), backOffs });
    endBackOff(newState(), M5, { at: at(0), backOffs });
    expect(backOffOf(backOffs, M5, at(1))).not.toBeNull();
    endBackOff(newState(), M5, { at: at(60), backOffs });
    expect(backOffOf(backOffs, M5, at(61))).toBeNull();
  });

  it('no longer once an instance under the quota has ended; what the store has says the same', async () => {
    const state = newState();
    const backOffs: BackOffs = new Map();
    backOffQuota(state, M5, 'quota', { at: at(0), backOffs });
    backOff(state, M5, 'no capacity', { at: at(0), backOffs });
    endQuotaBackOff(state, pool('c6i.large', 'spot', 'b'), backOffs);
    expect(backOffOf(backOffs, pool('r5.large'), at(1))).toBeNull();
    expect(backOffOf(backOffs, M5, at(1))).not.toBeNull();
    const rows = new Map(state.takeChanges().flatMap((c) => (c.put === 'memory' ? [[c.key, c.value] as const] : [])));
    expect(await storedBackOffs({ memory: () => Promise.resolve(rows) })).toEqual(backOffs);
  });
});

describe('what was too much for a quota', () => {
  const pools = new Map(
    (['m5.large', 'm5.xlarge', 'x2gd.medium'] as const).map((type) => {
      const id = pool(type);
      return [id, anyPool({ type, zone: 'a', cpus: type === 'm5.xlarge' ? 4 : 2 })] as const;
    }),
  );
  const withInstances = (count: number): WorkingState => {
    const state = newState();
    for (let i = 0; i < count; i++) state.putInstance(instance(`i-${i}`, { pool: M5, state: 'ready' }));
    state.putInstance(instance('i-other', { pool: pool('x2gd.medium'), state: 'ready' }));
    state.putInstance(instance('i-ended', { pool: M5, state: 'ended' }));
    return state;
  };
  /** As a cycle does: what refusals say is taken in, then it is asked. */
  const boundOf = (state: WorkingState, backOffs: BackOffs, s: number) => {
    boundQuotas(state, { backOffs, pools, at: at(s) });
    return quotaUses(state, { backOffs, pools, at: at(s) }).get('spot/standard');
  };

  it('is what there was and what was refused, the least of several refusals, for an hour', () => {
    const backOffs: BackOffs = new Map();
    const state = withInstances(3);
    expect(boundOf(state, backOffs, 0)).toBeUndefined();
    backOffQuota(state, pool('m5.xlarge'), 'quota', { at: at(0), backOffs });
    expect(boundOf(state, backOffs, 1)).toEqual({ usedMilliCpu: 6000, boundMilliCpu: 10_000 });
    expect(quotaUses(state, { backOffs, pools, at: at(1) }).has('spot/x')).toBe(false);
    backOffQuota(state, M5, 'quota', { at: at(600), backOffs });
    expect(boundOf(state, backOffs, 601)).toEqual({ usedMilliCpu: 6000, boundMilliCpu: 8000 });
    expect(boundOf(withInstances(1), backOffs, 602)).toEqual({ usedMilliCpu: 2000, boundMilliCpu: 8000 });
    expect(boundOf(state, backOffs, 600 + 3599)).toEqual({ usedMilliCpu: 6000, boundMilliCpu: 8000 });
    expect(boundOf(state, backOffs, 600 + 3600)).toBeUndefined();
  });

  it('is forgotten once as much is there: the quota was raised', () => {
    const backOffs: BackOffs = new Map();
    backOffQuota(newState(), M5, 'quota', { at: at(0), backOffs });
    expect(boundOf(withInstances(3), backOffs, 1)).toMatchObject({ boundMilliCpu: 8000 });
    expect(boundOf(withInstances(4), backOffs, 2)).toBeUndefined();
  });

  it('outlives the back-off of the pools, and the process', async () => {
    const backOffs: BackOffs = new Map();
    const state = withInstances(3);
    backOffQuota(state, M5, 'quota', { at: at(0), backOffs });
    boundOf(state, backOffs, 1);
    endQuotaBackOff(state, M5, backOffs);
    expect(backOffOf(backOffs, M5, at(2))).toBeNull();
    const rows = new Map(state.takeChanges().flatMap((c) => (c.put === 'memory' ? [[c.key, c.value] as const] : [])));
    const stored = await storedBackOffs({ memory: () => Promise.resolve(rows) });
    expect(stored).toEqual(backOffs);
    expect(boundOf(state, stored, 3)).toMatchObject({ boundMilliCpu: 8000 });
    // With the next refusal it is the first again.
    backOffQuota(state, M5, 'quota', { at: at(4), backOffs: stored });
    expect(backOffOf(stored, M5, at(5))?.refusals).toBe(1);
    expect(boundOf(state, stored, 6)).toMatchObject({ boundMilliCpu: 8000 });
    expect(boundOf(state, stored, 4000)).toBeUndefined();
    expect(stored.has(quotaKey(M5))).toBe(false);
  });
});
