import { describe, expect, it } from '@jest/globals';
import { poolId } from '../../../../lib/kernel/ids.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { CapacityEvidence, survivesCapacity } from '../../../../lib/market/forecast/hazard.ts';

const prior = { hazardPriorPerHour: 0.03, hazardPriorHours: 20 };
const large = poolId('c5.large/us-east-1a/spot');
const xlarge = poolId('c5.xlarge/us-east-1a/spot');
const elsewhere = poolId('c5.large/us-east-1b/spot');
const mean = (p: { shape: number; rateHours: number }): number => p.shape / p.rateHours;

describe('capacity hazard', () => {
  it('is the prior where nothing was seen', () => {
    expect(new CapacityEvidence().posterior(large, prior)).toEqual({ shape: 0.6, rateHours: 20 });
  });

  it('adds events and hours to the prior', () => {
    const e = new CapacityEvidence();
    e.observe(large, seconds(10 * 3600), 2);
    e.observe(large, seconds(20 * 3600), 0);
    const posterior = e.posterior(large, prior);
    expect(posterior.shape).toBeCloseTo(2.6, 12);
    expect(posterior.rateHours).toBeCloseTo(50, 12);
  });

  it('borrows from the family in the zone, less from other families and zones, and not from itself', () => {
    const e = new CapacityEvidence();
    e.observe(large, seconds(100 * 3600), 20);
    const sibling = (0.6 + 20) / 120;
    expect(mean(e.posterior(xlarge, prior))).toBeCloseTo(sibling, 12);
    expect(mean(e.posterior(elsewhere, prior))).toBeCloseTo((0.03 * 100 + 20) / 200, 12);
    expect(mean(e.posterior(large, prior))).toBeCloseTo((0.03 * 20 + 20) / 120, 12);
  });

  it('expects little of a pool that it does not know where all others were quiet, after a restart too', () => {
    const e = new CapacityEvidence();
    e.observe(large, seconds(900 * 3600), 0);
    const back = CapacityEvidence.fromMemory(e.takeDirty());
    for (const evidence of [e, back]) expect(mean(evidence.posterior(elsewhere, prior))).toBeCloseTo(0.003, 12);
    back.restore(new Map());
    expect(mean(back.posterior(elsewhere, prior))).toBeCloseTo(0.03, 12);
  });

  it('survives with the rate integrated out', () => {
    const posterior = { shape: 2.6, rateHours: 50 };
    // Gamma(2.6, 50) density integrated numerically against exp(-rate x 5 h).
    const gammaFunction = 1.42962455886;
    let integral = 0;
    const step = 1e-5;
    for (let x = step / 2; x < 1; x += step) {
      integral += ((50 ** 2.6 * x ** 1.6 * Math.exp(-50 * x)) / gammaFunction) * Math.exp(-5 * x) * step;
    }
    expect(survivesCapacity(posterior, seconds(5 * 3600))).toBeCloseTo(integral, 5);
  });

  it('comes back from its rows, and writes only what changed', () => {
    const e = new CapacityEvidence();
    e.observe(large, seconds(3600), 1);
    e.observe(xlarge, seconds(7200), 0);
    const rows = e.takeDirty();
    expect([...rows.keys()].sort()).toEqual([`hazard/${large}`, `hazard/${xlarge}`]);
    const back = CapacityEvidence.fromMemory(new Map([...rows, ['other/x', '1'], ['hazard/broken', '{']]));
    expect(back.posterior(large, prior)).toEqual(e.posterior(large, prior));
    expect(back.posterior(xlarge, prior)).toEqual(e.posterior(xlarge, prior));
    expect(e.takeDirty().size).toBe(0);
    expect(back.takeDirty().size).toBe(0);
  });

  it('forgets in proportion to use', () => {
    const e = new CapacityEvidence();
    e.observe(large, seconds(1000 * 3600), 300);
    for (let i = 0; i < 50; i++) e.observe(large, seconds(100 * 3600), 1);
    expect(mean(e.posterior(large, prior))).toBeLessThan(0.02);
    expect(e.of(large).exposureS).toBeCloseTo(1000 * 3600, 3);
  });
});
