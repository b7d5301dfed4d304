import type { AttemptId, InstanceId } from '../kernel/ids.ts';
import type { EpochMs, Seconds } from '../kernel/units.ts';
import type { EndCause } from './instance.ts';
import type { Usage } from './job.ts';

/** Reports from the world. `sequence` ascends per instance, so that no report is applied twice. */
export type Observation = { readonly instance: InstanceId; readonly sequence: number; readonly atMs: EpochMs } & (
  | { readonly kind: 'instance-launched'; readonly readyMs: EpochMs }
  | { readonly kind: 'instance-ready' }
  | { readonly kind: 'instance-warned'; readonly goneMs: EpochMs }
  | { readonly kind: 'instance-rebalance' }
  | { readonly kind: 'instance-ended'; readonly cause: EndCause; readonly detail: string }
  | {
      readonly kind: 'attempt-started';
      readonly attempt: AttemptId;
      /** Provider's name of its log; absent where the attempt's id is enough. */
      readonly log?: string;
    }
  /** The checkpoint now holds this much of the attempt's running time. */
  | { readonly kind: 'attempt-checkpointed'; readonly attempt: AttemptId; readonly keptS: Seconds }
  | {
      readonly kind: 'attempt-ended';
      readonly attempt: AttemptId;
      readonly exitCode: number | null;
      readonly exitSignal: string | null;
      /**
       * Reason of an ordered stop. `superseded`, whatever the exit code: another attempt of the task publishes its
       * outputs, so this one's are not published.
       */
      readonly stopped: 'interrupted' | 'preempted' | 'cancelled' | 'timed-out' | 'superseded' | null;
      /** Attempt that holds the claim which this one lost. Absent: it lost none, or the holder is not known. */
      readonly publisher?: AttemptId;
      /** True if it was a copy that ended at once because its image cannot claim outputs. Absent: no. */
      readonly cannotClaim?: true;
      readonly keptS: Seconds;
      readonly usage: Usage | null;
      readonly detail: string | null;
    }
);
