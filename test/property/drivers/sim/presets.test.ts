import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { runOn } from '../../../../bench/deadline-case.ts';
import { presetList, presetNamed } from '../../../../lib/stages/registry.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { epochMs, plus, raw, seconds, ZERO_S } from '../../../../lib/kernel/units.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { marketOfPreset } from '../../../../lib/market/fargate.ts';
import { replayMarket } from '../../../../lib/drivers/local/market/replay.ts';
import type { MarketTrace } from '../../../../lib/market/trace.ts';
import { deterministic, type Solver } from '../../../../lib/policy/solver.ts';
import { simulate } from '../../../../lib/drivers/sim/simulation.ts';
import type { WorkloadJob } from '../../../../lib/workload/workload.ts';
import { resources, spec, stage } from '../../../support/builders.ts';
import { onOffMarket, START } from '../../../support/on-off-market.ts';
import { noSolver } from '../../../../bench/load/no-solver.ts';

type Stretch = readonly [fromH: number, untilH: number];

/** Spot between every other two of the edges. */
const stretchesOf = (edges: readonly number[]): Stretch[] =>
  edges.flatMap((from, i) =>
    i % 2 === 0 && edges[i + 1] !== undefined ? [[from, edges[i + 1] ?? from] as const] : [],
  );

describe('a long job with a deadline, whatever spot does', () => {
  const HOURS = 10;

  it('is never late and never flaps', async () => {
    const seen = { interruptions: 0, returns: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.double({ min: 0.1, max: 2.5, noNaN: true }), { minLength: 4, maxLength: 20 }),
        fc.constantFrom(0.4, 0.6, 0.7),
        fc.constantFrom(0.05, 0.2),
        async (lengths, fraction, overheadHours) => {
          let at = 0;
          const trace = onOffMarket(stretchesOf(lengths.map((h) => (at += h))));
          for (const preset of ['ebbtide', 'spot-greedy', 'uniform-progress', 'fleet']) {
            const of = { window: 0, startMs: START, hours: HOURS, fraction, overheadHours, preset };
            const r = await runOn(trace, of);
            expect({ preset, late: r.late }).toEqual({ preset, late: false });
            // A start; for each interruption one more, and one back from on-demand; one when the last safe moment
            // comes.
            expect(r.attempts).toBeLessThanOrEqual(3 + 2 * r.interruptions);
            seen.interruptions += r.interruptions;
            if (preset === 'ebbtide' && r.attempts > 1 + r.interruptions) seen.returns += 1;
          }
        },
      ),
      { seed: 11, numRuns: 12, endOnFailure: true },
    );
    expect(seen.interruptions).toBeGreaterThan(20);
    expect(seen.returns).toBeGreaterThan(0);
  }, 120_000);
});

describe('many tasks whose running times nobody told', () => {
  /** Jobs of one name, so that the later ones know of the earlier; two tasks fill a machine. */
  const jobs = (seed: number): WorkloadJob[] => {
    const random = randomStream(seed, 'workload');
    return Array.from({ length: 5 }, (_, n) => {
      const runtimeS = Float64Array.from({ length: 5 }, () => 1800 * (0.5 + random()));
      const saves = { signal: 'SIGTERM', graceS: seconds(30), everyS: seconds(600) } as const;
      return {
        key: `job-${n}`,
        submittedS: n * 900,
        truth: new Map([['main', { runtimeS }]]),
        spec: spec({
          name: 'nightly',
          class: 'deadline',
          deadline: { afterS: seconds(3 * 3600) },
          stages: [stage({ tasks: 5, expectedRuntimeS: null, checkpoint: saves, resources: resources(2, 1024) })],
        }),
      };
    });
  };

  it.each(['per-second', 'per-hour'] as const)(
    'are not sent to and fro between spot and on-demand, billed %s',
    async (billing) => {
      for (const seed of [1, 2, 3]) {
        const events: string[] = [];
        const { store } = await simulate({
          trace: onOffMarket([[0, 96]]),
          market: (now) => replayMarket(onOffMarket([[0, 96]]), now),
          fromMs: epochMs(START),
          toMs: plus(epochMs(START), seconds(24 * 3600)),
          jobs: jobs(seed),
          namesJobs: false,
          deciders: () => ({ name: 'ebbtide', stages: presetNamed('ebbtide').stages }),
          solver: noSolver,
          config: schedulerConfig.parse({ billing }),
          vcpus: 1000,
          seed,
          minGapS: seconds(1),
          setupS: ZERO_S,
          onEvent: (e) => events.push(e.type),
        });
        const count = (type: string): number => events.filter((t) => t === type).length;
        expect(count('attempt-succeeded')).toBe(25);
        // To spot when its running time has become known, and back when that turns out to be longer: hardly ever twice.
        expect(count('attempt-starting')).toBeLessThanOrEqual(3 * 25);
        expect((await store.loadActive()).jobs).toEqual([]);
      }
    },
    60_000,
  );
});

/** Until here neither the truths nor the markets that are compared differ in anything that could have been seen. */
const SEEN_S = 1800;

/**
 * Eight jobs of two tasks within a quarter of an hour; `stretch` is what their true running times are multiplied with.
 */
function workload(stretch: number): WorkloadJob[] {
  const random = randomStream(3, 'workload');
  return Array.from({ length: 8 }, (_, n) => {
    const runtimeS = SEEN_S * (1 + random());
    const deadline = n % 2 === 0;
    return {
      key: `job-${n}`,
      submittedS: n * 100,
      truth: new Map([['main', { runtimeS: Float64Array.of(stretch * runtimeS, stretch * runtimeS) }]]),
      spec: spec({
        name: `job-${n}`,
        class: deadline ? 'deadline' : 'best-effort',
        deadline: deadline ? { afterS: seconds(4 * 3600) } : null,
        stages: [
          stage({
            tasks: 2,
            expectedRuntimeS: seconds(runtimeS),
            checkpoint: { signal: 'SIGTERM', graceS: seconds(30), everyS: null },
          }),
        ],
      }),
    };
  });
}

/** Six jobs of two stages: the first is soon over and the same in every truth, what the second takes is stretched. */
function staged(stretch: number): WorkloadJob[] {
  const random = randomStream(4, 'workload');
  const checkpoint = { signal: 'SIGTERM', graceS: seconds(30), everyS: null } as const;
  return Array.from({ length: 6 }, (_, n) => {
    const runtimeS = SEEN_S * (1 + random());
    return {
      key: `staged-${n}`,
      submittedS: n * 60,
      truth: new Map([
        ['prepare', { runtimeS: Float64Array.of(200, 300) }],
        ['work', { runtimeS: Float64Array.of(stretch * runtimeS, stretch * runtimeS) }],
      ]),
      spec: spec({
        name: `staged-${n}`,
        class: 'deadline',
        deadline: { afterS: seconds(4 * 3600) },
        stages: [
          stage({ name: 'prepare', tasks: 2, expectedRuntimeS: seconds(300) }),
          stage({ name: 'work', tasks: 2, dependsOn: ['prepare'], expectedRuntimeS: seconds(runtimeS), checkpoint }),
        ],
      }),
    };
  });
}

/** What happens in an hour under a preset of the registry. */
async function happenings(
  preset: string,
  trace: MarketTrace,
  jobs: readonly WorkloadJob[],
  { solver = noSolver, vcpus = 1000 }: { readonly solver?: Solver; readonly vcpus?: number } = {},
): Promise<readonly string[]> {
  const events: string[] = [];
  const { stages } = presetNamed(preset);
  const offered = marketOfPreset(trace, stages);
  await simulate({
    trace: offered,
    market: (now) => replayMarket(offered, now),
    fromMs: epochMs(START),
    toMs: plus(epochMs(START), seconds(2 * SEEN_S)),
    jobs,
    namesJobs: false,
    deciders: () => ({ name: preset, stages }),
    solver,
    config: schedulerConfig.parse({}),
    vcpus,
    seed: 1,
    minGapS: seconds(1),
    setupS: ZERO_S,
    onEvent: (e) => events.push(`${(raw(e.atMs) - START) / 1000} ${e.type} ${e.text}`),
  });
  return events;
}

const early = (events: readonly string[]): readonly string[] => events.filter((e) => parseFloat(e) < SEEN_S);

describe('what presets can see', () => {
  const lasting = onOffMarket([[0, 40]]);
  const ending = onOffMarket([[0, SEEN_S / 3600 + 0.1]]);

  it.each(presetList().map((p) => p.name))(
    '%s decides the same until there is something different to be seen',
    async (name) => {
      const usual = await happenings(name, lasting, workload(1));
      const longer = await happenings(name, lasting, workload(1.5));
      const taken = await happenings(name, ending, workload(1));
      expect(early(usual).length).toBeGreaterThan(20);
      expect(early(longer)).toEqual(early(usual));
      expect(longer).not.toEqual(usual);
      expect(early(taken)).toEqual(early(usual));
      if (!['on-demand', 'fargate'].includes(name)) expect(taken).not.toEqual(usual);
    },
    60_000,
  );

  it('the default decides so with its solver too, of stages that wait for one another', async () => {
    const highs = deterministic(highsSolver(), 50);
    let plans = 0;
    const counted: Solver = {
      ...highs,
      solve: (...of) => {
        plans++;
        return highs.solve(...of);
      },
      relax: (...of) => highs.relax(...of),
      write: (...of) => highs.write(...of),
      close: () => highs.close(),
    };
    try {
      // Less than all would take at once: else the plan without the solver leaves nothing to be gained.
      const scarce = { solver: counted, vcpus: 8 };
      const usual = await happenings('ebbtide', lasting, staged(1), scarce);
      const solved = plans;
      const longer = await happenings('ebbtide', lasting, staged(1.5), scarce);
      expect(solved).toBeGreaterThan(0);
      // The second stages have begun before there is anything to be seen of them.
      expect(early(usual).filter((e) => e.includes('attempt-starting work')).length).toBeGreaterThan(0);
      expect(early(longer)).toEqual(early(usual));
      expect(longer).not.toEqual(usual);
    } finally {
      await highs.close();
    }
  }, 60_000);
});
