import { z } from 'zod';
import { epochMs, raw, seconds, type Seconds } from '../../kernel/units.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import { MAX_LABELS, type JobFeatures, type LearnedRuntimes } from '../../domain/forecasts.ts';
import { HISTORY_PREFIX, corrupt, decodeHistory } from './history-codec.ts';
import { JvuPredict } from './predictor.ts';
import { RECENT_PREFIX, recentOf } from './recent-codec.ts';
import { RecurringRuns } from './recurring-runs.ts';
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
  /** Tasks, labels and guess; absent where there is one task, no label or no guess. */
  n: z.int().positive().optional(),
  l: z.array(z.string()).max(MAX_LABELS).readonly().optional(),
  g: z.number().positive().optional(),
  /** Present for a run that JVuPredict alone learns from. */
  p1: z.literal(true).optional(),
});
const lines = z.array(line);
type Line = z.infer<typeof line>;

/** Histories of JVuPredict that recent runs begin with where they are not stored yet: those with the most runs. */
const MOST_ADOPTED = 4096;
/** Features that mean the same to both. */
const ADOPTED: ReadonlySet<string> = new Set(['owner+job', 'job', 'owner+program', 'program', 'owner', 'all']);

/** How a run is learned. */
export interface Taught {
  /** False: JVuPredict alone learns it, as it learns from every task. Default: true. */
  readonly isSample?: boolean;
}

/**
 * JVuPredict and recent runs side by side, so that a preset finds what another learned. Runs since the last fold are
 * kept as a log: storing a run costs its line, not the histories that it changes. A state restored from stored rows
 * equals one that learned the same runs in the same order.
 * Rows of a version that knew JVuPredict alone are adopted: recent runs begin with its last 20 runs of each history.
 * Lifecycle: `restore` stored rows, then `predict` and `learn`; `takeDirty` hands out rows to be written together with
 * the learned observation. An empty row stands for a deleted one.
 */
export class LoggedHistory implements LearnedRuntimes {
  readonly prefix = HISTORY_PREFIX;
  readonly predictor: JvuPredict;
  readonly recurring: RecurringRuns;
  readonly #foldAt: number;
  /** Learned since the last `takeDirty`. */
  #fresh: Line[] = [];
  /** Stored rows of the log, and the runs in them. */
  #rows = 0;
  #logged = 0;

  constructor(predictor = new JvuPredict(), foldAt = FOLD_AT, recurring = new RecurringRuns()) {
    this.predictor = predictor;
    this.recurring = recurring;
    this.#foldAt = foldAt;
  }

  predict(features: JobFeatures): RuntimeForecast | null {
    return this.predictor.predict(features);
  }

  learn(features: JobFeatures, runtimeS: Seconds, taught: Taught = {}): void {
    this.learnUnlogged(features, runtimeS, taught);
    this.#fresh.push(lineOf(features, runtimeS, taught));
  }

  /** For a state that is never stored. */
  learnUnlogged(features: JobFeatures, runtimeS: Seconds, { isSample = true }: Taught = {}): void {
    this.predictor.learn(features, runtimeS);
    if (isSample) this.recurring.learn(features, runtimeS);
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
    const rows = new Map([...this.predictor.takeDirty(), ...this.recurring.takeDirty()]);
    for (let n = 0; n < this.#rows; n++) rows.set(rowKey(n), '');
    this.#rows = 0;
    this.#logged = 0;
    return rows;
  }

  /** Replaces all state, stored or not, by these rows. Throws `store.corrupt`. */
  restore(rows: ReadonlyMap<string, string>): void {
    const isLog = (key: string): boolean => key.startsWith(LOG_PREFIX);
    const isRecent = (key: string): boolean => key.startsWith(RECENT_PREFIX);
    const histories = new Map([...rows].filter(([key]) => !isLog(key) && !isRecent(key)));
    const recent = new Map([...rows].filter(([key]) => isRecent(key)));
    this.predictor.restore(histories);
    this.recurring.restore(recent);
    if (recent.size === 0) this.recurring.adopt(adoptable(histories));
    this.#fresh = [];
    this.#rows = 0;
    this.#logged = 0;
    const log = [...rows].filter(([key, text]) => isLog(key) && text !== '').sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [key, text] of log) {
      const runs = linesOf(key, text);
      for (const run of runs) this.learnUnlogged(featuresOf(run), seconds(run.d), { isSample: run.p1 !== true });
      this.#rows = Number(key.slice(LOG_PREFIX.length)) + 1;
      this.#logged += runs.length;
    }
  }
}

/** Digits enough that keys sort as their numbers do. */
const rowKey = (n: number): string => `${LOG_PREFIX}${String(n).padStart(6, '0')}`;

/** Histories with their keys, less the prefix; those with the most runs first. */
function adoptable(histories: ReadonlyMap<string, string>): (readonly [string, ReturnType<typeof recentOf>])[] {
  return [...histories]
    .filter(([key, text]) => text !== '' && ADOPTED.has(key.slice(HISTORY_PREFIX.length).split('/')[0] ?? ''))
    .map(([key, text]) => [key.slice(HISTORY_PREFIX.length), decodeHistory(key, text)] as const)
    .sort(([, a], [, b]) => b.n - a.n)
    .slice(0, MOST_ADOPTED)
    .map(([key, state]) => [key, recentOf(state)] as const);
}

function lineOf(features: JobFeatures, runtimeS: Seconds, { isSample = true }: Taught): Line {
  const { owner, jobName, program, stage, resources, submittedMs, tasks, labels, expectedRuntimeS } = features;
  return {
    o: owner,
    j: jobName,
    p: program,
    s: stage,
    r: vector(resources),
    t: raw(submittedMs),
    d: raw(runtimeS),
    ...(tasks !== undefined && { n: tasks }),
    ...(labels !== undefined && { l: labels }),
    ...(expectedRuntimeS !== undefined && { g: raw(expectedRuntimeS) }),
    ...(!isSample && { p1: true as const }),
  };
}

const featuresOf = ({ o, j, p, s, r, t, n, l, g }: Line): JobFeatures => ({
  owner: o,
  jobName: j,
  program: p,
  stage: s,
  resources: fromVector(r),
  submittedMs: epochMs(t),
  ...(n !== undefined && { tasks: n }),
  ...(l !== undefined && { labels: l }),
  ...(g !== undefined && { expectedRuntimeS: seconds(g) }),
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
