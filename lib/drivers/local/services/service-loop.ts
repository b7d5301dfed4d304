/**
 * Rounds of the controller of services, while there are any.
 * Lifecycle: made -> started -> stopped. Without services it waits until it is woken, without a timer.
 */
import type { Controller } from '../../../cycle/services/controller.ts';

/** Wall time between two rounds: how soon a replica's end or health is seen. */
const ROUND_MS = 500;

export class ServiceLoop {
  readonly #controller: Pick<Controller, 'round'>;
  readonly #onFault: (error: unknown) => void;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #isWoken = false;
  #isOn = false;

  constructor(controller: Pick<Controller, 'round'>, onFault: (error: unknown) => void) {
    this.#controller = controller;
    this.#onFault = onFault;
  }

  start(): void {
    this.#isOn = true;
    this.wake();
  }

  /** There may be something to do. */
  wake(): void {
    this.#isWoken = true;
    if (this.#isOn) this.#running ??= this.#run();
  }

  /** Resolves when no round goes on. */
  async stop(): Promise<void> {
    this.#isOn = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#running;
  }

  async #run(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const isEmpty = await this.#round();
    this.#running = null;
    if (!this.#isOn) return;
    if (this.#isWoken) this.wake();
    else if (!isEmpty) this.#timer = setTimeout(() => this.wake(), ROUND_MS);
  }

  /** True if there is no service. */
  async #round(): Promise<boolean> {
    this.#isWoken = false;
    try {
      return (await this.#controller.round()).services === 0;
    } catch (error) {
      this.#onFault(error);
      return false;
    }
  }
}
