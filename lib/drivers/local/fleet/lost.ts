import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from './files.ts';
import type { InstanceRecord, TakenAttempt } from './instance-record.ts';
import { JournalWriter } from './journal.ts';
import { newestFileMs } from './kept-work.ts';
import { inside } from './layout.ts';
import { endProcesses, leaderOf } from './processes.ts';

/**
 * Ends an instance whose supervisor has died: kills its remaining processes, then completes its journal. May be
 * repeated after a crash at any point: existing lines are not written again, and times come from the last heartbeat, so
 * a repetition writes the same.
 */
export async function buryLost(record: InstanceRecord, detail: string): Promise<void> {
  await killOrphans(record.dir);
  record.refresh();
  if (record.ended !== null) return;
  record.journal.dropTornLine();
  const { spec } = record;
  const beat = record.lastBeat();
  const atMs = Math.min(
    Math.max(beat?.engineMs ?? spec.launchedMs, spec.launchedMs, lastObserved(record)),
    spec.interruption?.goneMs ?? Infinity,
  );
  const journal = new JournalWriter(inside.journal(record.dir), record.lastSequence, () => undefined);
  if (record.observations.length === 0) {
    journal.observe({ kind: 'instance-launched', atMs: spec.launchedMs, readyMs: spec.readyMs });
  }
  for (const [attempt, taken] of record.attempts) {
    if (taken.ended) continue;
    journal.observe({
      kind: 'attempt-ended',
      attempt,
      atMs,
      exitCode: null,
      exitSignal: null,
      stopped: 'interrupted',
      keptS: keptBy(taken, { atMs, beat, speed: spec.clock.speed }),
      usage: null,
      detail: 'its instance was lost',
    });
  }
  journal.observe({ kind: 'instance-ended', atMs, cause: 'lost', detail });
  const complete = journal.flush();
  journal.close();
  // On a full disk the remaining lines are written the next time.
  if (complete) clearAway(record.dir);
}

const lastObserved = (record: InstanceRecord): number =>
  record.observations.reduce((t, o) => Math.max(t, o.atMs as unknown as number), 0);

/** Running time that the checkpoint holds, engine s: the reported one, or more if a newer file is there. */
function keptBy(
  taken: TakenAttempt,
  end: {
    readonly atMs: number;
    readonly beat: { readonly engineMs: number; readonly wallMs: number } | null;
    readonly speed: number;
  },
): number {
  const { startedMs, keptS, checkpointDir } = taken;
  if (startedMs === null) return 0;
  const newest = newestFileMs(checkpointDir);
  if (newest === null || end.beat === null) return keptS;
  const writtenMs = end.beat.engineMs + (newest - end.beat.wallMs) * end.speed;
  return Math.max(keptS, (Math.min(writtenMs, end.atMs) - startedMs) / 1000);
}

/** SIGKILL to all remaining processes of the instance's tasks; resolves when the groups are gone (or will not go). */
async function killOrphans(instanceDir: string): Promise<void> {
  const groups = pidFiles(instanceDir).flatMap((file) => {
    const leader = leaderOf(readFileSync(file, 'utf8'), statSync(file).mtimeMs);
    return leader === null ? [] : [leader];
  });
  await endProcesses(inside.work(instanceDir), groups);
}

function pidFiles(instanceDir: string): string[] {
  try {
    return readdirSync(inside.pids(instanceDir)).map((name) => join(inside.pids(instanceDir), name));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

function clearAway(instanceDir: string): void {
  for (const folder of [inside.inbox, inside.pids, inside.work]) {
    rmSync(folder(instanceDir), { recursive: true, force: true });
  }
}
