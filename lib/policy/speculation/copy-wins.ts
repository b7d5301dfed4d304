/**
 * How many copies ended first. Where tasks are slow by bad luck many do; where a slow task simply has more to do its
 * copy takes as long, and none does.
 */
import { z } from 'zod';
import type { Learner, LearningEvent } from '../learner.ts';

export interface CopyWins {
  /** Expected part of the next copies that end first, from 0 to 1, if half did before any was made. */
  chance(): number;
  /** The same for those who believe in bad luck only when they see it: one in ten did before any was made. */
  provenChance(): number;
}

/** Copies that are remembered, on average: older ones fade. */
const REMEMBERED = 200;
/**
 * Tasks that are remembered: as they end, what copies came to is forgotten. So copies are tried again now and then
 * where none helped.
 */
const TASKS_REMEMBERED = 5000;
/** Before any copy has ended: one of two wins, worth four copies. */
const PRIOR = { won: 2, ended: 4 };
/** Before any has ended, for `provenChance`. */
const DOUBTFUL = { won: 0.2, ended: 2 };

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
    chance: () => this.#chanceAfter(PRIOR),
    provenChance: () => this.#chanceAfter(DOUBTFUL),
  });

  #chanceAfter({ won, ended }: Counts): number {
    return (this.#counts.won + won) / (this.#counts.ended + ended);
  }

  /** A copy that an interruption or a failure ends says nothing. */
  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended') return;
    if (event.outcome !== 'succeeded' && event.outcome !== 'superseded') return;
    const isCopy = event.attempt.role === 'copy';
    const fade = 1 - 1 / (isCopy ? REMEMBERED : TASKS_REMEMBERED);
    const won = isCopy && event.outcome === 'succeeded' ? 1 : 0;
    this.#counts = { won: this.#counts.won * fade + won, ended: this.#counts.ended * fade + Number(isCopy) };
    // What tasks alone change need not be stored each time.
    this.#isDirty ||= isCopy;
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
