import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { globSize, isPlainPath } from '../../../domain/globs.ts';
import { expandIndex } from '../../../domain/job-file/index-expansion.ts';
import type { JobSpec, StageSpec } from '../../../domain/job.ts';
import { EbbError, type Issue } from '../../../kernel/errors.ts';
import { hasCode } from '../fleet/files.ts';
import { matchingFiles } from '../fleet/matching-files.ts';

/**
 * Folder entries that one submission may examine, for a short pattern. Files not found within them are left to the task
 * itself.
 */
const MAX_ENTRIES = 20_000;
/**
 * Characters of a pattern, braces written out, that cost as much as one entry: each entry is compared with all of them.
 */
const CHARACTERS_PER_ENTRY = 256;
/** Tasks named in one message. */
const MAX_NAMED = 3;

class BudgetSpent extends Error {}

class Budget {
  #left = MAX_ENTRIES;

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** Throws BudgetSpent. */
  spend(cost: number): void {
    if (this.isSpent) throw new BudgetSpent();
    this.#left -= cost;
  }
}

/** Time for which an existing folder counts as still there, wall ms: jobs of a batch share their folders. */
const FOLDER_FRESH_MS = 1000;
const MAX_FOLDERS = 1000;

/** Cache of existing folders. Missing ones are examined again, because they may have been made since. */
export class FoldersAtHand {
  readonly #seenMs = new Map<string, number>();
  readonly #nowMs: () => number;

  /** `nowMs`: monotonic wall time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Fault of the folder; null if it is there. */
  async faultOf(folder: string): Promise<string | null> {
    const nowMs = this.#nowMs();
    const seenMs = this.#seenMs.get(folder);
    if (seenMs !== undefined && nowMs - seenMs < FOLDER_FRESH_MS) return null;
    const fault = await folderFault(folder);
    if (this.#seenMs.size >= MAX_FOLDERS) this.#seenMs.clear();
    if (fault === null) this.#seenMs.set(folder, nowMs);
    return fault;
  }
}

/**
 * Refuses a job whose files cannot be there when its first tasks start: the working directory or an input is missing
 * now, and nothing makes it. Stages that wait for others are skipped, and so are jobs that wait for jobs. Throws
 * `job.input-missing` with every finding. O(MAX_ENTRIES) at most.
 */
export async function refuseMissingFiles(spec: JobSpec, folders: FoldersAtHand): Promise<void> {
  if (spec.after.length > 0) return;
  const issues: Issue[] = [];
  const search = { budget: new Budget(), folders };
  for (const stage of spec.stages) {
    if (stage.dependsOn.length === 0) issues.push(...(await missingOf(stage, search)));
  }
  const [first] = issues;
  if (first === undefined) return;
  throw new EbbError('job.input-missing', {
    what: issues.length === 1 ? first.message : `${issues.length} inputs or working directories are missing`,
    ...(issues.length === 1 ? { at: first.at } : {}),
    issues,
    allowed: 'files and folders that are there when the job is submitted',
    next: 'correct the path, or make the files first; name the job that makes them in `after`, or its stage in `dependsOn`',
  });
}

async function missingOf(
  stage: StageSpec,
  { budget, folders }: { readonly budget: Budget; readonly folders: FoldersAtHand },
): Promise<readonly Issue[]> {
  const at = (key: string): string => `stages.${stage.name}.${key}`;
  const fault = await folders.faultOf(stage.workdir);
  if (fault !== null) return [{ at: at('workdir'), message: `the working directory ${stage.workdir} ${fault}` }];
  const issues: Issue[] = [];
  for (const pattern of stage.inputs) {
    const hasIndex = pattern.includes('{index}');
    const missing: (number | null)[] = [];
    for (let i = 0; i < (hasIndex ? stage.tasks : 1) && !budget.isSpent; i++) {
      const expanded = hasIndex ? expandIndex(pattern, i) : pattern;
      if (!(await mayMatch(expanded, stage.workdir, budget))) missing.push(hasIndex ? i : null);
    }
    if (missing.length > 0) {
      const message = `input pattern ${pattern} matches nothing in ${stage.workdir}${tasksText(missing)}`;
      issues.push({ at: at('inputs'), message });
    }
  }
  return issues;
}

/** Tasks concerned, for a pattern with an index. */
function tasksText(indexes: readonly (number | null)[]): string {
  const named = indexes.filter((i) => i !== null);
  if (named.length === 0) return '';
  const more = named.length > MAX_NAMED ? ` and ${named.length - MAX_NAMED} more` : '';
  return ` for task ${named.slice(0, MAX_NAMED).join(', ')}${more}`;
}

async function folderFault(folder: string): Promise<string | null> {
  try {
    return (await stat(folder)).isDirectory() ? null : 'is no folder';
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return 'does not exist';
    if (hasCode(error, 'EACCES', 'ELOOP', 'ENAMETOOLONG')) return `cannot be opened: ${(error as Error).message}`;
    throw error;
  }
}

/** True if a pattern matches something, or if the budget is exhausted. */
async function mayMatch(pattern: string, folder: string, budget: Budget): Promise<boolean> {
  const cost = 1 + Math.floor(globSize(pattern).characters / CHARACTERS_PER_ENTRY);
  try {
    if (isPlainPath(pattern)) {
      budget.spend(cost);
      await stat(join(folder, pattern));
      return true;
    }
    for await (const _ of matchingFiles(pattern, folder, { onEntry: () => budget.spend(cost) })) return true;
    return false;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false;
    // The task reports an unreadable file, if it is still unreadable then.
    if (
      error instanceof BudgetSpent ||
      error instanceof RangeError ||
      hasCode(error, 'EACCES', 'ELOOP', 'ENAMETOOLONG')
    ) {
      return true;
    }
    throw error;
  }
}
