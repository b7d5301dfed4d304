/**
 * A cycle's decision out of what was seen and forecast: data in, data out, so that it may be made in another process
 * than the one that looked.
 */
import { messageOf } from '../../kernel/errors.ts';
import type { JobId, PlanId } from '../../kernel/ids.ts';
import type { EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { unsolved, type Plan } from '../../domain/plan.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Forecasts } from '../../domain/forecasts.ts';
import type { Stages } from '../../policy/contracts.ts';
import { DecisionMemory } from '../../policy/memory.ts';
import type { OwnInUse } from '../../policy/own/refusals.ts';
import { decide } from './decide.ts';
import { drainEffects } from './drain.ts';
import { endingsOf, type Ending } from './endings.ts';
import type { Held } from '../observe/holding.ts';
import type { DecideInput, RunningOffers } from './deliberation.ts';
import { SlotReuse } from './slot-reuse.ts';

/** What one cycle saw, under which lease, and the name of the plan that it will make. */
export interface Sight {
  readonly token: number;
  readonly plan: PlanId;
  readonly snapshot: Snapshot;
  /** When the last attempt ended of each job that has a budget. */
  readonly lastRanMs: ReadonlyMap<JobId, EpochMs>;
  /** Nothing starts any more: everything is stopped and given back. */
  readonly draining: boolean;
}

export interface Decision {
  readonly plan: Plan;
  readonly endings: readonly Ending[];
  /** Jobs that kept the decision from being made, and are held. Absent: none. */
  readonly held?: readonly Held[];
  /** How many jobs were left for a later cycle because the time did not suffice. Absent: none. */
  readonly undecided?: number;
  /** For explanations of the next decisions; nothing is decided by it. */
  readonly runningOffers: RunningOffers;
  /** Who has the places that tasks leave until the next decision; null: nobody. Absent where it was not asked for. */
  readonly slotReuse?: SlotReuse | null;
}

export interface DecisionParts<S> {
  readonly stages: Stages<S>;
  /** Policies of the user's own among them; absent: there are none. */
  readonly own?: OwnInUse<S>;
  readonly preset: string;
  readonly solver: S;
  readonly config: SchedulerConfig;
  /** What policies keep from decision to decision; default: nothing. */
  readonly memory?: DecisionMemory;
  /** `runningOffers` of the decision before; default: none. */
  readonly knownOffers?: RunningOffers;
  /** Whether jobs are explained; default true. Changes nothing that is decided. */
  readonly explains?: boolean;
  /** Whether places are given on between decisions; default false. */
  readonly reusesSlots?: boolean;
}

/**
 * Whether there is anything to decide: else what is left is given back without asking the stages, and no forecast is
 * needed.
 */
export const isOpen = ({ draining, snapshot }: Sight): boolean =>
  !draining && (snapshot.jobs.size > 0 || hasSetAside(snapshot));

/** Of jobs that wait for room on the disk it is said that they do, also when nothing runs. */
const hasSetAside = ({ setAside = [], running }: Snapshot): boolean =>
  running.length > 0 ? setAside.length > 0 : setAside.some((a) => a.why === 'disk');

export async function decideOn<S>(
  sight: Sight,
  forecasts: Forecasts | null,
  parts: DecisionParts<S>,
): Promise<Decision> {
  const { snapshot, token, plan } = sight;
  const { preset, config, stages, solver, knownOffers = new Map(), explains = true } = parts;
  const { memory = new DecisionMemory() } = parts;
  if (forecasts === null || !isOpen(sight)) {
    const effects = drainEffects(snapshot, plan);
    return {
      plan: { id: plan, token, atMs: snapshot.nowMs, preset, explanations: [], solve: unsolved(0), effects },
      endings: [],
      runningOffers: new Map(),
    };
  }
  const input = { snapshot, forecasts, stages, preset, solver, config, memory, plan, token, knownOffers, explains };
  const decided = parts.own === undefined ? await decide(input) : await decideWithOwn(input, parts.own);
  const lastRanMs = (job: JobId): EpochMs | null => sight.lastRanMs.get(job) ?? null;
  return {
    plan: decided.plan,
    endings: endingsOf(decided.deliberation, { config, lastRanMs }),
    runningOffers: decided.deliberation.runningOffers,
    ...(parts.reusesSlots === true ? { slotReuse: SlotReuse.of(decided.deliberation, { plan, config }) } : {}),
  };
}

/**
 * A decision that fails although each answer passed its check is made again by the stand-ins. The plan names every
 * refusal since the last one.
 */
async function decideWithOwn<S>(input: DecideInput<S>, own: OwnInUse<S>): ReturnType<typeof decide<S>> {
  const decided = await decide(input).catch(async (error: unknown) => {
    const again = await decide({ ...input, stages: own.standIns });
    for (const policy of own.policies) own.refusals.add({ ...policy, why: `a decision failed: ${messageOf(error)}` });
    return again;
  });
  const refusedPolicies = own.refusals.take();
  if (refusedPolicies.length === 0) return decided;
  return { ...decided, plan: { ...decided.plan, refusedPolicies } };
}
