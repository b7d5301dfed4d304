import type { AttemptId } from '../../kernel/ids.ts';
import type { Offer } from '../../domain/forecast.ts';
import { isLive } from '../../domain/instance.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import type { PlannedMove, VacateInput } from '../../policy/contracts.ts';
import { milliCpuOf } from '../../domain/pool.ts';

/**
 * A move off spot stops before it has a target if the vCPU limit leaves no room for one, this cycle buys nothing, and
 * its instance is released with it.
 */
export function vacate({ snapshot, move, together, moveOffers, going, buys }: VacateInput): string | null {
  const needs = together.reduce((sum, m) => sum + milliCpuIn(m.running.attempt.resources), 0);
  if (move.toSpot || buys || !lacksVcpus(snapshot, moveOffers, needs)) return null;
  if (!emptiesInstance(snapshot, move, going)) return null;
  return `${move.reason}; it stops first to make room under the vCPU limit`;
}

/**
 * The vCPU limit leaves no room for an instance of any offer, or for all that has to move at once; false where there is
 * no offer. Money or a pause may refuse one as well.
 */
function lacksVcpus(snapshot: Snapshot, offers: readonly Offer[], needsMilliCpu: number): boolean {
  if (offers.length === 0) return false;
  const offered = new Set(offers.map((o) => o.pool));
  const smallest = snapshot.pools.reduce(
    (least, { pool }) => (offered.has(pool.id) ? Math.min(least, milliCpuOf(pool)) : least),
    Infinity,
  );
  const live = snapshot.instances
    .values()
    .reduce((sum, { instance, pool }) => (isLive(instance) ? sum + milliCpuOf(pool) : sum), 0);
  return live + Math.max(smallest, needsMilliCpu) > snapshot.limits.vcpus * 1000;
}

/** Stopping one attempt first frees vCPUs only if nothing else keeps its instance. */
function emptiesInstance(snapshot: Snapshot, move: PlannedMove, going: ReadonlySet<AttemptId>): boolean {
  const on = snapshot.instances.get(move.running.attempt.instance)?.attempts ?? [];
  return on.every((r) => going.has(r.attempt.id) || r.attempt.state === 'stopping');
}
