/**
 * The kit for policies of your own, with their types: `ebbtide/policy`. Experimental: names and forms may change
 * between minor versions (docs/write-a-policy.md).
 */
import { z } from 'zod';
import { certain, distribution } from '../domain/distribution.ts';
import type { StageName } from '../domain/preset-spec.ts';
import { unsolved } from '../domain/plan.ts';
import { distributionOfTimes, meanTime } from '../domain/running-times.ts';
import { finishedTimes } from '../domain/snapshot.ts';
import { countFits, fits, minusResources, plusResources, times } from '../domain/resources.ts';
import * as units from '../kernel/units.ts';
import { whyNotCopied } from '../policy/copies.ts';
import type { OwnPolicySpec, ShippedPolicy } from '../policy/own/own-policy.ts';
import type { OwnScalingSpec } from '../policy/services/own-scaling.ts';
import { frozen } from '../policy/own/read-only.ts';
import { LEARNERS } from './learners.ts';
import { shippedPolicy } from './registry.ts';

/** Functions that a policy needs, so that its module imports nothing at run time but types. */
export interface PolicyKit {
  /** The schema library of settings. */
  readonly z: typeof z;
  /** Makers and arithmetic of quantities: seconds, usd, raw, add, lt, ... */
  readonly units: typeof units;
  readonly resources: {
    readonly fits: typeof fits;
    readonly countFits: typeof countFits;
    readonly plus: typeof plusResources;
    readonly minus: typeof minusResources;
    readonly times: typeof times;
  };
  /** A distribution of running times from [seconds, weight] points. */
  readonly distribution: typeof distribution;
  /** The distribution of a running time that is known. */
  readonly certain: typeof certain;
  /** Learners by name: `beliefs.of(learners.runtimes)`, in a policy that declares `learners: ['runtimes']`. */
  readonly learners: typeof LEARNERS;
  /** Running times of a stage's tasks that succeeded: as counts, their mean, and their distribution. */
  readonly siblings: {
    readonly finished: typeof finishedTimes;
    readonly mean: typeof meanTime;
    readonly distribution: typeof distributionOfTimes;
  };
  /** The `solve` report of a plan that asked no solver. */
  readonly unsolved: typeof unsolved;
  /** Why a running attempt cannot be copied, by the contract of `speculate`; null: it can. */
  readonly whyNotCopied: typeof whyNotCopied;
  /**
   * A shipped policy, to be wrapped: `{...shipped, name, about, decide}` inherits the rest, of which `asks` and `buys`
   * decide what it may ask and where work is planned. Throws `usage` for a wrong name.
   */
  readonly shipped: <Stage extends StageName>(stage: Stage, name: string) => ShippedPolicy<Stage>;
  /** Returns its argument; gives the settings of a policy their types. */
  readonly policy: <Stage extends StageName, Settings extends z.ZodObject>(
    of: OwnPolicySpec<Stage, Settings>,
  ) => OwnPolicySpec;
  /** Returns its argument: a scaling policy of services, with its types. */
  readonly scaling: (of: Omit<OwnScalingSpec, 'stage'>) => OwnScalingSpec;
}

/** The default export of a module. */
export type PolicyModule = (
  kit: PolicyKit,
) => OwnPolicySpec | OwnScalingSpec | readonly (OwnPolicySpec | OwnScalingSpec)[];

export const POLICY_KIT: PolicyKit = {
  z,
  units,
  resources: { fits, countFits, plus: plusResources, minus: minusResources, times },
  distribution,
  certain,
  learners: LEARNERS,
  siblings: { finished: finishedTimes, mean: meanTime, distribution: distributionOfTimes },
  unsolved,
  whyNotCopied,
  shipped: (stage, name) => {
    const { settings, asks, learners, decide, ...of } = shippedPolicy(stage, name);
    const own = { stage, settings, asks: frozen(asks), learners: frozen(learners) };
    return { ...of, ...own, decide: (given = {}) => decide(settings.parse(given)) };
  },
  policy: (of) => of,
  scaling: (of) => ({ stage: 'scaling', ...of }),
};

export type { OwnPolicySpec, ShippedPolicy } from '../policy/own/own-policy.ts';
export type { OwnScalingSpec } from '../policy/services/own-scaling.ts';
export type { LoadSeries, ScalingPolicy } from '../policy/services/contracts.ts';
export type { StageName } from '../domain/preset-spec.ts';
export type * from '../policy/contracts.ts';
export type { Asks } from '../policy/asks.ts';
export type { Placement, PlannedStart, Purchase, Release, Allotment, EarliestStart, Worth } from '../domain/plan.ts';
export type { RunningTask, PendingGroup, Snapshot, InstanceView } from '../domain/snapshot.ts';
export type { Pool, PoolView, Bid } from '../domain/pool.ts';
export type { Resources } from '../domain/resources.ts';
export type { Offer, RuntimeForecast } from '../domain/forecast.ts';
