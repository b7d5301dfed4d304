/** Services of a simulation: the controller of every driver, on the store and the clock of the simulation. */
import type { Clock } from '../../../kernel/clock.ts';
import { randomStream } from '../../../kernel/random.ts';
import { plus, raw, seconds, type EpochMs } from '../../../kernel/units.ts';
import { Controller } from '../../../cycle/services/controller.ts';
import { deleted, newService } from '../../../cycle/services/changes.ts';
import type { JobId } from '../../../kernel/ids.ts';
import type { JobSpec } from '../../../domain/job.ts';
import type { Store } from '../../../ports/store.ts';
import type { OwnScaling } from '../../../policy/services/own-scaling.ts';
import { scalingNamed } from '../../../stages/services/scalings.ts';
import { SimTraffic, type RequestFigures, type SimulatedService } from './sim-traffic.ts';

/** Time between two rounds: how soon a replica's start or a warning is seen. */
const ROUND_S = 10;

export interface SimServicesParts {
  readonly services: readonly SimulatedService[];
  /** Scaling policies of the user's own. */
  readonly scalings: readonly OwnScaling[];
  readonly store: Store;
  readonly clock: Clock;
  readonly fromMs: EpochMs;
  readonly seed: number;
  /** Told of the job of each replica, before it is submitted. */
  readonly onReplica: (id: JobId, spec: JobSpec) => void;
  /** Wakes the engine. */
  readonly wake: () => void;
}

export class SimServices {
  readonly #parts: SimServicesParts;
  readonly #traffic: SimTraffic;
  readonly #controller: Controller;
  nextMs: number;

  constructor(parts: SimServicesParts) {
    this.#parts = parts;
    this.nextMs = parts.services.length === 0 ? Infinity : raw(parts.fromMs);
    this.#traffic = new SimTraffic(parts.services, parts);
    const own = new Map(parts.scalings.map((s) => [s.name, s.policy]));
    this.#controller = new Controller({
      store: parts.store,
      traffic: this.#traffic,
      clock: parts.clock,
      speed: 1,
      host: '127.0.0.1',
      random: randomStream(parts.seed, 'services'),
      scaling: (name) => own.get(name) ?? scalingNamed(name),
      place: async (spec, id) => {
        parts.onReplica(id, spec);
        return spec;
      },
      wake: parts.wake,
      onFault: (_service, error) => {
        throw error;
      },
    });
  }

  get figures(): readonly RequestFigures[] {
    return this.#traffic.figures;
  }

  /** Begins the services; each as if it had been as busy before as in its first minute. */
  async start(): Promise<void> {
    const { store, services, fromMs } = this.#parts;
    for (const { spec, perMinute } of services) {
      const service = newService(spec, { atMs: fromMs });
      const first = perMinute[0] ?? NaN;
      const rps = Number.isNaN(first) ? [] : [first / 60];
      await store.putService({ ...service, load: { ...service.load, rps } }, []);
    }
  }

  /** One round; a service whose requests are over is deleted. */
  async happen(nowMs: number): Promise<void> {
    const { store, services, fromMs } = this.#parts;
    for (const { spec, perMinute } of services) {
      if (nowMs < raw(plus(fromMs, seconds(perMinute.length * 60)))) continue;
      const service = await store.service(spec.name);
      if (service !== null && !service.isDeleting) await store.putService(deleted(service), []);
    }
    const left = await this.#controller.round();
    this.nextMs = left.services === 0 ? Infinity : nowMs + ROUND_S * 1000;
  }
}
