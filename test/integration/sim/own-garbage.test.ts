import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { STAGES } from '../../../lib/domain/preset-spec.ts';
import { decidersNamed } from '../../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { START_MS } from '../../support/mixed-workload.ts';
import { decidersWith, wrapped } from '../../support/own-preset.ts';
import { runs } from '../../support/properties.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';
import { spoiledEach } from '../../support/spoiled.ts';

/** What a day may cost: less than the work does, so that purchases are refused. */
const MAX_USD_PER_DAY = 0.02;
/** UTC days that a simulation touches. */
const DAYS = 3;
const config = schedulerConfig.parse({ maxUsdPerDay: MAX_USD_PER_DAY });
/** Work that waits, runs beside other work, has deadlines, and is short enough to queue. */
const jobs = () => [
  simulatedJob('late', 0, [1800, 1800], { deadlineS: 3600 }),
  simulatedJob('any', 0, [600, 600, 600, 600]),
  simulatedJob('short', 60, [5, 5, 5, 5]),
];
const on = (deciders: ReturnType<typeof decidersNamed>) => simulated(jobs(), { config, deciders });

const shipped = await on(decidersNamed('greedy'));
const told = ({ events }: typeof shipped): readonly string[] =>
  events.flatMap((e) => (e.type === 'policy-refused' ? [] : [`${e.type}: ${e.text}`]));

/** Values of every form that are no answer of any stage: an empty list, null and text may be one. */
const garbage = fc
  .oneof(
    fc.anything({ withMap: true, withSet: true, withTypedArray: true, withBigInt: true, withNullPrototype: true }),
    fc.json().map((text) => JSON.parse(text) as unknown),
    fc.constantFrom(() => 1, Symbol('x'), NaN, {
      get starts() {
        throw new TypeError('boo');
      },
    }),
  )
  .filter((of) => of !== null && typeof of !== 'string' && !(Array.isArray(of) && of.length === 0));
const throws = { throws: true };
const rejects = { rejects: true };

it('whatever a policy answers in place of what its stage wants, all is decided as by the stand-in', async () => {
  expect(told(shipped).join()).toContain('could be passed');
  let refused = 0;
  const answers = fc.oneof(garbage, fc.constantFrom(throws, rejects));
  const property = fc.asyncProperty(
    fc.constantFrom(...STAGES),
    answers,
    fc.option(fc.nat(), { nil: null }),
    async (stage, garbled, at) => {
      const policy = wrapped('greedy', stage, (call) => (...asked) => {
        if (garbled === throws) throw new TypeError('boo');
        if (garbled === rejects) return Promise.reject(new TypeError('boo'));
        if (at === null) return garbled;
        // One field of the right answer.
        const spoiled = (answer: unknown): unknown => {
          const all = [...spoiledEach(answer, { spoil: garbled, isGiven: Object.isFrozen })];
          return all.length === 0 ? garbled : all[at % all.length]?.answer;
        };
        const answer = call(...asked);
        return answer instanceof Promise ? answer.then(spoiled) : spoiled(answer);
      });
      const result = await on(decidersWith('greedy', [policy]));
      refused += result.refusedPolicies.length;
      if (at === null) expect(told(result)).toEqual(told(shipped));
      expect(result.ended).toBe(shipped.ended);
      const { totals } = outcomeOf(result, { preset: 'mine', seed: 1, marketSeed: null, fromMs: START_MS });
      expect(totals.billedUsd).toBeLessThanOrEqual(DAYS * MAX_USD_PER_DAY);
    },
  );
  await fc.assert(property, { numRuns: runs(60), seed: 20260105 });
  expect(refused).toBeGreaterThan(0);
}, 900_000);
