import { raw } from '../../../kernel/units.ts';
import type { ServiceSpec } from '../../../domain/service.ts';
import type { GroupRules } from './load-balancer.ts';

/** Limits of Elastic Load Balancing ("CreateTargetGroup"; "Edit target group attributes"), seconds and checks. */
const INTERVAL_S = { least: 5, most: 300 } as const;
const TIMEOUT_S = { least: 2, most: 120 } as const;
const FAILURES = { least: 2, most: 10 } as const;

type Checked = Pick<ServiceSpec, 'health' | 'drainS'>;

/** Rules of a service's target group: whole seconds, within the limits; a check ends before the next begins. */
export function rulesOf({ health, drainS }: Checked): GroupRules {
  const intervalS = within(INTERVAL_S, raw(health.intervalS));
  return {
    path: health.path,
    intervalS,
    timeoutS: Math.min(intervalS - 1, within(TIMEOUT_S, raw(health.timeoutS))),
    failures: within(FAILURES, health.failures),
    drainS: Math.ceil(raw(drainS)),
  };
}

/** What a load balancer on AWS does otherwise than a service file says, a sentence each. */
export function deviations(spec: Checked & Pick<ServiceSpec, 'concurrency'>): readonly string[] {
  const { intervalS, timeoutS, failures } = rulesOf(spec);
  const { health, concurrency } = spec;
  const notes: string[] = [];
  if (intervalS !== raw(health.intervalS))
    notes.push(`health is checked every ${intervalS} s: ${of(INTERVAL_S, ' s')}`);
  if (timeoutS !== raw(health.timeoutS)) notes.push(`a health check may take ${timeoutS} s: ${of(TIMEOUT_S, ' s')}`);
  if (failures !== health.failures) notes.push(`${failures} failed checks take a replica out: ${of(FAILURES)}`);
  if (concurrency !== null)
    notes.push('`concurrency` has no effect: a load balancer does not limit requests of one replica');
  return notes;
}

const within = ({ least, most }: { readonly least: number; readonly most: number }, value: number): number =>
  Math.min(most, Math.max(least, Math.ceil(value)));

const of = ({ least, most }: { readonly least: number; readonly most: number }, unit = ''): string =>
  `a load balancer of AWS takes whole numbers from ${least}${unit} to ${most}${unit}`;
