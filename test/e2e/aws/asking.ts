/** Requests to a service, one after another, for as long as a test goes on. */
export class Asking {
  /** Answers, each once, in order of their first one. */
  readonly said = new Set<string>();
  /** Requests that no replica answered, and why. */
  readonly faults: string[] = [];
  count = 0;
  readonly #url: string;
  readonly #running: Promise<void>;
  #isOver = false;

  constructor(url: string) {
    this.#url = url;
    this.#running = this.#run();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      await this.#ask();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async #ask(): Promise<void> {
    this.count += 1;
    try {
      const answer = await fetch(this.#url, { signal: AbortSignal.timeout(10_000) });
      const text = await answer.text();
      if (answer.ok) this.said.add(text);
      else this.faults.push(`${answer.status} ${text}`);
    } catch (error) {
      this.faults.push(String(error));
    }
  }
}
