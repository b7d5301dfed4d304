/**
 * What became of each replica since the last round: its phase follows the facts. A replica that failed is counted; one
 * that is over and was to be is forgotten. Pure.
 */
import { plus, seconds, type EpochMs } from '../../kernel/units.ts';
import { rootOf, specOf, type Replica, type Service } from '../../domain/service.ts';
import type { Facts, ReplicaFacts } from './facts.ts';

/** One sentence for the log of events, with the replica that it is about. */
export interface Note {
  readonly type: string;
  readonly text: string;
  readonly replica?: number;
}

export interface Moment {
  readonly nowMs: EpochMs;
  /** Wall seconds since an engine time: replicas are real processes, whatever the engine's speed. */
  readonly wallS: (sinceMs: EpochMs) => number;
  /** Engine seconds of a wall second. */
  readonly speed: number;
}

export interface Followed {
  readonly service: Service;
  readonly notes: readonly Note[];
}

/** Wall seconds after which a replica that ends has not failed at its start. */
const STAYED_S = 30;
/** Back-off after failures in a row: from a second, doubled each time, up to five minutes (wall). */
const FIRST_BACK_OFF_S = 1;
const MOST_BACK_OFF_S = 300;
/** Wall seconds that a drained replica without requests in flight is still kept: others still learn of it. */
const SETTLE_S = 1;

/** O(replicas). */
export function follow(service: Service, facts: Facts, at: Moment): Followed {
  const { health, drainS } = specOf(service).spec;
  const rules: Rules = { ...at, name: service.name, graceS: Number(health.graceS), drainS: Number(drainS) };
  const steps = service.replicas.map((replica) => {
    const fact = facts.get(replica.number);
    const step: Step = fact === undefined ? { next: replica, isFailure: false } : followOne(replica, fact, rules);
    return { replica, step };
  });
  const failed = steps.filter(({ step }) => step.isFailure);
  const failures = failed.length;
  const lastFailure = failed.at(-1)?.step.note?.text ?? null;
  const ofRollout = failed.filter(({ replica }) => isOfRollout(service, replica)).length;
  const hasSettled = steps.some(
    ({ step: { next } }) => next?.phase === 'healthy' && at.wallS(next.sinceMs) >= STAYED_S,
  );
  const failuresInARow = failures > 0 ? service.failuresInARow + failures : hasSettled ? 0 : service.failuresInARow;
  const { rollout } = service;
  return {
    notes: steps.flatMap(({ replica, step: { note: said } }) =>
      said === undefined ? [] : [{ ...said, replica: replica.number }],
    ),
    service: {
      ...service,
      replicas: steps.flatMap(({ step: { next } }) => next ?? []),
      failuresInARow,
      lastFailure: failures > 0 ? lastFailure : hasSettled ? null : service.lastFailure,
      notBeforeMs: failures > 0 ? backOffMs(failuresInARow, at) : service.notBeforeMs,
      rollout: rollout === null || ofRollout === 0 ? rollout : { ...rollout, failures: rollout.failures + ofRollout },
    },
  };
}

const isOfRollout = (service: Service, { revision }: Replica): boolean =>
  service.rollout !== null && rootOf(service, revision) === rootOf(service, service.rollout.revision);

/** The first failure costs no time: it may be the machine's. */
function backOffMs(inARow: number, { nowMs, speed }: Moment): EpochMs | null {
  if (inARow <= 1) return null;
  const wallS = Math.min(MOST_BACK_OFF_S, FIRST_BACK_OFF_S * 2 ** Math.min(20, inARow - 2));
  return plus(nowMs, seconds(wallS * speed));
}

interface Rules extends Moment {
  readonly name: string;
  readonly graceS: number;
  readonly drainS: number;
}

interface Step {
  /** Null: it is forgotten. */
  readonly next: Replica | null;
  readonly note?: Omit<Note, 'replica'>;
  /** It ended, or had to be ended, before it had served for a while. */
  readonly isFailure: boolean;
}

function followOne(given: Replica, fact: ReplicaFacts, rules: Rules): Step {
  const replica = seen(given, fact, rules.nowMs);
  if (fact.job === 'over') return ended(replica, fact, rules);
  const stays: Step = { next: replica, isFailure: false };
  const { phase } = replica;
  if (phase === 'stopping') return fact.job === 'absent' ? { next: null, isFailure: false } : stays;
  if (phase === 'draining') return drained(replica, fact, rules);
  if (fact.job !== 'running')
    return { next: turned(replica, 'starting', { ...rules, detail: fact.why }), isFailure: false };
  if (fact.health === 'healthy') {
    const next = turned({ ...replica, hasServed: true }, 'healthy', { ...rules, detail: null });
    const isNew = phase !== 'healthy';
    return {
      next,
      isFailure: false,
      ...(isNew ? { note: note('healthy', `replica ${replica.number} is healthy`) } : {}),
    };
  }
  return notHealthy(replica, fact, rules);
}

const note = (type: string, text: string): Omit<Note, 'replica'> => ({ type: `service-replica-${type}`, text });

/** The replica with the time at which its process was first seen. */
const seen = (replica: Replica, { job }: ReplicaFacts, nowMs: EpochMs): Replica =>
  job === 'running' ? { ...replica, seenMs: replica.seenMs ?? nowMs } : { ...replica, seenMs: null };

function turned(
  replica: Replica,
  phase: Replica['phase'],
  { nowMs, detail }: { readonly nowMs: EpochMs; readonly detail: string | null },
): Replica {
  const sinceMs = replica.phase === phase ? replica.sinceMs : nowMs;
  return { ...replica, phase, sinceMs, detail };
}

function ended(replica: Replica, { why }: ReplicaFacts, { wallS, name }: Rules): Step {
  const { number, phase, hasServed, sinceMs } = replica;
  if (phase === 'stopping') return { next: null, isFailure: false };
  const isFailure = phase !== 'draining' && (!hasServed || wallS(sinceMs) < STAYED_S);
  return {
    next: null,
    isFailure,
    note: note(
      'ended',
      `replica ${number} ended: ${why ?? 'its job is over'} (\`ebb logs ${name}-${number} --stderr\`)`,
    ),
  };
}

function drained(replica: Replica, { inFlight, job }: ReplicaFacts, rules: Rules): Step {
  const forS = rules.wallS(replica.sinceMs);
  const isDone = job !== 'running' || (inFlight === 0 && forS >= SETTLE_S) || forS >= rules.drainS;
  if (!isDone) return { next: replica, isFailure: false };
  return { next: turned(replica, 'stopping', { nowMs: rules.nowMs, detail: replica.detail }), isFailure: false };
}

function notHealthy(replica: Replica, fact: ReplicaFacts, rules: Rules): Step {
  const { number, phase } = replica;
  const why = fact.healthDetail ?? 'no check has succeeded yet';
  // From when it was seen: a store may tell of a start long after it.
  const hadTimeS = rules.wallS(phase === 'unhealthy' ? replica.sinceMs : (replica.seenMs ?? rules.nowMs));
  if (phase === 'healthy') {
    const next = turned(replica, 'unhealthy', { ...rules, detail: why });
    return { next, isFailure: false, note: note('unhealthy', `replica ${number} is not healthy any more: ${why}`) };
  }
  if (hadTimeS < rules.graceS) return { next: turned(replica, phase, { ...rules, detail: why }), isFailure: false };
  const said = phase === 'starting' ? 'did not become healthy' : 'stayed unhealthy';
  const detail = `it ${said} within ${rules.graceS} s: ${why}`;
  return {
    next: turned(replica, 'stopping', { nowMs: rules.nowMs, detail }),
    isFailure: true,
    note: note('replaced', `replica ${number} is replaced: ${detail}`),
  };
}
