import { EbbError, ERROR_CODES, type ErrorCode } from '../../kernel/errors.ts';
import { VERSION } from '../../drivers/local/engine/version.ts';
import { SIMULATED_LIMIT } from '../../drivers/sim/simulation.ts';
import { compare } from '../../report/comparison.ts';
import { inHindsight } from '../../report/hindsight.ts';
import { refusalsOf } from '../../report/details.ts';
import { pricesOf } from '../../report/prices.ts';
import type { Action, Context } from '../context.ts';
import { json } from '../output.ts';
import { commandOf } from '../simulation/command-line.ts';
import { marketOf } from '../simulation/compose-simulation.ts';
import type { RunOrder, RunResult, WorkloadFacts } from '../simulation/run-order.ts';
import { ordersOf } from '../simulation/make-orders.ts';
import { runAll, type Ran } from '../simulation/pool.ts';
import { showProgress } from '../simulation/progress.ts';
import { writeWhole } from '../simulation/targets.ts';
import { endedByStop, onStopRequest, SIGNAL_EXIT, type StopSignal } from '../signals.ts';
import { simulationSummary } from '../views/simulation-summary.ts';
import type { SimulateOptions } from '../flags/simulate-flags.ts';
import type { Comparison } from '../../report/figures.ts';

/** Hint: the generated market is small on purpose. */
const OTHER_MARKET =
  'the made-up market has machines of 2 to 16 vCPUs and no GPUs. For others make a market and name it, e.g. ' +
  '`ebb market generate --types g4dn.2xlarge,g4dn.12xlarge,g5.48xlarge -o gpus.ebbmarket`, then --market gpus.ebbmarket; or ' +
  'leave GPUs out of a trace: --workload-option gpus=ignore';
const NOT_BEGUN = 'stopped: no simulation had begun';

/**
 * `ebb simulate`: presets x windows x seeds, in parallel, compared. If no job was done, the exit code is that of `ebb
 * run`: of the refusal, else of a failed job.
 */
export const simulate: Action<SimulateOptions> = async (context, _args, options) => {
  const {
    orders,
    report: path,
    notes,
  } = await endedByStop(context.output, NOT_BEGUN, () => ordersOf(options, context.world.cwd));
  for (const note of notes) context.output.note(note);
  const abort = new AbortController();
  const unlisten = onStopRequest((count, signal) => {
    if (count > 1) process.exit(SIGNAL_EXIT[signal]);
    context.output.note('\nstopping: what has been simulated so far is reported (Ctrl-C again reports nothing)');
    abort.abort(signal);
  });
  const progress = await showProgress(context.output, orders);
  let ran: Ran;
  try {
    ran = await runAll(orders, { onProgress: progress.update, signal: abort.signal });
  } finally {
    progress.close();
  }
  const { failure } = ran;
  const foreseen = inHindsight(ran.results.map((r) => r.outcome));
  const results = ran.results.map((result, i) => ({ ...result, outcome: foreseen[i] ?? result.outcome }));
  // After a failure only simulations that ended deserve a report.
  const worth = failure === null ? results.length > 0 : results.some((r) => r.outcome.ended !== 'aborted');
  // Signals are still handled: a signal that killed the process now would leave half a file.
  if (worth) await report(context, { options, orders, results, path });
  else if (failure === null) context.output.note('nothing to report: no simulation had begun');
  unlisten();
  if (failure !== null) throw failure;
  return abort.signal.aborted ? SIGNAL_EXIT[abort.signal.reason as StopSignal] : exitOf(results);
};

function exitOf(results: readonly RunResult[]): number {
  const outcomes = results.map((r) => r.outcome);
  // Services alone have no jobs that could be done.
  if (outcomes.some((o) => o.totals.succeeded > 0 || (o.totals.jobs === 0 && (o.services?.length ?? 0) > 0))) return 0;
  const refused = outcomes.every((o) => o.totals.jobs === 0) ? refusalsOf(outcomes)[0]?.code : undefined;
  return ERROR_CODES[isErrorCode(refused) ? refused : 'job.failed'].exit;
}

const isErrorCode = (code: string | undefined): code is ErrorCode =>
  code !== undefined && Object.hasOwn(ERROR_CODES, code);

/** Orders and results. */
interface Done {
  readonly options: SimulateOptions;
  readonly orders: readonly RunOrder[];
  readonly results: readonly RunResult[];
  /** File of the HTML report; null: none. */
  readonly path: string | null;
}

async function report({ output, json: asJson }: Context, done: Done): Promise<void> {
  const { options, orders, results, path } = done;
  const comparison = compare(
    results.map((r) => r.outcome),
    orders.map((o) => o.preset),
  );
  // The figures may have taken hours: a page that cannot be written must not lose them.
  const unwritten = path === null ? null : await writeReport(path, { ...done, comparison }).then(() => null, asKnown);
  const { workload, marketNotes = [] } = results[0] ?? {};
  const refusals = refusalsOf(results.map((r) => r.outcome));
  if (asJson)
    json(output, { ...comparison, refusals, workload: workload === undefined ? null : factsOf(workload), marketNotes });
  else {
    for (const note of workload === undefined ? [] : [...workload.notes, ...marketNotes, ...findingsOf(workload)])
      output.note(note);
    for (const { code, count, first } of refusals) {
      const [example] = first;
      const where = results.length > 1 ? `, in ${results.length} simulations` : '';
      output.note(`${count} refused at submission${where}: ${code}; ${example?.key ?? ''}: ${example?.what ?? ''}`);
    }
    if (orders[0]?.market === null && orders[0].cluster === undefined && results.some(lacksMachines))
      output.note(OTHER_MARKET);
    output.line(simulationSummary(output, comparison, unwritten === null ? (options.report ?? null) : null));
  }
  if (unwritten !== null) throw unwritten;
}

/** True if the market has no machine for some job, whatever the vCPU limit. */
const lacksMachines = ({ outcome }: RunResult): boolean =>
  outcome.refused.some((r) => r.code === 'job.unplaceable' && !r.next.includes(SIMULATED_LIMIT));

function asKnown(error: unknown): EbbError {
  if (error instanceof EbbError) return error;
  throw error;
}

/** Throws EbbError if the file cannot be written. */
async function writeReport(
  path: string,
  { options, orders, results, comparison }: Done & { readonly comparison: Comparison },
): Promise<void> {
  const [first] = orders;
  const [run] = results;
  if (first === undefined || run === undefined) return;
  const { reportHtml } = await import('../../report/html.ts');
  const { trace } = await marketOf(first);
  const runs = results.map((r) => r.outcome);
  const text = await reportHtml({
    title: `${run.workload.name} on ${trace.name}`,
    workload: `${run.workload.name} (${run.workload.format})`,
    market: trace.name,
    command: commandOf(options),
    versions: { ebbtide: VERSION, node: process.versions.node },
    notes: findingsOf(run.workload),
    assumptions: [...run.workload.notes, ...run.marketNotes],
    runs,
    comparison,
    prices: pricesOf(trace, runs),
  });
  writeWhole(path, text);
}

/** Findings of the reader for people: lines left out, changed or unusable. */
function findingsOf({ report }: WorkloadFacts): readonly string[] {
  const counted = (what: ReadonlyMap<string, number>): string[] => [...what].map(([why, n]) => `${why}: ${n}`);
  const bad = report.bad.first.map(placed);
  const more = report.bad.count - bad.length;
  return [
    ...counted(report.dropped),
    ...counted(report.adjusted),
    ...bad,
    ...(more > 0 ? [`more bad lines: ${more}`] : []),
  ];
}

/** One finding with its place. Findings on whole files have no line; those in job files name it themselves. */
function placed({ file, line, what }: WorkloadFacts['report']['bad']['first'][number]): string {
  if (line > 0) return `${file}:${line}: ${what}`;
  return what.startsWith(file) ? what : `${file}: ${what}`;
}

const factsOf = ({ report, ...facts }: WorkloadFacts) => ({
  ...facts,
  report: { ...report, dropped: Object.fromEntries(report.dropped), adjusted: Object.fromEntries(report.adjusted) },
});
