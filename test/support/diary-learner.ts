import type { Learner, LearnerTerms, LearningEvent } from '../../lib/policy/learner.ts';

/** What was told of one thing, and how often: by `attempt/ID`, `instance/ID` and `refused/POOL`. */
export interface DiaryEntry {
  readonly times: number;
  readonly what: Readonly<Record<string, unknown>>;
}
export type Diary = ReadonlyMap<string, DiaryEntry>;

/** A learner that writes down all that learners are told, a row for each thing. */
export class DiaryLearner implements Learner<Diary> {
  readonly name = 'diary';
  readonly about = 'what learners are told';
  readonly source = 'tests';
  readonly prefix = 'diary/';
  readonly learnsFrom = ['attempt-ended', 'instance-ended', 'launch-refused'] as const;
  readonly terms: LearnerTerms;
  readonly #entries = new Map<string, DiaryEntry>();
  readonly #changed = new Set<string>();

  constructor(terms: LearnerTerms) {
    this.terms = terms;
  }

  observe(event: LearningEvent): void {
    const [key, what] = entryOf(event);
    this.#entries.set(key, { times: (this.#entries.get(key)?.times ?? 0) + 1, what });
    this.#changed.add(key);
  }

  belief(): Diary {
    return this.#entries;
  }

  takeDirty(): ReadonlyMap<string, string> {
    const rows = new Map([...this.#changed].map((key) => [this.prefix + key, JSON.stringify(this.#entries.get(key))]));
    this.#changed.clear();
    return rows;
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#entries.clear();
    this.#changed.clear();
    for (const [key, text] of rows) this.#entries.set(key.slice(this.prefix.length), JSON.parse(text) as DiaryEntry);
  }
}

/** A diary for each engine that is composed, kept here in the order in which they are made. */
export function diaries(): {
  readonly made: DiaryLearner[];
  readonly learner: (terms: LearnerTerms) => Learner<Diary>;
} {
  const made: DiaryLearner[] = [];
  const learner = (terms: LearnerTerms): DiaryLearner => {
    const diary = new DiaryLearner(terms);
    made.push(diary);
    return diary;
  };
  return { made, learner };
}

function entryOf(event: LearningEvent): [string, DiaryEntry['what']] {
  switch (event.kind) {
    case 'attempt-ended': {
      const { attempt, job, stage, instance, pool, neighbours, usage, runtimeS, outcome, atMs } = event;
      const ids = neighbours.map(({ attempt: other }) => other.id).sort();
      return [
        `attempt/${attempt.id}`,
        {
          ...{ job: job.id, stage: stage.name, index: attempt.index, number: attempt.number, outcome, atMs },
          ...{ instance: instance.id, pool: pool.id, neighbours: ids, usage, runtimeS },
        },
      ];
    }
    case 'instance-ended': {
      const { instance, pool, launchedMs, endedMs, takenMs } = event;
      return [`instance/${instance.id}`, { pool: pool.id, launchedMs, endedMs, takenMs }];
    }
    case 'launch-refused':
      return [`refused/${event.poolId}`, { why: event.why }];
  }
}
