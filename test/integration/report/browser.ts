import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The first Chromium or Chrome that starts here, if any: CHROME_PATH, then the usual names. */
export const CHROMIUM: string | undefined = [
  process.env['CHROME_PATH'],
  'chromium',
  'chromium-browser',
  'google-chrome',
].find((name) => name !== undefined && spawnSync(name, ['--version']).status === 0);

interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: { readonly result?: { readonly value?: unknown }; readonly exceptionDetails?: unknown };
}

/** One page of a headless browser, spoken to by the Chrome DevTools Protocol. */
export class Browser {
  readonly #socket: WebSocket;
  readonly #end: () => Promise<void>;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #id = 0;
  /** Exceptions of the page and what the browser wrote into its log: refusals of its policy, requests that failed. */
  readonly complaints: string[] = [];

  private constructor(socket: WebSocket, end: () => Promise<void>) {
    this.#socket = socket;
    this.#end = end;
    socket.addEventListener('message', ({ data }) => {
      const answer = JSON.parse(String(data)) as Answer;
      if (answer.id !== undefined) this.#waiting.get(answer.id)?.(answer);
      else if (answer.method === 'Runtime.exceptionThrown' || answer.method === 'Log.entryAdded')
        this.complaints.push(JSON.stringify(answer.params));
    });
  }

  static async start(): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'ebb-browser-'));
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0'];
    const child = spawn(CHROMIUM ?? '', [...flags, `--user-data-dir=${profile}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const address = await new Promise<string>((resolve, reject) => {
      let said = '';
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        const found = /ws:\/\/[^/\s]+/.exec(said)?.[0];
        if (found !== undefined) resolve(found.replace('ws:', 'http:'));
      });
      child.once('exit', () => reject(new Error(`the browser did not start: ${said}`)));
    });
    const targets = (await (await fetch(`${address}/json`)).json()) as { type: string; webSocketDebuggerUrl: string }[];
    const socket = new WebSocket(targets.find((t) => t.type === 'page')?.webSocketDebuggerUrl ?? '');
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
    const browser = new Browser(socket, async () => {
      child.kill();
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    });
    for (const domain of ['Runtime', 'Log', 'Page']) await browser.send(`${domain}.enable`);
    return browser;
  }

  async send(method: string, params: object = {}): Promise<Answer> {
    const id = ++this.#id;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  async size(width: number, height: number): Promise<void> {
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 500 });
  }

  /** The value of an expression in the page; of what it promises. */
  async value(expression: string): Promise<unknown> {
    const { result } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (result?.exceptionDetails !== undefined) throw new Error(JSON.stringify(result.exceptionDetails));
    return result?.result?.value;
  }

  async key(key: string): Promise<void> {
    for (const type of ['keyDown', 'keyUp']) await this.send('Input.dispatchKeyEvent', { type, key, code: key });
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.#end();
  }
}
