import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { distribution, mean } from '../../../../lib/domain/distribution.ts';
import { worthAt } from '../../../../lib/domain/utility.ts';
import { epochMs, milliCpu, raw, seconds } from '../../../../lib/kernel/units.ts';
import { stageDurationS, stageGraph } from '../../../../lib/stages/value/critical-path.ts';
import { bestEffortCurve, deadlineCurve } from '../../../../lib/stages/value/curves.ts';
import { backOff, workLeft } from '../../../../lib/stages/value/work-left.ts';

const amount = fc.double({ min: 0, max: 1e6, noNaN: true });
const runtime = fc
  .array(fc.tuple(fc.double({ min: 1, max: 1e5, noNaN: true }), fc.double({ min: 0.01, max: 1, noNaN: true })), {
    minLength: 1,
    maxLength: 12,
  })
  .map((points) => distribution(points));

describe('value functions', () => {
  it('never rise with time', () => {
    const facts = fc.record({ top: amount, end: amount, fadeS: amount, fromS: fc.integer({ min: 0, max: 1e9 }) });
    fc.assert(
      fc.property(
        facts,
        fc.array(fc.integer({ min: -1e6, max: 3e9 }), { minLength: 2 }),
        ({ top, end, fadeS, fromS }, ts) => {
          const from = epochMs(fromS * 1000);
          const curves = [
            deadlineCurve({ onTimeUsd: top, deadlineMs: from, fadeS: seconds(fadeS), endUsd: end }),
            bestEffortCurve({ atOnceUsd: top, submittedMs: from, fadeS: seconds(fadeS), endUsd: end }),
          ];
          const times = [...ts].sort((a, b) => a - b);
          for (const curve of curves) {
            const worths = times.map((s) => worthAt(curve, epochMs(s * 1000)));
            worths.forEach((w, i) => {
              expect(w).toBeGreaterThanOrEqual(0);
              expect(w).toBeLessThanOrEqual(top);
              if (i > 0) expect(w).toBeLessThanOrEqual((worths[i - 1] ?? 0) * (1 + 1e-9) + 1e-9);
            });
            expect(worthAt(curve, from)).toBe(top);
          }
        },
      ),
      { seed: 31 },
    );
  });
});

describe('work left', () => {
  it('of a restart is what staying takes plus what is redone; more progress never means more to do in all', () => {
    fc.assert(
      fc.property(
        runtime,
        fc.double({ min: 0, max: 2e5, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (d, done, f) => {
          const kept = done * f;
          const { stay, restart } = workLeft(d, seconds(done), seconds(kept), seconds(60));
          expect(stay.atS.every((s) => s > 0)).toBe(true);
          expect(stay.weight.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9);
          expect(raw(mean(restart))).toBeCloseTo(raw(mean(stay)) + (done - kept), 4);
          // The total runtime, given that it is beyond `done`, is beyond `done`.
          expect(done + (stay.atS[0] ?? 0)).toBeGreaterThan(done);
        },
      ),
      { seed: 32 },
    );
  });

  it('backs off by doubling, as simulating JVuSched cycle by cycle does', () => {
    // The estimate grows by 2^t cycles whenever it is reached; time runs in tenths of a cycle.
    let estimate = 1;
    let t = 1;
    for (let tenth = 0; tenth < 2000; tenth++) {
      const over = tenth / 10;
      while (over >= estimate) estimate += 2 ** t++;
      expect(raw(backOff(seconds(over * 60), seconds(60)))).toBeCloseTo((estimate - over) * 60, 6);
    }
    expect(estimate).toBeGreaterThan(200);
  });
});

describe('critical path', () => {
  interface Node {
    readonly name: string;
    readonly dependsOn: readonly string[];
    readonly duration: number;
  }
  const graphs = fc
    .array(fc.tuple(fc.integer({ min: 1, max: 100 }), fc.array(fc.nat(), { maxLength: 3 })), {
      minLength: 1,
      maxLength: 9,
    })
    .map((nodes) =>
      nodes.map(([duration, before], i): Node => ({
        name: `s${i}`,
        dependsOn: i === 0 ? [] : [...new Set(before.map((b) => `s${b % i}`))],
        duration,
      })),
    );

  it('is the longest of all paths, and descendants are all that can be reached', () => {
    const paths = (nodes: readonly Node[], from: string): Node[][] => {
      const next = nodes.filter((n) => n.dependsOn.includes(from));
      return next.flatMap((n) => [[n], ...paths(nodes, n.name).map((p) => [n, ...p])]);
    };
    fc.assert(
      fc.property(graphs, (nodes) => {
        const graph = stageGraph(nodes, (name) => nodes.find((n) => n.name === name)?.duration ?? NaN);
        for (const n of nodes) {
          const all = paths(nodes, n.name);
          const longest = Math.max(0, ...all.map((p) => p.reduce((sum, x) => sum + x.duration, 0)));
          expect(raw(graph.behindS(n.name))).toBe(longest);
          expect([...graph.descendants(n.name)].sort()).toEqual([...new Set(all.flat().map((x) => x.name))].sort());
        }
      }),
      { seed: 33, numRuns: 200 },
    );
  });

  it('takes longer with more tasks, fewer vCPUs and a higher quantile', () => {
    const sizes = fc.record({
      tasks: fc.integer({ min: 1, max: 50 }),
      vcpus: fc.integer({ min: 1, max: 40 }),
      d: runtime,
    });
    fc.assert(
      fc.property(sizes, fc.double({ min: 0.5, max: 0.98, noNaN: true }), ({ tasks, vcpus, d }, p) => {
        const duration = (n: number, v: number, q: number) =>
          stageDurationS({ name: 's', dependsOn: [], tasks: n, runtime: d, cpu: milliCpu(1000) }, v, q);
        const base = duration(tasks, vcpus, p);
        expect(base).toBeGreaterThan(0);
        expect(duration(tasks, vcpus, p + 0.01)).toBeGreaterThanOrEqual(base);
        // One wave more on top of full waves.
        expect(duration(tasks + vcpus, vcpus, p)).toBeGreaterThanOrEqual(base);
        expect(duration(0, vcpus, p)).toBe(0);
      }),
      { seed: 34 },
    );
  });
});
