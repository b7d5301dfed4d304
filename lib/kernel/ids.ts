import { hash32, type Uniform } from './random.ts';
import { raw, type EpochMs } from './units.ts';

/** Ids are strings that cannot stand for one another. */
declare const kind: unique symbol;
type Id<K extends string> = string & { readonly [kind]: K };

export type JobId = Id<'job'>;
export type AttemptId = Id<'attempt'>;
export type InstanceId = Id<'instance'>;
export type PoolId = Id<'pool'>;
export type PlanId = Id<'plan'>;
export type EffectKey = Id<'effect'>;
export type GroupId = Id<'group'>;

export const jobId = (text: string): JobId => text as JobId;
export const attemptId = (text: string): AttemptId => text as AttemptId;
export const instanceId = (text: string): InstanceId => text as InstanceId;
export const poolId = (text: string): PoolId => text as PoolId;
export const planId = (text: string): PlanId => text as PlanId;
export const effectKey = (text: string): EffectKey => text as EffectKey;
export const groupId = (text: string): GroupId => text as GroupId;

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz';

/** `count` characters of Crockford's base 32, drawn from `random`. */
export function randomText(random: Uniform, count: number): string {
  let text = '';
  for (let i = 0; i < count; i++) text += CROCKFORD[Math.floor(random() * 32)];
  return text;
}

/** Sortable by time to the second: 7 characters of time, 8 random ones (40 bits). */
export function timeOrderedText(now: EpochMs, random: Uniform): string {
  let rest = Math.floor(raw(now) / 1000);
  let time = '';
  for (let i = 0; i < 7; i++) {
    time = CROCKFORD.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  return time + randomText(random, 8);
}

/** Time at which `timeOrderedText` made the text, epoch ms to the second; null for other texts. */
export function timeOfText(text: string): number | null {
  if (text.length !== 15 || [...text].some((c) => !CROCKFORD.includes(c))) return null;
  return [...text.slice(0, 7)].reduce((sum, c) => sum * 32 + CROCKFORD.indexOf(c), 0) * 1000;
}

/** Key of the nth launch of an allocation. */
export const launchKey = (allocation: EffectKey, ordinal: number): EffectKey => effectKey(`${allocation}/${ordinal}`);

/** Ordinal in the key of a launch; null for a key of another form. */
export function launchOrdinal(key: EffectKey, allocation: EffectKey): number | null {
  if (!key.startsWith(`${allocation}/`)) return null;
  const ordinal = key.slice(allocation.length + 1);
  return /^\d+$/.test(ordinal) ? Number(ordinal) : null;
}

/**
 * The instance that a launch with this key makes: the same key names the same instance, so a repeated launch finds it.
 */
export function instanceOf(key: EffectKey, ordinal: number): InstanceId {
  const text = `${key}#${ordinal}`;
  const hex = (n: number): string => n.toString(16).padStart(8, '0');
  return instanceId(`i-${hex(hash32(text))}${hex(hash32(`${text}/2`))}`);
}
