import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { distribution } from '../../../../lib/domain/distribution.ts';
import { appraise } from '../../../../lib/stages/appraise/appraise.ts';
import { config, curve, group, market, pool, view, world, worth } from '../../../support/decision-world.ts';

const HORIZONS = [300, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400];

/** What the shortlist of about 30 pools costs against appraising all 240: random prices, hazards over three decades. */
describe('shortlist', () => {
  it.each([
    ['no checkpoint, no deadline', false, null],
    ['no checkpoint, deadline', false, 12_000],
    ['checkpoint, deadline', true, 12_000],
  ] as const)('finds an offer as good as the best of all pools: %s', (name, saves, deadlineInS) => {
    const random = randomStream(7, `shortlist/${name}`);
    let same = 0;
    let worst = 1;
    const rounds = 20;
    for (let round = 0; round < rounds; round++) {
      const hazards = new Map<string, number>();
      const views = Array.from({ length: 240 }, (_, i) => {
        const p = pool({ zone: `z${i}`, option: i < 2 ? 'on-demand' : 'spot', onDemand: 0.1 });
        hazards.set(p.id, 0.001 * 1000 ** random());
        return view(p, i < 2 ? 0.1 : 0.02 + 0.06 * random());
      });
      const checkpoint = saves ? ({ signal: 'SIGUSR1', graceS: seconds(30), everyS: null } as const) : null;
      const w = world({
        pools: views,
        groups: [group({ id: 'g', stage: { checkpoint } })],
        market: market(views, (p) =>
          curve(HORIZONS.map((h) => [h, 1 - Math.exp((-(hazards.get(p.id) ?? 0) * h) / 3600)])),
        ),
        runtime: () =>
          distribution([
            [1000, 1],
            [4000, 2],
            [7000, 1],
          ]),
        worth: () => worth(deadlineInS),
      });
      const best = (offersPerGroup: number): number => {
        const answer = appraise({ ...w, config: config({ offersPerGroup }) });
        return [...answer.values()][0]?.offers[0]?.expectedCostUsd ?? NaN;
      };
      // 3 pools per offer: with 80 offers every pool is appraised in full.
      const regret = best(6) / best(80);
      worst = Math.max(worst, regret);
      if (regret < 1 + 1e-9) same++;
    }
    expect(worst).toBeLessThan(1.1);
    expect(same / rounds).toBeGreaterThan(0.7);
  });
});
