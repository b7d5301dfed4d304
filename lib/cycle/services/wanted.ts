/**
 * Replicas that a service wants now, from the load that its monitor measured. Pure, as are policies of a user's own.
 */
import { probit } from 'simple-statistics';
import { messageOf } from '../../kernel/errors.ts';
import { raw } from '../../kernel/units.ts';
import {
  specOf,
  type LearnedCapacity,
  type PeriodMeasures,
  type Service,
  type ServiceLoad,
  type ServiceSpec,
  type Wanted,
} from '../../domain/service.ts';
import type { ScalingPolicy } from '../../policy/services/contracts.ts';

/** Monitoring periods kept: three days of minutes. */
const PERIODS_KEPT = 4320;
/**
 * Headroom that a period adds for the share of its slow requests over that which the target allows; a calm period takes
 * some back. So in the long run as many requests are slow as the target allows, whatever the load is like (integral
 * control). At most half of the load: requests that more replicas do not make faster must not double a bill.
 */
const HEADROOM_PER_SHARE = 0.5;
const MOST_HEADROOM = 0.5;
/** A replica that was too slow is believed to serve so much less than it was given. */
const LESS = 0.9;

export interface Answered {
  readonly wanted: Wanted;
  /** Why the policy's answer was not used; null: it was. */
  readonly refused: string | null;
}

/**
 * The load that the policy expects, and room for its bursts, over what a replica serves in time. Requests come at
 * random: within the target's latency w there are at most L w + z sqrt(L w) of them in as many per cent of cases as the
 * target wants (Poisson, by its normal approximation). Without a measurement nothing changes. `spare`:
 * replicas beyond that, as plans want them.
 */
export function wantedBy(service: Service, policy: ScalingPolicy, spare = 0): Answered {
  const { spec } = specOf(service);
  const { fixedReplicas } = service;
  const bounded = (n: number): number => Math.min(spec.max, Math.max(spec.min, n));
  if (fixedReplicas !== null) return used({ replicas: fixedReplicas, spare: 0, reason: 'set by `ebb service scale`' });
  const withSpare = (needed: number, reason: string): Wanted => {
    const replicas = Math.min(spec.max, needed + spare);
    const more = replicas - needed;
    return {
      replicas,
      spare: more,
      reason: more === 0 ? reason : `${reason}; ${more} spare, for those that may be lost`,
    };
  };
  const needed = bounded(service.wanted.replicas - service.wanted.spare);
  const stays = withSpare(needed, 'nothing has been measured yet');
  const answer = expected(service.load, policy);
  if ('refused' in answer) return { wanted: { ...stays, reason: service.wanted.reason }, refused: answer.refused };
  if (answer.rps === null) return used(stays);
  const { learned } = service.load;
  const perReplica = spec.capacityRps ?? learned?.rps ?? null;
  if (perReplica === null) return used(withSpare(needed, 'what a replica can serve is not known yet'));
  const headroom = service.load.headroom ?? 0;
  const needRps = (answer.rps + burstRps(answer.rps, spec)) * (1 + headroom);
  const enough = bounded(Math.ceil(needRps / perReplica - 1e-9));
  // More than a replica has served so far may be no trouble: there are no more replicas until requests are slow.
  const isUntried = spec.capacityRps === null && learned?.isLimit === false;
  const replicas = isUntried ? Math.min(needed, enough) : enough;
  const within = replicas === spec.max && needRps > replicas * perReplica ? ', at most `max`' : '';
  const more = headroom > 0 ? ` and ${Math.round(100 * headroom)} % headroom, because requests were slow` : '';
  const reason = `${amount(answer.rps)} rps expected, ${amount(needRps)} with bursts${more}, ${amount(perReplica)} per replica${within}`;
  return used(withSpare(replicas, reason));
}

const used = (wanted: Wanted): Answered => ({ wanted, refused: null });

const amount = (rps: number): string => String(Number(rps.toPrecision(3)));

function burstRps(rps: number, { target }: ServiceSpec): number {
  const z = probit(target.percent / 100);
  return Math.max(0, z) * Math.sqrt(rps / raw(target.latencyS));
}

/** Its own policy can be wrong, or throw: that never stops a service. */
function expected(
  load: ServiceLoad,
  policy: ScalingPolicy,
): { readonly rps: number | null } | { readonly refused: string } {
  try {
    const rps: unknown = policy({ periodS: raw(load.periodS), rps: load.rps.map((r) => r ?? NaN) });
    if (rps === null) return { rps: null };
    if (typeof rps === 'number' && rps >= 0 && Number.isFinite(rps)) return { rps };
    const got = typeof rps === 'number' ? String(rps) : `a ${typeof rps}`;
    return { refused: `the scaling policy answered ${got}; allowed: a number from 0, or null` };
  } catch (error) {
    return { refused: `the scaling policy failed: ${messageOf(error)}` };
  }
}

export interface Measured {
  /** Null: nothing was measured. */
  readonly period: PeriodMeasures | null;
  /** Wall seconds of the period. */
  readonly wallS: number;
  readonly endMs: ServiceLoad['endMs'];
  /** True: fewer replicas were healthy than were wanted, so that slow requests say nothing about how many are. */
  readonly isShort: boolean;
}

/** The load with one more period, and what it says about a replica. O(periods kept). */
export function withPeriod(
  load: ServiceLoad,
  { period, wallS, endMs, isShort }: Measured,
  spec: ServiceSpec,
): ServiceLoad {
  const rps = period === null ? null : (period.requests + period.failed) / wallS;
  const all = [...load.rps, rps].slice(-PERIODS_KEPT);
  if (period === null) return { ...load, rps: all, endMs };
  return {
    ...load,
    rps: all,
    endMs,
    last: period,
    learned: learned(load.learned, period, { spec, wallS }),
    headroom: isShort ? (load.headroom ?? 0) : headroomAfter(load.headroom ?? 0, period, spec),
    requests: load.requests + period.requests,
    slow: load.slow + period.slow,
    failed: load.failed + period.failed,
  };
}

function headroomAfter(now: number, { requests, slow, failed }: PeriodMeasures, { target }: ServiceSpec): number {
  const all = requests + failed;
  if (all === 0) return now;
  const over = (slow + failed) / all - (1 - target.percent / 100);
  return Math.min(MOST_HEADROOM, Math.max(0, now + HEADROOM_PER_SHARE * over));
}

/**
 * Requests per second that a replica serves in time, as observed: the most that was served within the target, and nine
 * tenths of what was too much.
 */
function learned(
  known: LearnedCapacity | null,
  { requests, slow, replicas }: PeriodMeasures,
  { spec, wallS }: { readonly spec: ServiceSpec; readonly wallS: number },
): LearnedCapacity | null {
  if (requests === 0 || replicas === 0) return known;
  const each = requests / wallS / replicas;
  const isInTime = slow / requests <= 1 - spec.target.percent / 100;
  if (isInTime) return { rps: Math.max(known?.rps ?? 0, each), isLimit: known?.isLimit ?? false };
  return { rps: Math.min(known?.rps ?? Infinity, LESS * each), isLimit: true };
}
