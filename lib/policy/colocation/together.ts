/** Who was on an instance beside an attempt, and for how much of its time. */
import { raw, secondsBetween } from '../../kernel/units.ts';
import type { Attempt, Job, StageSpec } from '../../domain/job.ts';
import { dominantShare } from '../../domain/resources.ts';
import type { AttemptEnded } from '../learner.ts';

/** A program that runs, or may run, on a machine. */
export interface Tenant {
  readonly template: string;
  /** Part of the machine that one of its tasks has asked for, in (0, 1]. */
  readonly part: number;
  /** Absent: one. */
  readonly tasks?: number;
}

/** A neighbour, the part of the attempt's time that it was there, and whether it began after it. */
export interface Together extends Tenant {
  readonly time: number;
  readonly isLater: boolean;
}

/** An attempt that has ended. */
export interface Ending extends Tenant {
  readonly startedMs: number;
  readonly endedMs: number;
}

/** Endings that are remembered of an instance, and instances. */
const MOST_ENDINGS = 16;
const MOST_INSTANCES = 10_000;

/** Key of a stage's programs: the template of its job, and its name. */
export const templateOf = ({ template }: Pick<Job, 'template'>, { name }: Pick<StageSpec, 'name'>): string =>
  `${template}/${name}`;

/** Neighbours that run when the attempt ends. O(neighbours). */
export function stillThere(event: AttemptEnded): readonly Together[] {
  const { attempt, neighbours, atMs } = event;
  const startedMs = attempt.startedMs;
  if (startedMs === null) return [];
  const longS = secondsBetween(startedMs, atMs);
  return neighbours.flatMap(({ attempt: other, job }): Together[] => {
    const stage = job.spec.stages.find((s) => s.name === other.stage);
    if (stage === undefined || other.startedMs === null) return [];
    const sinceMs = Math.max(raw(startedMs), raw(other.startedMs));
    const time = longS > 0 ? Math.min(1, (raw(atMs) - sinceMs) / 1000 / longS) : 1;
    const isLater = raw(other.startedMs) > raw(startedMs);
    return [{ template: templateOf(job, stage), part: partOf(other, event), time, isLater }];
  });
}

/** Part of its instance that an attempt asked for. */
export const partOf = (
  { resources }: Pick<Attempt, 'resources'>,
  { pool }: { readonly pool: Pick<AttemptEnded['pool'], 'type'> },
): number => Math.min(1, dominantShare(resources, pool.type.capacity));

/** Attempts that ended while others ran that still do, by instance: the last ones of each. */
export class Endings {
  readonly #of = new Map<string, Ending[]>();

  /** Neighbours that ended while an attempt ran. O(endings). */
  during(instance: string, { startedMs, endedMs }: Omit<Ending, keyof Tenant>): readonly Together[] {
    const longMs = endedMs - startedMs;
    return (this.#of.get(instance) ?? []).flatMap((of): Together[] => {
      const togetherMs = Math.min(endedMs, of.endedMs) - Math.max(startedMs, of.startedMs);
      // One that ends at the same instant is still there.
      if (of.endedMs >= endedMs || togetherMs <= 0) return [];
      const { template, part } = of;
      return [{ template, part, time: togetherMs / longMs, isLater: of.startedMs > startedMs }];
    });
  }

  /**
   * Adds one, and gives the instance that is forgotten for it, if any. `sinceMs`: first start of those that still run
   * there; endings before it say nothing of them. Infinity: nothing runs.
   */
  add(instance: string, ending: Ending, sinceMs: number): string | null {
    const known = [...(this.#of.get(instance) ?? []), ending].filter((of) => of.endedMs > sinceMs);
    this.#of.delete(instance);
    if (known.length === 0) return null;
    this.#of.set(instance, known.slice(-MOST_ENDINGS));
    if (this.#of.size <= MOST_INSTANCES) return null;
    const [oldest = instance] = this.#of.keys();
    this.#of.delete(oldest);
    return oldest;
  }

  /** False: nothing was known of it. */
  forget(instance: string): boolean {
    return this.#of.delete(instance);
  }

  of(instance: string): readonly Ending[] {
    return this.#of.get(instance) ?? [];
  }

  restore(instance: string, endings: readonly Ending[]): void {
    this.#of.set(instance, [...endings]);
  }

  clear(): void {
    this.#of.clear();
  }
}
