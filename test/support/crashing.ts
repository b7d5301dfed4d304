import { raw } from '../../lib/kernel/units.ts';
import type { Clock } from '../../lib/kernel/clock.ts';
import type { Fleet } from '../../lib/ports/fleet.ts';
import type { Store } from '../../lib/ports/store.ts';
import { Crash, type Between } from './engine-bench.ts';

/**
 * A crash at the `call`th call (from 1) of any method of store or fleet since the last one, with that call done, not
 * done, or (for a call with many requests) done for the first half of them.
 */
export interface CrashPoint {
  readonly call: number;
  readonly when: 'before' | 'halfway' | 'after';
}

/**
 * Kills engines at given points. All their calls to store and fleet pass here, so the points are those of the code:
 * count upwards until a run no longer reaches its point.
 */
export class Crashes {
  /** What was called at each crash. */
  readonly at: string[] = [];
  /** Calls of all engines: the method, and the numbers of those calls (from 1) that had more than one request. */
  readonly calls: string[] = [];
  readonly batches: number[] = [];
  /** When each of them was made. */
  readonly madeMs: number[] = [];
  readonly #points: CrashPoint[];
  readonly #clock: Clock;
  #sinceLast = 0;

  constructor(points: readonly CrashPoint[], clock: Clock) {
    this.#points = [...points];
    this.#clock = clock;
  }

  /** The ports for one engine. */
  between(): Between {
    let dead = false;
    const wrap = <T extends Store | Fleet>(port: T, name: string): T =>
      new Proxy(port, {
        get: (target, method) => {
          const original: unknown = Reflect.get(target, method);
          if (typeof original !== 'function') return original;
          return (...args: unknown[]): unknown => {
            if (dead) throw new Error(`${name}.${String(method)} was called by an engine that had died`);
            const point = this.#reached(`${name}.${String(method)}`, args);
            const die = (when: CrashPoint['when']): never => {
              dead = true;
              this.at.push(`${when} ${name}.${String(method)}`);
              throw new Crash(this.at.at(-1));
            };
            if (point === 'before') die('before');
            const answer: unknown = Reflect.apply(original, target, point === 'halfway' ? firstHalf(args) : args);
            return point === null ? answer : Promise.resolve(answer).then(() => die(point));
          };
        },
      });
    return { store: (s) => wrap(s, 'store'), fleet: (f) => wrap(f, 'fleet') };
  }

  #reached(method: string, args: readonly unknown[]): CrashPoint['when'] | null {
    this.calls.push(method);
    this.madeMs.push(raw(this.#clock.now()));
    if (method.startsWith('fleet.') && requests(args).length > 1) this.batches.push(this.calls.length);
    this.#sinceLast += 1;
    const next = this.#points[0];
    if (next === undefined || next.call !== this.#sinceLast) return null;
    this.#points.shift();
    this.#sinceLast = 0;
    return next.when;
  }
}

const requests = ([first]: readonly unknown[]): readonly unknown[] => (Array.isArray(first) ? first : []);
const firstHalf = (args: readonly unknown[]): unknown[] => [
  requests(args).slice(0, Math.floor(requests(args).length / 2)),
  ...args.slice(1),
];
