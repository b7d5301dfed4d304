/**
 * The thread in which HiGHS (WebAssembly) runs: its calls block, the engine's event loop must not. One request at a
 * time, one reply each. The compiled module stays loaded between requests; models are disposed after each, because
 * WebAssembly memory is not collected.
 */
import { parentPort } from 'node:worker_threads';
import loadHighs, { type Highs, type Model } from 'highs';
import { unreachable } from '../../kernel/errors.ts';
import type { SolveLimits, SolveOutcome } from '../../policy/solver.ts';
import type { HighsReply, HighsRequest, ModelNumbers, Relaxed } from './highs-protocol.ts';

/** HiGHS' own tolerance for calling a gap closed. */
const CLOSED_GAP = 1e-9;

/** The package types its loader as CommonJS (`module.default`); its ES module exports the function itself. */
const load = loadHighs as unknown as typeof loadHighs.default;

// Nothing is loaded by who only imports this file: a bundle that is its own worker does.
const loaded: Promise<Highs> | null = parentPort === null ? null : load();

parentPort?.on('message', (request: HighsRequest) => {
  void (loaded ?? load())
    .then((highs) => answer(highs, request))
    .catch((fault: unknown): HighsReply => ({ kind: 'failed', detail: String(fault) }))
    .then((reply) => parentPort?.postMessage(reply));
});

function answer(highs: Highs, request: HighsRequest): HighsReply {
  switch (request.kind) {
    case 'solve':
      return { kind: 'solve', outcome: solve(highs, request.model, request.limits, request.start) };
    case 'relax':
      return { kind: 'relax', relaxed: relax(highs, request.model, request.limits) };
    case 'write':
      return { kind: 'write', text: write(highs, request) };
    default:
      return unreachable(request, 'highs-worker');
  }
}

function modelOf(highs: Highs, numbers: ModelNumbers, integers: boolean): Model {
  const model = highs.createModel({
    numCols: numbers.columns,
    numRows: numbers.rows,
    sense: highs.constants.objectiveSense.maximize,
    colCost: numbers.objective,
    colLower: numbers.columnLower,
    colUpper: numbers.columnUpper,
    rowLower: numbers.rowLower,
    rowUpper: numbers.rowUpper,
    matrix: {
      format: 'csr',
      numRows: numbers.rows,
      numCols: numbers.columns,
      starts: numbers.rowStart,
      indices: numbers.columnIndex,
      values: numbers.coefficient,
    },
    ...(integers && numbers.integer.includes(1) ? { integrality: Int32Array.from(numbers.integer) } : {}),
  });
  model.options.set('output_flag', false);
  return model;
}

function limit(model: Model, limits: SolveLimits): void {
  model.options.set('mip_rel_gap', limits.relativeGap);
  if (limits.maxNodes !== null) model.options.set('mip_max_nodes', limits.maxNodes);
  if (limits.maxSeconds !== null) model.options.set('time_limit', limits.maxSeconds);
}

function solve(highs: Highs, numbers: ModelNumbers, limits: SolveLimits, start: Float64Array | null): SolveOutcome {
  const began = performance.now();
  const model = modelOf(highs, numbers, true);
  try {
    limit(model, limits);
    if (start !== null) model.setSolution({ colValue: start });
    model.run();
    return { ...outcomeOf(highs, model, numbers), elapsedMs: performance.now() - began };
  } finally {
    model.dispose();
  }
}

function outcomeOf(highs: Highs, model: Model, numbers: ModelNumbers): SolveOutcome {
  const codes = highs.constants.modelStatus;
  const status = model.getModelStatus();
  if (status === codes.infeasible) return { status: 'infeasible' };
  if (status === codes.empty) return { status: 'optimal', values: new Float64Array(0), objective: 0, bound: 0 };
  const isMip = numbers.integer.includes(1);
  const feasible = Number(model.info.get('primal_solution_status')) === highs.constants.solutionStatus.feasible;
  if (status === codes.optimal) {
    const objective = model.getObjectiveValue();
    const bound = isMip ? Math.max(objective, Number(model.info.get('mip_dual_bound'))) : objective;
    const found = { values: model.getSolution().colValue, objective, bound };
    const gap = relativeGap(objective, bound);
    return gap <= CLOSED_GAP ? { status: 'optimal', ...found } : { status: 'feasible', ...found, gap, limit: 'gap' };
  }
  const stopped = status === codes.timeLimit ? 'time' : status === codes.solutionLimit ? 'nodes' : null;
  if (stopped === null)
    return { status: 'failed', detail: `HiGHS ended with model status ${status} (${nameOf(highs, status)})` };
  const dual = isMip ? Number(model.info.get('mip_dual_bound')) : Infinity;
  if (!feasible) return { status: 'no-solution', bound: Number.isFinite(dual) ? dual : null, limit: stopped };
  const objective = model.getObjectiveValue();
  const bound = Math.max(objective, dual);
  const gap = relativeGap(objective, bound);
  return { status: 'feasible', values: model.getSolution().colValue, objective, bound, gap, limit: stopped };
}

const relativeGap = (objective: number, bound: number): number => (bound - objective) / Math.max(Math.abs(bound), 1e-9);

function nameOf(highs: Highs, status: number): string {
  return Object.entries(highs.constants.modelStatus).find(([, code]) => code === status)?.[0] ?? 'unknown';
}

function relax(highs: Highs, numbers: ModelNumbers, limits: SolveLimits): Relaxed | null {
  const model = modelOf(highs, numbers, false);
  try {
    limit(model, limits);
    model.run();
    const codes = highs.constants.modelStatus;
    if (model.getModelStatus() === codes.empty) {
      return { bound: 0, values: new Float64Array(0), rowDuals: new Float64Array(0) };
    }
    if (model.getModelStatus() !== codes.optimal) return null;
    const solution = model.getSolution();
    return { bound: model.getObjectiveValue(), values: solution.colValue, rowDuals: solution.rowDual };
  } finally {
    model.dispose();
  }
}

function write(highs: Highs, request: Extract<HighsRequest, { kind: 'write' }>): string {
  const model = modelOf(highs, request.model, true);
  try {
    request.columnNames.forEach((name, column) => model.passColName(column, name));
    request.rowNames.forEach((name, row) => model.passRowName(row, name));
    return request.format === 'lp' ? model.exportModel('lp') : new TextDecoder().decode(model.exportModel('mps'));
  } finally {
    model.dispose();
  }
}
