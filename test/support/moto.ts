import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from '@jest/globals';
import { missingPython, pythonPrograms } from '../../scripts/installation.ts';
import { freePort } from './free-port.ts';
import { describeMissing } from './required.ts';
import { until } from './until.ts';

const REQUIREMENTS = join(import.meta.dirname, '..', '..', 'scripts', 'moto', 'requirements.txt');
/** The first use on a machine installs it. */
const START_WITHIN_MS = 600_000;

/** A server of moto, and the AWS CLI that is installed with it. Valid while tests run, not before. */
export class Moto {
  #programs = '';
  #server: ChildProcess | null = null;
  /** For clients of the SDK. */
  readonly config = {
    endpoint: '',
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxAttempts: 1,
  };

  async begin(): Promise<void> {
    this.#programs = await pythonPrograms('moto', REQUIREMENTS);
    const port = await freePort();
    this.config.endpoint = `http://127.0.0.1:${port}`;
    this.#server = spawn(join(this.#programs, 'moto_server'), ['-p', String(port)], { stdio: 'ignore' });
    await until(() => this.reset());
  }

  /** Forgets everything. Whether it answered. */
  reset(): Promise<boolean> {
    return fetch(`${this.config.endpoint}/moto-api/reset`, { method: 'POST' }).then(
      (answer) => answer.ok,
      () => false,
    );
  }

  get aws(): string {
    return join(this.#programs, 'aws');
  }

  async end(): Promise<void> {
    if (this.#server?.exitCode !== null) return;
    const ended = once(this.#server, 'exit');
    this.#server.kill('SIGKILL');
    await ended;
  }
}

/**
 * Describes tests on moto, installed with pinned hashes. Without Python they are skipped, or fail where they must run.
 */
export function describeOnMoto(name: string, tests: (moto: Moto) => void): void {
  const missing = missingPython();
  if (missing !== null) {
    describeMissing(name, `moto cannot run here: there is no ${missing}`, () => tests(new Moto()));
    return;
  }
  describe(name, () => {
    const moto = new Moto();
    beforeAll(() => moto.begin(), START_WITHIN_MS);
    afterAll(() => moto.end());
    tests(moto);
  });
}
