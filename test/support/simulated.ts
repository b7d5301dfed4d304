import { presetNamed } from '../../lib/stages/registry.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import type { StageSpec } from '../../lib/domain/job.ts';
import { epochMs, plus, raw, seconds } from '../../lib/kernel/units.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import type { EventRecord } from '../../lib/ports/store.ts';
import { simulate, type SimulationInput, type SimulationResult } from '../../lib/drivers/sim/simulation.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { mixedTrace, START_MS } from './mixed-workload.ts';
import { spec, stage } from './builders.ts';
import { noSolver } from '../../bench/load/no-solver.ts';

/** A job of one stage whose tasks run for `runtimesS`. */
export function simulatedJob(
  key: string,
  submittedS: number,
  runtimesS: readonly number[],
  over: {
    readonly owner?: string;
    readonly deadlineS?: number;
    readonly failures?: readonly number[];
    readonly stage?: Partial<StageSpec>;
    readonly after?: readonly string[];
  } = {},
): WorkloadJob {
  const { owner, deadlineS, failures } = over;
  return {
    key,
    submittedS,
    spec: spec({
      name: key,
      ...(owner === undefined ? {} : { owner }),
      after: over.after ?? [],
      ...(deadlineS === undefined ? {} : { class: 'deadline', deadline: { afterS: seconds(deadlineS) } }),
      stages: [stage({ tasks: runtimesS.length, expectedRuntimeS: seconds(600), ...over.stage })],
    }),
    truth: new Map([
      [
        'main',
        {
          runtimeS: Float64Array.from(runtimesS),
          ...(failures === undefined ? {} : { failures: Uint16Array.from(failures) }),
        },
      ],
    ]),
  };
}

/** A simulation on the small market of two pools, by the preset without a solver unless told otherwise. */
export async function simulated(
  jobs: readonly WorkloadJob[],
  over: Partial<SimulationInput> = {},
): Promise<SimulationResult & { readonly events: readonly EventRecord[] }> {
  const events: EventRecord[] = [];
  const result = await simulate({
    trace: mixedTrace,
    market: (now) => replayMarket(mixedTrace, now),
    fromMs: START_MS,
    toMs: epochMs(Math.min(raw(mixedTrace.endMs), raw(plus(START_MS, seconds(48 * 3600))))),
    jobs,
    namesJobs: false,
    deciders: () => ({ name: 'greedy', stages: presetNamed('greedy').stages }),
    solver: noSolver,
    config: schedulerConfig.parse({}),
    vcpus: 64,
    seed: 1,
    minGapS: seconds(5),
    setupS: seconds(0),
    onEvent: (event) => void events.push(event),
    ...over,
  });
  return { ...result, events };
}
