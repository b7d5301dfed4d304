/** Services of local mode: their controller in the thread of the API, replicas as processes, a proxy in front. */
import { messageOf } from '../../../kernel/errors.ts';
import type { JobId } from '../../../kernel/ids.ts';
import { randomStream } from '../../../kernel/random.ts';
import { Controller } from '../../../cycle/services/controller.ts';
import type { Admission, JobSpec } from '../../../domain/job.ts';
import type { Placed, ServicesBackend } from '../../../ports/backend.ts';
import type { Store } from '../../../ports/store.ts';
import type { OwnScaling } from '../../../policy/services/own-scaling.ts';
import { scalingNamed, SCALING_NAMES } from '../../../stages/services/scalings.ts';
import { wallTime } from '../../wall.ts';
import type { enterWorld } from '../market/world.ts';
import type { LocalTraffic } from '../traffic/local-traffic.ts';
import { ServiceLoop } from './service-loop.ts';

export interface LocalServicesParts {
  readonly store: Store;
  readonly traffic: LocalTraffic;
  readonly world: Awaited<ReturnType<typeof enterWorld>>;
  readonly thread: { wake(): void };
  readonly place: (spec: JobSpec, job: JobId) => Promise<Placed>;
  /** Scaling policies of the user's own. */
  readonly scalings: readonly OwnScaling[];
  /** Receives lines that a person should see at once. */
  readonly say: ((text: string) => void) | undefined;
}

export interface LocalServices {
  start(): void;
  stop(): Promise<void>;
  backend(admit: (spec: JobSpec) => Promise<Admission>): ServicesBackend;
}

export function localServices(parts: LocalServicesParts): LocalServices {
  const { store, traffic, world, thread, place } = parts;
  const own = new Map(parts.scalings.map((s) => [s.name, s.policy]));
  const faults = new Faults(parts.say);
  const controller = new Controller({
    store,
    traffic,
    clock: world.clock,
    speed: world.record.speed,
    host: '127.0.0.1',
    random: randomStream(world.record.seed, `services/${wallTime.epochMs()}/${process.pid}`),
    scaling: (name) => own.get(name) ?? scalingNamed(name),
    place: async (spec, job) => (await place(spec, job)).spec,
    wake: () => thread.wake(),
    onFault: (service, error) =>
      faults.tell(`${service === null ? 'services' : `service ${service}`}: ${messageOf(error)}`),
  });
  const loop = new ServiceLoop(controller, (error) => faults.tell(`services: ${messageOf(error)}`));
  return {
    start: () => loop.start(),
    stop: () => loop.stop(),
    backend: (admit) => ({
      scalings: [...SCALING_NAMES, ...own.keys()],
      admit: async (spec) => {
        const trial = await place(spec.replica, TRIAL);
        trial.undo?.();
        const { feasible, notes } = await admit(trial.spec);
        return { feasible, notes: [...notes, ...trial.notes] };
      },
      address: (service) => traffic.address(service),
      wake: () => loop.wake(),
    }),
  };
}

/** Names the folder that a replica is tried with, and which goes again. */
const TRIAL = 'j-service-trial' as JobId;

/** Each fault is told once until another one comes: rounds repeat it twice a second. */
class Faults {
  #last = '';
  readonly #say: ((text: string) => void) | undefined;

  constructor(say: ((text: string) => void) | undefined) {
    this.#say = say;
  }

  tell(text: string): void {
    if (text === this.#last) return;
    this.#last = text;
    this.#say?.(`warning: ${text}`);
  }
}
