/**
 * Judges versions beside one another and beside the forecast without a model, on the same bids (of capacity: moments):
 * those of the last part of the time, at instants that none of them has seen in training.
 */
import { EbbError } from '../../../kernel/errors.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import { cell, JUDGED_S, rowsOf, type Row } from '../../../models/evaluation/cells.ts';
import { LEAST_WATCHED, watchingOf } from '../../../models/evaluation/censoring.ts';
import { brierDifference, type Difference } from '../../../models/evaluation/comparison.ts';
import { askedOf, atHorizon, curvesOf, type Curves } from '../../../models/evaluation/curves.ts';
import type { EvaluationRecord, ForecastFigures } from '../../../models/evaluation/evaluation-record.ts';
import { outcomeWithin, type DatasetRows } from '../../../models/evaluation/dataset-rows.ts';
import type { Interval } from '../../../models/evaluation/scores.ts';
import { openModel } from '../../../models/model.ts';
import { lossModel, type Risk } from '../../../models/preemption.ts';
import { seenBy, type Range } from '../../../models/training-facts.ts';
import { FEATURES_OF } from './features-of.ts';
import { historicalMedians } from './medians.ts';

/** Name of the forecast without a model. */
export const WITHOUT_MODEL: Record<Risk, string> = { price: 'history', capacity: 'observed' };

export interface Candidate {
  readonly name: string;
  readonly folder: string;
}

export interface Judgement {
  /** Figures of the first candidate, the others and the forecast without a model, in their order. */
  readonly record: EvaluationRecord;
  /** The first candidate less each other forecast. */
  readonly differences: readonly { readonly than: string; readonly difference: Difference }[];
}

export interface Evidence {
  readonly risk: Risk;
  readonly rows: DatasetRows;
  /** In the order of the data set's sources. */
  readonly traces: readonly MarketTrace[];
  /** Held-out split of the judged rows. */
  readonly split: string;
  /** Seed of the bootstraps. */
  readonly seed: number;
}

/** Throws `model.unusable` for a version that does not run, `market.invalid` if no unseen instants are left. */
export async function judge(candidates: readonly Candidate[], evidence: Evidence): Promise<Judgement> {
  const { risk, rows, split, seed } = evidence;
  const opened = await openAll(candidates, risk);
  try {
    const seen = opened.flatMap(({ model }) => seenBy(model.manifest));
    const asked = heldOut(rows, split, seen);
    const curves: Curves[] = [];
    for (const { name, model } of opened) {
      curves.push({ ...(await curvesOf(lossModel(model, FEATURES_OF[risk]), rows, asked)), name });
    }
    const all: Curves[] = [...curves, withoutModel(evidence, asked)];
    const [mine, ...others] = all;
    return {
      record: recordOf(rows, asked, { curves: all, split, seed }),
      differences: others.flatMap((other) =>
        mine === undefined ? [] : [{ than: other.name, difference: brierDifference(rows, asked, [mine, other], seed) }],
      ),
    };
  } finally {
    for (const { model } of opened) await model.close();
  }
}

function withoutModel({ risk, rows, traces }: Evidence, asked: readonly number[]): Curves {
  const name = WITHOUT_MODEL[risk];
  if (rows.observed !== undefined) return { name, horizonsS: rows.manifest.horizonsS, p: rows.observed };
  return { name, horizonsS: [JUDGED_S], p: historicalMedians(rows, traces, asked).rolling };
}

async function openAll(candidates: readonly Candidate[], risk: Risk) {
  const opened = [];
  for (const { name, folder } of candidates) {
    const opening = await openModel(folder, FEATURES_OF[risk]);
    if (opening.kind !== 'open') {
      for (const { model } of opened) await model.close();
      throw new EbbError('model.unusable', {
        what: 'a version cannot be asked',
        got: opening.what,
        next:
          opening.kind === 'no-runtime'
            ? 'install ONNX Runtime beside ebb: npm install onnxruntime-node'
            : `restore ${folder}, or name another version: \`ebb models list\``,
      });
    }
    opened.push({ name, model: opening.model });
  }
  return opened;
}

/** Rows of the split at unseen instants, with an outcome within the hour that is known or weighted for. */
function heldOut(rows: DatasetRows, split: string, seen: readonly Range[]): number[] {
  const ofSplit = askedOf(rows, [split]).filter((row) => rows.manifest.censored === true || isKnown(rows, row));
  const at = (row: number): number => rows.atMs[row] ?? NaN;
  const asked = ofSplit.filter((row) => !seen.some(({ fromMs, toMs }) => at(row) >= fromMs && at(row) < toMs));
  if (asked.length > 0) return asked;
  const { sources } = rows.manifest;
  throw new EbbError('market.invalid', {
    what:
      ofSplit.length === 0
        ? 'nothing could be drawn from the last part of the market'
        : 'the last part of the market was seen by a version while it was trained, and would flatter it',
    got: sources.map((s) => `${s.name}: ${s.from} to ${s.to}, judged from ${s.testFrom}`).join('; '),
    allowed: `times outside of ${seen.map((r) => `${iso(r.fromMs)} to ${iso(r.toMs)}`).join(', ') || 'nothing'}`,
    next: 'give later markets, or longer ones, with --markets',
  });
}

const isKnown = (rows: DatasetRows, row: number): boolean => outcomeWithin(rows, row, JUDGED_S) !== 'unknown';

const iso = (ms: number): string => new Date(ms).toISOString();

interface Judged {
  readonly curves: readonly Curves[];
  readonly split: string;
  readonly seed: number;
}

function recordOf(rows: DatasetRows, asked: readonly number[], { curves, split, seed }: Judged): EvaluationRecord {
  const { weight, share } = watchingOf(rows, asked);
  const mine = asked.filter((row) => isKnown(rows, row));
  if (share(JUDGED_S) < LEAST_WATCHED) throw seldomWatched(share(JUDGED_S));
  const of = { mine, horizonS: JUDGED_S, weight };
  const judged = cell(rows, { source: 'together', split, protocol: 'all bids' }, of);
  const total = mine.reduce((sum, row) => sum + weight(row, JUDGED_S), 0);
  const lost = mine.reduce((sum, row, i) => sum + (judged.lost[i] ?? 0) * weight(row, JUDGED_S), 0);
  const forecasts = curves.map((each) => atHorizon(each, JUDGED_S));
  const times = asked.map((row) => rows.atMs[row] ?? NaN);
  return {
    format: 1,
    horizonS: JUDGED_S,
    from: iso(times.reduce((a, b) => Math.min(a, b), Infinity)),
    to: iso(times.reduce((a, b) => Math.max(a, b), -Infinity)),
    markets: rows.manifest.sources.map((s) => s.name),
    bids: mine.length,
    ...(rows.manifest.risk === 'capacity' ? { asked: 'moments' as const } : {}),
    days: judged.days,
    lostShare: known(lost / total) ?? 0,
    forecasts: rowsOf(judged, forecasts, seed).map(figuresOf),
  };
}

const seldomWatched = (share: number): EbbError =>
  new EbbError('market.invalid', {
    what: 'instances were hardly ever held long enough to tell what came of them within the hour',
    got: `${(100 * share).toFixed(1)} % of the moments could have been watched for an hour`,
    allowed: `at least ${100 * LEAST_WATCHED} %`,
    next: 'train on series of availability, with --markets',
  });

function figuresOf({ forecast, scores }: Row): ForecastFigures {
  const { accuracy, f1, aucPr, brier, ece } = scores;
  const of = (i: Interval) => ({ value: known(i.value), low: known(i.low), high: known(i.high) });
  return { name: forecast, accuracy: of(accuracy), f1: of(f1), aucPr: of(aucPr), brier: of(brier), ece: of(ece) };
}

/** Rounded to the sixth digit: no interval is that narrow. */
const known = (x: number): number | null => (Number.isFinite(x) ? Math.round(x * 1e6) / 1e6 : null);
