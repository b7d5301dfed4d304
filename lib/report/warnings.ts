/** Doubts about the figures of a comparison, in sentences: on a terminal, as JSON and at the top of the page. */
import { LEAST_UNITS } from './bootstrap.ts';
import { COUNTED_PAST_END, type RunOutcome } from './outcome.ts';
import type { Comparison } from './figures.ts';

export interface Doubted extends Pick<Comparison, 'presets' | 'method'> {
  readonly runs: readonly RunOutcome[];
  /** Preset of each requested run. */
  readonly planned: readonly string[];
}

/** Warnings; empty: none. O(runs log runs). */
export const warningsOf = (of: Doubted): readonly string[] => [
  ...stopped(of),
  ...refusedPolicies(of),
  ...nothingDone(of),
  ...pastTheEnd(of),
  ...unevenWork(of),
  ...fewUnits(of),
  ...overlaps(of),
];

function stopped({ runs, planned }: Doubted): string[] {
  const warnings: string[] = [];
  const begun = new Set(runs.map((r) => r.preset));
  const missing = [...new Set(planned)].filter((preset) => !begun.has(preset));
  if (runs.length < planned.length) {
    const without = missing.length === 0 ? '' : ` There is none of ${missing.join(', ')}.`;
    warnings.push(
      `Only ${runs.length} of ${planned.length} runs were begun: figures and intervals rest on fewer runs than were asked for.${without}`,
    );
  }
  const aborted = runs.filter((r) => r.ended === 'aborted').length;
  if (aborted > 0) {
    warnings.push(
      `${aborted} of ${runs.length} runs were aborted: their figures are partial, and they are in no comparison between presets.`,
    );
  }
  return warnings;
}

/** Policies whose refused answers were replaced: their presets' figures are partly those of the replacement. */
function refusedPolicies({ runs }: Doubted): string[] {
  const all = runs.flatMap((r) => (r.refusedPolicies ?? []).map((of) => ({ ...of, preset: r.preset })));
  const groups = Map.groupBy(all, ({ preset, stage, policy }) => `${preset}: ${stage}: ${policy}`);
  return [...groups].map(([name, of]) => {
    const [{ firstWhy, standIn } = { firstWhy: '', standIn: '' }] = of;
    const times = of.reduce((sum, r) => sum + r.times, 0);
    return `Answers of the policy ${name} were refused ${times} times, and ${standIn} answered in its place. First: ${firstWhy}.`;
  });
}

function nothingDone({ presets }: Doubted): string[] {
  const idle = presets.filter(
    (p) => p.succeeded === 0 && p.aborted < p.runs && (p.jobs > 0 || p.services.length === 0),
  );
  if (idle.length === 0) return [];
  const whose = idle.length === presets.length ? '' : ` under ${idle.map((p) => p.preset).join(', ')}`;
  return [`Not one job was done${whose}: such a cost says nothing.`];
}

/** Jobs after the end were never submitted, and unfinished work costs nothing more. */
function pastTheEnd({ runs }: Doubted): string[] {
  const warnings: string[] = [];
  const cut = runs.filter((r) => r.totals.notSubmitted > 0);
  if (cut.length > 0) {
    const most = Math.max(...cut.map((r) => r.totals.notSubmitted));
    const least = Math.min(...cut.map((r) => r.totals.notSubmitted));
    const jobs = `${least === most ? '' : `${least} to `}${most}${most >= COUNTED_PAST_END ? ' or more' : ''}`;
    warnings.push(
      `The workload goes on after the end of the simulation${inRuns(cut, runs)}: ${jobs} of its jobs were never submitted. Begin earlier, end later, or take fewer jobs, a denser part of a trace (--workload-option fromS=SECONDS) or a longer market.`,
    );
  }
  const open = runs.filter((r) => r.ended === 'time-over' && r.totals.unfinished > 0);
  if (open.length > 0) {
    const jobs = open.reduce((sum, r) => sum + r.totals.unfinished, 0);
    warnings.push(
      `The simulation ended before the work did${inRuns(open, runs)}: ${jobs} unfinished in all, and the cost covers the work until then.`,
    );
  }
  return warnings;
}

const inRuns = (some: readonly RunOutcome[], all: readonly RunOutcome[]): string =>
  all.length === 1 ? '' : ` (in ${some.length} of ${all.length} runs)`;

/** Unfinished work costs nothing: a preset that leaves more of it looks cheap. */
function unevenWork({ presets }: Doubted): string[] {
  const done = presets.map((p) => p.succeeded / Math.max(p.runs, 1));
  return Math.max(...done) > Math.min(...done)
    ? ['The presets did not finish the same jobs, so their costs are not for the same work.']
    : [];
}

const fewUnits = ({ method }: Doubted): string[] =>
  method.units !== 'none' && method.n < LEAST_UNITS
    ? [
        `Only ${method.n} ${method.units}: with fewer than ${LEAST_UNITS} an interval holds less than its ${method.level * 100} %.`,
      ]
    : [];

/** Overlapping windows share prices and are not independent. */
function overlaps({ method, runs }: Doubted): string[] {
  if (method.units !== 'windows') return [];
  const windows = [...Map.groupBy(runs, (r) => r.fromMs)]
    .map(([fromMs, its]) => ({ fromMs, endMs: Math.max(...its.map((r) => r.endMs)) }))
    .sort((a, b) => a.fromMs - b.fromMs);
  const into = windows.filter(({ endMs }, i) => endMs > (windows[i + 1]?.fromMs ?? Infinity)).length;
  return into === 0
    ? []
    : [
        `${into} of ${windows.length} windows run into the next one and share prices with it: intervals are too narrow.`,
      ];
}
