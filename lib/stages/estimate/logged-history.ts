import { z } from 'zod';
import { epochMs, raw, seconds, type Seconds } from '../../kernel/units.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { JobFeatures, RuntimeHistory } from '../../domain/forecasts.ts';
import { HISTORY_PREFIX, corrupt } from './history-codec.ts';
import { JvuPredict } from './predictor.ts';
import { RESOURCE_KINDS, fromVector, vector } from '../../domain/resources.ts';

/** Rows of the log, `history/log/<n>`: no feature has this name. */
const LOG_PREFIX = `${HISTORY_PREFIX}log/`;
/**
 * Length of the log before a fold into histories. A run changes some ten histories of about a kilobyte each, but is one
 * line in the log. Runs of recurring jobs share histories: a fold of 256 runs of one template writes ten rows, and one
 * of 256 different jobs no more than without a log.
 */
const FOLD_AT = 256;

const line = z.strictObject({
  o: z.string(),
  j: z.string(),
  p: z.string(),
  s: z.string(),
  r: z.array(z.number()).length(RESOURCE_KINDS.length).readonly(),
  t: z.number(),
  d: z.number().nonnegative(),
});
const lines = z.array(line);
type Line = z.infer<typeof line>;

/**
 * JVuPredict whose runs since the last fold are kept as a log: storing a run costs its line, not the ten histories that
 * it changes. A state restored from stored rows equals one that learned the same runs in the same order.
 * Lifecycle: `restore` stored rows, then `predict` and `learn`; `takeDirty` hands out rows to be written together with
 * the learned observation. An empty row stands for a deleted one.
 */
export class LoggedHistory implements RuntimeHistory {
  readonly prefix = HISTORY_PREFIX;
  readonly predictor: JvuPredict;
  readonly #foldAt: number;
  /** Learned since the last `takeDirty`. */
  #fresh: Line[] = [];
  /** Stored rows of the log, and the runs in them. */
  #rows = 0;
  #logged = 0;

  constructor(predictor = new JvuPredict(), foldAt = FOLD_AT) {
    this.predictor = predictor;
    this.#foldAt = foldAt;
  }

  predict(features: JobFeatures): RuntimeForecast | null {
    return this.predictor.predict(features);
  }

  learn(features: JobFeatures, runtimeS: Seconds): void {
    this.predictor.learn(features, runtimeS);
    this.#fresh.push(lineOf(features, runtimeS));
  }

  /**
   * One row for the log, however many runs were learned; after `foldAt` runs the changed histories, and an empty log.
   */
  takeDirty(): ReadonlyMap<string, string> {
    const fresh = this.#fresh;
    this.#fresh = [];
    if (fresh.length === 0) return new Map();
    if (this.#logged + fresh.length < this.#foldAt) {
      this.#logged += fresh.length;
      return new Map([[rowKey(this.#rows++), JSON.stringify(fresh)]]);
    }
    const rows = new Map(this.predictor.takeDirty());
    for (let n = 0; n < this.#rows; n++) rows.set(rowKey(n), '');
    this.#rows = 0;
    this.#logged = 0;
    return rows;
  }

  /** Replaces all state, stored or not, by these rows. Throws `store.corrupt`. */
  restore(rows: ReadonlyMap<string, string>): void {
    const isLog = (key: string): boolean => key.startsWith(LOG_PREFIX);
    this.predictor.restore(new Map([...rows].filter(([key]) => !isLog(key))));
    this.#fresh = [];
    this.#rows = 0;
    this.#logged = 0;
    const log = [...rows].filter(([key, text]) => isLog(key) && text !== '').sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [key, text] of log) {
      const runs = linesOf(key, text);
      for (const run of runs) this.predictor.learn(featuresOf(run), seconds(run.d));
      this.#rows = Number(key.slice(LOG_PREFIX.length)) + 1;
      this.#logged += runs.length;
    }
  }
}

/** Digits enough that keys sort as their numbers do. */
const rowKey = (n: number): string => `${LOG_PREFIX}${String(n).padStart(6, '0')}`;

function lineOf({ owner, jobName, program, stage, resources, submittedMs }: JobFeatures, runtimeS: Seconds): Line {
  return {
    o: owner,
    j: jobName,
    p: program,
    s: stage,
    r: vector(resources),
    t: raw(submittedMs),
    d: raw(runtimeS),
  };
}

const featuresOf = ({ o, j, p, s, r, t }: Line): JobFeatures => ({
  owner: o,
  jobName: j,
  program: p,
  stage: s,
  resources: fromVector(r),
  submittedMs: epochMs(t),
});

function linesOf(key: string, text: string): readonly Line[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw corrupt(key, 'no JSON');
  }
  const parsed = lines.safeParse(json);
  if (!parsed.success) throw corrupt(key, z.prettifyError(parsed.error));
  return parsed.data;
}
