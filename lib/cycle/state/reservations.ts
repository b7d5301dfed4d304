/**
 * Room that instances keep for arrivals of moves, for the ledger (lib/cycle/money/ledger.ts). Life of a reservation:
 * made with the order to stop -> taken by the attempt that arrives, or closed when the task does not come, or left open
 * at the end of the instance. All of it is in the record of the target, so that its bill needs no other instance.
 */
import type { AttemptId, InstanceId } from '../../kernel/ids.ts';
import { most, type EpochMs } from '../../kernel/units.ts';
import { isLive, type Instance, type Reservation } from '../../domain/instance.ts';
import type { Attempt } from '../../domain/job.ts';
import type { WorkingState } from './working-state.ts';

interface Kept {
  readonly on: InstanceId;
  /** The attempt that was stopped for the move. */
  readonly from: AttemptId;
}

const isAwaited = ({ attempt, untilMs }: Reservation, from: AttemptId): boolean => untilMs === null && attempt === from;

const withReservations = ({ reservations: _, ...of }: Instance, now: readonly Reservation[]): Instance =>
  now.length === 0 ? of : { ...of, reservations: now };

export function reserve(state: WorkingState, on: InstanceId, of: Omit<Reservation, 'untilMs'>): void {
  const instance = state.instances.get(on);
  if (instance === undefined || !isLive(instance)) return;
  const { reservations = [] } = instance;
  if (reservations.some((r) => isAwaited(r, of.attempt))) return;
  state.putInstance(withReservations(instance, [...reservations, { ...of, untilMs: null }]));
}

/** The task does not come. Without effect on an instance that has ended. */
export function closeReservation(state: WorkingState, { on, from }: Kept, at: EpochMs): void {
  const instance = state.instances.get(on);
  if (instance?.reservations?.some((r) => isAwaited(r, from)) !== true || !isLive(instance)) return;
  const now = instance.reservations.map((r) => (isAwaited(r, from) ? { ...r, untilMs: most(r.sinceMs, at) } : r));
  state.putInstance(withReservations(instance, now));
}

/** The task arrives: its reservation passes to its new attempt, from when the instance was up. */
export function takeReservation(state: WorkingState, { on, from }: Kept): Pick<Attempt, 'movedFrom' | 'reservedMs'> {
  const instance = state.instances.get(on);
  const { reservations = [], readyMs = null } = instance ?? {};
  const kept = reservations.find((r) => isAwaited(r, from));
  if (instance === undefined || kept === undefined) return { movedFrom: from };
  state.putInstance(
    withReservations(
      instance,
      reservations.filter((r) => r !== kept),
    ),
  );
  return { movedFrom: from, reservedMs: readyMs === null ? kept.sinceMs : most(kept.sinceMs, readyMs) };
}
