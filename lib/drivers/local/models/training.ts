/**
 * Trains a version on price histories, judges it beside the one in use on unseen data, and takes it if it is better.
 * Invariants: files below `own` under a version's name are complete; the version in use changes only to one shown to be
 * better. Crash points: all work is done in `.training-PID` there, and the version moves to its place in one step.
 * Dying before leaves that folder, which no list shows and the next training removes; dying after leaves a version that
 * is not in use.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EbbError } from '../../../kernel/errors.ts';
import { addChoice } from '../../../models/choices.ts';
import { EVALUATION_FILE } from '../../../models/evaluation/evaluation-record.ts';
import type { Risk } from '../../../models/preemption.ts';
import { checkVersion } from './check.ts';
import { datasetRows } from './dataset-rows.ts';
import { judge, WITHOUT_MODEL, type Candidate, type Judgement } from './judging.ts';
import { JUDGED_SPLIT, mustSuffice, writeSamples, type Drawing } from './samples.ts';
import { runTrainer, trainingPython, type Surroundings } from './trainer.ts';

export interface TrainingOrder {
  /** Folder of the directory's own versions. */
  readonly own: string;
  readonly version: string;
  readonly kind: 'trees' | 'lstm';
  readonly drawing: Drawing;
  /** A Python with the packages; null: one is made. */
  readonly python: string | null;
  /** The version in use; null: none. */
  readonly current: Candidate | null;
  /** The person behind it, and the time (ISO 8601). */
  readonly by: string;
  readonly at: string;
}

export interface Training {
  readonly version: string;
  readonly folder: string;
  readonly judgement: Judgement;
  /** The forecast that it had to beat. */
  readonly rival: string;
  /** True if it is in use from now on. */
  readonly taken: boolean;
}

const WORK = '.training-';

/**
 * Stopped by the signal it throws, and has changed nothing. Throws `market.invalid` for too little history, `conflict`
 * for a version that is there, `model.training`, `model.unusable`.
 */
export async function trainVersion(order: TrainingOrder, around: Surroundings): Promise<Training> {
  const { own, version } = order;
  const { say, signal } = around;
  const goOn = (): void => signal?.throwIfAborted();
  const drawing: Drawing = {
    ...order.drawing,
    onProgress: (progress) => {
      goOn();
      order.drawing.onProgress(progress);
    },
  };
  mustSuffice(drawing);
  if (existsSync(join(own, version))) {
    throw new EbbError('conflict', { what: 'there is a version of this name already', got: version });
  }
  const current = await whole(order.current, drawing.risk, around);
  const python = await trainingPython(order.python, around);
  sweep(own);
  const work = join(own, `${WORK}${process.pid}`);
  mkdirSync(work, { recursive: true, mode: 0o700 });
  try {
    const made = join(work, version);
    const samples = await writeSamples(join(work, 'dataset'), drawing);
    say(rangesText(samples));
    const args = ['--data', join(work, 'dataset'), '--output', made];
    await runTrainer(python, [...args, '--model', order.kind, '--seed', String(drawing.seed)], around);
    await mustBeWhole(made, drawing.risk);
    say('judging it on the range that was held out ...');
    const judgement = await judged(join(work, 'dataset'), [{ name: version, folder: made }, current], drawing);
    writeFileSync(join(made, EVALUATION_FILE), `${JSON.stringify(judgement.record, null, 1)}\n`, { flush: true });
    goOn();
    renameSync(made, join(own, version));
    return { ...choose(order, judgement), folder: join(own, version) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The version in use, if it runs: a damaged one cannot be compared with, and does not forecast anyway. */
async function whole(current: Candidate | null, risk: Risk, { say }: Surroundings): Promise<Candidate | null> {
  if (current === null) return null;
  const check = await checkVersion(current.folder, risk);
  if (check.kind === 'whole') return current;
  if (check.kind === 'no-runtime') {
    throw new EbbError('model.unusable', {
      what: 'what is trained cannot be judged here',
      got: check.what,
      next: 'install ONNX Runtime beside ebb: npm install onnxruntime-node',
    });
  }
  say(`the version in use cannot be asked (${check.what}): the new one is compared with ${WITHOUT_MODEL[risk]}`);
  return null;
}

/** Removes remains of trainings that died. */
function sweep(own: string): void {
  if (!existsSync(own)) return;
  for (const name of readdirSync(own)) {
    const pid = name.startsWith(WORK) ? Number(name.slice(WORK.length)) : NaN;
    if (Number.isInteger(pid) && !isAlive(pid)) rmSync(join(own, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM';
  }
}

async function mustBeWhole(folder: string, risk: Risk): Promise<void> {
  const check = await checkVersion(folder, risk);
  if (check.kind === 'whole') return;
  throw new EbbError('model.training', {
    what: 'what was trained cannot be used, and is not kept',
    got: check.what,
    ...(check.kind === 'no-runtime' ? { next: 'install ONNX Runtime beside ebb: npm install onnxruntime-node' } : {}),
  });
}

function judged(
  dataset: string,
  candidates: readonly (Candidate | null)[],
  { risk, from, seed }: Drawing,
): Promise<Judgement> {
  const traces = 'own' in from ? [] : from.traces.map((s) => s.trace);
  const present = candidates.filter((c) => c !== null);
  return judge(present, { risk, rows: datasetRows(dataset), traces, split: JUDGED_SPLIT, seed });
}

/**
 * True if better than the version in use, or without one than the forecast without a model: by the whole interval of
 * the paired difference.
 */
function choose({ own, version, at, by }: TrainingOrder, judgement: Judgement): Omit<Training, 'folder'> {
  const [against] = judgement.differences;
  const taken = against?.difference.verdict === 'better';
  const rival = against?.than ?? '';
  if (taken) {
    const { value, low, high, days } = against.difference;
    const why = `trained, and better than ${rival} on ${days} days: Brier ${value.toFixed(4)} [${low.toFixed(4)}, ${high.toFixed(4)}]`;
    addChoice(own, { kind: 'use', version, at, by, why });
  }
  return { version, judgement, rival, taken };
}

const rangesText = ({ rows, sources }: Awaited<ReturnType<typeof writeSamples>>): string =>
  [
    `${rows.toLocaleString('en-US')} samples`,
    ...sources.map(
      (s) =>
        `${s.name}: trained from ${s.from}, calibrated from ${s.validationFrom}, held out from ${s.testFrom} to ${s.to}`,
    ),
  ].join('; ');
