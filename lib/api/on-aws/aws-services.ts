/** Services of a deployment, for the API's handlers. */
import type { JobId } from '../../kernel/ids.ts';
import type { Admission, JobSpec } from '../../domain/job.ts';
import { SCALING_NAMES } from '../../stages/services/scalings.ts';
import type { StoreParts } from '../../drivers/aws/compose/compose-store.ts';
import { placedInS3 } from '../../drivers/aws/fleet/job-files.ts';
import { deviations } from '../../drivers/aws/traffic/group-rules.ts';
import type { ServicesBackend } from '../../ports/backend.ts';

export interface DeployedServices {
  readonly backend: ServicesBackend;
  /** Waits for messages on their way. */
  settle(): Promise<void>;
}

/** Names the job that a replica is tried with. */
const TRIAL = 'j-service-trial' as JobId;

/** Null: services are not turned on. */
export function deployedServices(of: StoreParts, admit: (spec: JobSpec) => Admission): DeployedServices | null {
  const [addresses, serviceWake] = [of.addresses(), of.serviceWake()];
  if (addresses === null || serviceWake === null) return null;
  let sent: Promise<unknown> | null = null;
  return {
    backend: {
      scalings: SCALING_NAMES,
      admit: async (spec) => {
        const placed = placedInS3(spec.replica, of.environment.EBB_BUCKET, TRIAL);
        const { feasible, notes } = admit(placed.spec);
        return { feasible, notes: [...notes, ...placed.notes, ...deviations(spec)] };
      },
      address: (service) => addresses.of(service),
      // The service is durable already: if this fails, the clock finds it.
      wake: () => {
        sent ??= serviceWake.wake().catch(() => serviceWake.want().catch(() => undefined));
      },
    },
    settle: async () => {
      const last = sent;
      sent = null;
      await last;
    },
  };
}
