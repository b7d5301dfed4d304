/** The same market in local mode: `ebb up`, asked with the same command line as a deployment. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { httpClient, type Client } from '../../../lib/cli/client.ts';
import type { EpochMs } from '../../../lib/kernel/units.ts';
import { raw } from '../../../lib/kernel/units.ts';
import { writeMarket } from '../../../lib/drivers/local/market/file.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { stopAtOnce } from '../../support/stop-at-once.ts';
import { ebb, type Answer } from '../../../scripts/rehearsal/command-line.ts';

export interface LocalStage {
  /** When it begins. */
  readonly from: EpochMs;
  /** Market seconds per wall second. */
  readonly speed: number;
  /** Keys of a settings file. */
  readonly settings: Readonly<Record<string, unknown>>;
}

export class LocalSide {
  readonly url: string;
  readonly #engine: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, engine: ChildProcess, folder: string) {
    this.url = url;
    this.#engine = engine;
    this.#folder = folder;
  }

  static async begin(trace: MarketTrace, { from, speed, settings }: LocalStage): Promise<LocalSide> {
    const folder = mkdtempSync(join(tmpdir(), 'ebb-rehearsal-local-'));
    const market = join(folder, 'market.ebbmarket');
    writeMarket(market, trace, { name: 'rehearsal', source: 'a test', notes: [] });
    const at = new Date(raw(from)).toISOString();
    const args = ['up', '--json', '--port', '0', '--dir', join(folder, 'data'), '--market', market];
    const file = join(folder, 'settings.json');
    writeFileSync(file, JSON.stringify(settings));
    const set = ['--settings', file];
    const engine = spawn(process.execPath, ['bin/ebb.mjs', ...args, '--from', at, '--speed', String(speed), ...set], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const url = await new Promise<string>((resolve, reject) => {
      engine.once('exit', (code) => reject(new Error(`ebb up ended with ${code}`)));
      createInterface({ input: engine.stdout }).once('line', (line) =>
        resolve((JSON.parse(line) as { url: string }).url),
      );
    });
    return new LocalSide(url, engine, folder);
  }

  ebb(...args: string[]): Promise<Answer> {
    return ebb(['--url', this.url, ...args]);
  }

  /** With the token that the engine made in its folder. */
  client(): Client {
    return httpClient(this.url, readFileSync(join(this.#folder, 'data', 'token'), 'utf8').trim());
  }

  async end(): Promise<void> {
    await stopAtOnce(this.#engine);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
