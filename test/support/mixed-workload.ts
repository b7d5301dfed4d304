import { jobId } from '../../lib/kernel/ids.ts';
import { epochMs, mib, milliCpu, plus, raw, seconds, type EpochMs } from '../../lib/kernel/units.ts';
import type { Checkpoint, Job } from '../../lib/domain/job.ts';
import { traceOf, type SpotMarket } from '../../lib/market/price-steps.ts';
import { job, resources, spec, stage } from './builders.ts';
import { work, type Deed } from './engine-bench.ts';

/** A market that takes its cheapest pool back on time, and five jobs that between them do all that jobs do. */

export const START_MS = epochMs(Date.UTC(2026, 0, 5, 12));
const DAY_MS = 86_400_000;
export const after = (s: number): EpochMs => plus(START_MS, seconds(s));

const market = (zone: string, usdPerHour: number, outage: readonly [number, number] | null): SpotMarket => ({
  type: {
    name: 'c5.xlarge',
    family: 'c5',
    generation: 5,
    arch: 'x86_64',
    capacity: { cpu: milliCpu(4000), memory: mib(8192), gpus: 0, disk: mib(100_000) },
  },
  zone,
  onDemandUsdPerHour: 0.17,
  prices: { atMs: Float64Array.of(raw(START_MS) - DAY_MS), usdPerHour: Float64Array.of(usdPerHour) },
  availability:
    outage === null
      ? null
      : {
          atMs: Float64Array.of(raw(START_MS) - DAY_MS, raw(after(outage[0])), raw(after(outage[1]))),
          available: Uint8Array.of(1, 0, 1),
        },
});

/** Zone a is cheapest and has no capacity between 12 and 30 minutes after the start. */
export const mixedTrace = traceOf(
  { name: 'mixed', startMs: epochMs(raw(START_MS) - DAY_MS), endMs: epochMs(raw(START_MS) + DAY_MS) },
  [market('a', 0.04, [720, 1800]), market('b', 0.06, null)],
);

/** Zone b alone, where nothing ever happens. */
export const calmTrace = traceOf(
  { name: 'calm', startMs: epochMs(raw(START_MS) - DAY_MS), endMs: epochMs(raw(START_MS) + DAY_MS) },
  [market('b', 0.06, null)],
);

/** Saves when it is told to, but not within the notice of an interruption, which loses hours. */
export const SAVES_SLOWLY: Checkpoint = { signal: 'SIGUSR2', graceS: seconds(300), everyS: seconds(28_800) };
export const SAVES: Checkpoint = { signal: 'SIGUSR2', graceS: seconds(30), everyS: seconds(120) };

export const CANCELLED = jobId('j-cancelled');
export function mixedJobs(): Job[] {
  const at = { submittedMs: START_MS };
  return [
    job({
      ...at,
      name: 'j-deadline',
      deadlineMs: after(4 * 3600),
      spec: spec({
        name: 'deadline',
        class: 'deadline',
        deadline: { atMs: after(4 * 3600) },
        stages: [
          stage({ tasks: 3, env: work(1200), expectedRuntimeS: seconds(1200), checkpoint: SAVES }),
          stage({ name: 'sum', dependsOn: ['main'], env: work(120), expectedRuntimeS: seconds(120) }),
        ],
      }),
    }),
    job({
      ...at,
      name: 'j-retried',
      spec: spec({ name: 'retried', stages: [stage({ tasks: 2, env: work(300, 1), retries: 1 })] }),
    }),
    job({
      ...at,
      name: 'j-gang',
      spec: spec({
        name: 'gang',
        stages: [stage({ tasks: 3, gang: true, env: work(600), resources: resources(2) })],
      }),
    }),
    job({
      ...at,
      name: 'j-dependent',
      after: [jobId('j-deadline')],
      spec: spec({ name: 'dependent', after: ['j-deadline'], stages: [stage({ env: work(180) })] }),
    }),
    job({
      ...at,
      name: 'j-cancelled',
      spec: spec({ name: 'cancelled', stages: [stage({ tasks: 2, env: work(20_000) })] }),
    }),
  ];
}

/** One of them is cancelled while it runs. */
export const mixedDeeds = (): Deed[] => [{ atMs: after(600), act: (store) => store.requestCancel(CANCELLED) }];

/** How they end, whatever happens to the engine. */
export const MIXED_ENDS = {
  'j-deadline': 'succeeded',
  'j-retried': 'succeeded',
  'j-gang': 'succeeded',
  'j-dependent': 'succeeded',
  'j-cancelled': 'cancelled',
} as const;
