/**
 * A cycle's decision from its observation and forecasts. Data in, data out, so that another process than the observing
 * one may make it.
 */
import { messageOf } from '../../kernel/errors.ts';
import type { JobId, PlanId } from '../../kernel/ids.ts';
import type { EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { ServicePlan } from '../../domain/service.ts';
import { servicePlansOf } from '../replicas/footprint.ts';
import { acquiringBy } from '../replicas/in-plans.ts';
import { unsolved, type Plan } from '../../domain/plan.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Forecasts } from '../../domain/forecasts.ts';
import type { Stages } from '../../policy/contracts.ts';
import type { Beliefs } from '../../policy/learner.ts';
import { DecisionMemory } from '../../policy/memory.ts';
import type { OwnInUse } from '../../policy/own/refusals.ts';
import { decide } from './decide.ts';
import { drainEffects, NOTHING, paidHours } from './drain.ts';
import { endingsOf, type Ending } from './endings.ts';
import type { Held } from '../observe/holding.ts';
import type { DecideInput, Deliberation, RunningOffers } from './deliberation.ts';
import { SlotReuse } from './slot-reuse.ts';

/** Observation of one cycle: snapshot, lease, and the name of the coming plan. */
export interface ObservedState {
  readonly token: number;
  readonly plan: PlanId;
  readonly snapshot: Snapshot;
  /** End of the last attempt of each job with a budget. */
  readonly lastRanMs: ReadonlyMap<JobId, EpochMs>;
  /** Nothing starts any more: everything is stopped and given back. */
  readonly draining: boolean;
}

export interface Decision {
  readonly plan: Plan;
  readonly endings: readonly Ending[];
  /** Jobs that kept the decision from being made, and are held. Absent: none. */
  readonly held?: readonly Held[];
  /** Number of jobs left for a later cycle for lack of time. Absent: none. */
  readonly undecided?: number;
  /** Offers for running work, for explanations of the next decisions only. */
  readonly runningOffers: RunningOffers;
  /** Plans of services that run. Absent: none does. */
  readonly servicePlans?: readonly ServicePlan[];
  /** Queue for slots that tasks leave until the next decision; null: none. Absent if not requested. */
  readonly slotReuse?: SlotReuse | null;
}

export interface DecisionParts<S> {
  readonly stages: Stages<S>;
  /** Policies of the user's own among them; absent: there are none. */
  readonly own?: OwnInUse<S>;
  readonly preset: string;
  readonly solver: S;
  readonly config: SchedulerConfig;
  /** Beliefs, of the learners at least that policies after `estimate` declare. */
  readonly beliefs: Beliefs;
  /** Memory of policies between decisions; default: none. */
  readonly memory?: DecisionMemory;
  /** `runningOffers` of the previous decision; default: none. */
  readonly knownOffers?: RunningOffers;
  /** False: no explanations. Default true. The decision is the same. */
  readonly explains?: boolean;
  /** True: slots are reused between decisions if the preset does that. Default false. */
  readonly reusesSlots?: boolean;
}

/**
 * False if there is nothing to decide: then instances are released without asking the stages, in a paid hour at its
 * end, and no forecast is needed.
 */
export const isOpen = ({ draining, snapshot }: ObservedState): boolean =>
  !draining && (snapshot.jobs.size > 0 || hasSetAside(snapshot));

/** Jobs that wait for disk space need an explanation, even if nothing runs. */
const hasSetAside = ({ setAside = [], running }: Snapshot): boolean =>
  running.length > 0 ? setAside.length > 0 : setAside.some((a) => a.why === 'disk');

export async function decideOn<S>(
  observed: ObservedState,
  forecasts: Forecasts | null,
  parts: DecisionParts<S>,
): Promise<Decision> {
  const { snapshot, token, plan } = observed;
  const { preset, config, beliefs, stages, solver, knownOffers = new Map(), explains = true } = parts;
  const { memory = new DecisionMemory() } = parts;
  if (forecasts === null || !isOpen(observed)) {
    const effects = drainEffects(snapshot, plan, observed.draining ? NOTHING : paidHours(snapshot, config));
    return {
      plan: { id: plan, token, atMs: snapshot.nowMs, preset, explanations: [], solve: unsolved(0), effects },
      endings: [],
      runningOffers: new Map(),
    };
  }
  const of = { stages, preset, solver, config, memory, beliefs };
  const input = { ...of, snapshot, forecasts, plan, token, knownOffers, explains };
  const decided = parts.own === undefined ? await decide(input) : await decideWithOwn(input, parts.own);
  const servicePlans =
    snapshot.services === undefined ? [] : servicePlansOf({ snapshot, config, forecasts }, acquiringBy(config, stages));
  const lastRanMs = (job: JobId): EpochMs | null => observed.lastRanMs.get(job) ?? null;
  return {
    plan: decided.plan,
    endings: endingsOf(decided.deliberation, { config, lastRanMs, ...(stages.buys && { buys: stages.buys }) }),
    runningOffers: decided.deliberation.runningOffers,
    ...(servicePlans.length === 0 ? {} : { servicePlans }),
    ...(parts.reusesSlots === true && stages.reusesSlots === true
      ? { slotReuse: slotReuseOf(decided.deliberation, { plan, config }) }
      : {}),
  };
}

/** None while pilots are to start: what starts between decisions has no role. */
const slotReuseOf = (of: Deliberation, by: Parameters<typeof SlotReuse.of>[1]): SlotReuse | null =>
  of.allotment.starts.some((s) => s.role === 'pilot') ? null : SlotReuse.of(of, by);

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
