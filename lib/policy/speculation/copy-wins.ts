/**
 * How many copies ended first. Where tasks are slow by bad luck many do; where a slow task simply has more to do its
 * copy takes as long, and none does.
 */
import { z } from 'zod';
import type { Learner, LearningEvent } from '../learner.ts';

export interface CopyWins {
  /** Expected part of the next copies that end first, from 0 to 1. */
  chance(): number;
}

/** Copies that are remembered, on average: older ones fade. */
const REMEMBERED = 200;
/** Before any copy has ended: one of two wins, worth four copies. */
const PRIOR = { won: 2, ended: 4 };

const PREFIX = 'copy-wins/';
const ROW = `${PREFIX}counts`;
const row = z.strictObject({ won: z.number().nonnegative(), ended: z.number().nonnegative() });
type Counts = z.output<typeof row>;
const NONE: Counts = { won: 0, ended: 0 };

export const copyWinsLearner = (): Learner<CopyWins> => new CopyWinsLearner();

class CopyWinsLearner implements Learner<CopyWins> {
  readonly name = 'copy-wins';
  readonly about = 'how many copies of slow tasks end first';
  readonly source = 'ours';
  readonly prefix = PREFIX;
  readonly learnsFrom = ['attempt-ended'] as const;
  #counts = NONE;
  #isDirty = false;
  readonly #belief: CopyWins = Object.freeze({
    chance: () => (this.#counts.won + PRIOR.won) / (this.#counts.ended + PRIOR.ended),
  });

  /** A copy that an interruption or a failure ends says nothing. */
  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended' || event.attempt.role !== 'copy') return;
    if (event.outcome !== 'succeeded' && event.outcome !== 'superseded') return;
    const fade = 1 - 1 / REMEMBERED;
    const won = event.outcome === 'succeeded' ? 1 : 0;
    this.#counts = { won: this.#counts.won * fade + won, ended: this.#counts.ended * fade + 1 };
    this.#isDirty = true;
  }

  belief(): CopyWins {
    return this.#belief;
  }

  takeDirty(): ReadonlyMap<string, string> {
    const rows = this.#isDirty ? new Map([[ROW, JSON.stringify(this.#counts)]]) : new Map<string, string>();
    this.#isDirty = false;
    return rows;
  }

  /** A row that cannot be read is no more than counts that are to be made anew. */
  restore(rows: ReadonlyMap<string, string>): void {
    this.#counts = read(rows.get(ROW) ?? '');
    this.#isDirty = false;
  }
}

function read(text: string): Counts {
  try {
    return row.safeParse(JSON.parse(text)).data ?? NONE;
  } catch {
    return NONE;
  }
}
