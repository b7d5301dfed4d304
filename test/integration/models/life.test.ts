import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { modelPlaces } from '../../../lib/drivers/local/models/model-places.ts';
import { addChoice } from '../../../lib/models/choices.ts';
import { libraryOf } from '../../../lib/models/library.ts';
import { modelInUse } from '../../../lib/models/versions.ts';
import { always } from '../../support/constant-model.ts';

const ROOT = process.cwd();
const EBB = join(ROOT, 'bin', 'ebb.mjs');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-models-life-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const market = join(scratch, 'market.ebbmarket');
/** Called as Python is: the program that trains and its arguments. */
const python = join(scratch, 'python');

beforeAll(() => {
  const flags = '--disable-warning=ExperimentalWarning';
  const trainer = join(ROOT, 'test', 'support', 'fake-trainer.ts');
  writeFileSync(python, `#!/bin/sh\nexec "${process.execPath}" ${flags} "${trainer}" "$@"\n`, { mode: 0o755 });
  const of = ['--days', '32', '--types', 'm5.large,c5.large', '--zones', 'us-east-1a,us-east-1b', '--regime', 'spiky'];
  expect(ebb('market', 'generate', '-o', market, '--seed', '7', ...of).status).toBe(0);
});

function ebb(...args: string[]) {
  return spawnSync(process.execPath, [EBB, ...args], { cwd: scratch, encoding: 'utf8', timeout: 50_000 });
}
let directories = 0;
const newDir = (): string => join(scratch, `dir${++directories}`);
const ownOf = (dir: string): string => join(dir, 'models', 'preemption');
function ask<T>(dir: string, ...args: string[]): T {
  const { status, stdout, stderr } = ebb('models', ...args, '--dir', dir, '--json');
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}
function train(dir: string, outcome: string, ...more: string[]) {
  const args = [
    'models',
    'train',
    '--dir',
    dir,
    '--markets',
    market,
    '--instants',
    '1500',
    '--python',
    python,
    ...more,
  ];
  return spawnSync(process.execPath, [EBB, ...args], {
    cwd: scratch,
    encoding: 'utf8',
    timeout: 50_000,
    env: { ...process.env, EBB_FAKE_TRAINER: outcome },
  });
}
interface Listed {
  readonly inUse: { readonly kind: string; readonly version: string; readonly chosen: { readonly why: string } | null };
  readonly models: readonly { readonly version: string; readonly from: string; readonly inUse: boolean }[];
}
const inUse = (dir: string) => modelInUse(modelPlaces(dir));
const versions = async (dir: string): Promise<string[]> =>
  (await libraryOf(modelPlaces(dir))).models.flatMap((m) => (m.from === 'own' ? [m.version] : []));
const choose = (dir: string, version: string): void =>
  addChoice(ownOf(dir), { kind: 'use', version, at: '2026-01-01T00:00:00Z', by: 'test', why: '' });

describe('versions of a directory', () => {
  it('are listed with those that came along; one of them is in use', () => {
    const dir = newDir();
    always(join(ownOf(dir), 'mine'), 0.3);
    const { models, inUse } = ask<Listed>(dir, 'list');
    expect(models.map((m) => m.version)).toEqual(expect.arrayContaining(['2026-11-21-trees', 'mine']));
    expect(models.filter((m) => m.inUse).map((m) => m.version)).toEqual([inUse.version]);
    expect(inUse).toMatchObject({ version: '2026-11-21-trees', chosen: null });
  });

  it('are chosen, and the choice is taken back', async () => {
    const dir = newDir();
    always(join(ownOf(dir), 'mine'), 0.3);
    expect(ask(dir, 'use', 'mine', '--why', 'a try')).toMatchObject({ version: 'mine', chosen: { why: 'a try' } });
    expect(await inUse(dir)).toMatchObject({ version: 'mine' });
    expect(ask(dir, 'use', '--rollback')).toMatchObject({ version: '2026-11-21-trees', chosen: null });
    expect(ask<{ choices: unknown[] }>(dir, 'history').choices).toHaveLength(2);
    expect(ebb('models', 'use', '--rollback', '--dir', dir)).toMatchObject({
      status: 6,
      stderr: expect.stringContaining('no choice to undo'),
    });
  });

  it('that are damaged are said to be, and are not chosen', () => {
    const dir = newDir();
    const folder = join(ownOf(dir), 'mine');
    always(folder, 0.3);
    appendFileSync(join(folder, 'model.onnx'), 'x');
    expect(ebb('models', 'list', '--dir', dir).stdout).toMatch(/mine +damaged: the/);
    const shown = ebb('models', 'show', 'mine', '--dir', dir);
    expect(shown.status).toBe(9);
    expect(shown.stdout).toMatch(/Checked: damaged: .*SHA-256/);
    const chosen = ebb('models', 'use', 'mine', '--dir', dir);
    expect(chosen.status).toBe(9);
    expect(chosen.stderr).toContain('model.unusable');
    expect(existsSync(join(ownOf(dir), 'in-use.json'))).toBe(false);
  });

  it('that answer otherwise than where they were trained are damaged too', () => {
    const dir = newDir();
    const folder = join(ownOf(dir), 'mine');
    always(folder, 0.3);
    const golden = (p: number) => ({
      tolerance: 1e-5,
      inputs: [new Array(64).fill(0)],
      outputs: [new Array(6).fill(p)],
    });
    writeFileSync(join(folder, 'golden.json'), JSON.stringify(golden(0.3)));
    expect(ask(dir, 'show', 'mine')).toMatchObject({ check: { kind: 'whole', golden: { kind: 'compared', rows: 1 } } });
    writeFileSync(join(folder, 'golden.json'), JSON.stringify(golden(0.31)));
    expect(ebb('models', 'show', 'mine', '--dir', dir)).toMatchObject({
      status: 9,
      stdout: expect.stringContaining('they differ by 0.010'),
    });
  });
});

describe('a version that is judged', () => {
  interface Judged {
    readonly record: { readonly from: string; readonly bids: number; readonly forecasts: { readonly name: string }[] };
    readonly differences: { readonly than: string; readonly difference: { readonly verdict: string } }[];
  }

  it('stands beside the one in use and history, on the last quarter of the prices', () => {
    const dir = newDir();
    always(join(dir, 'elsewhere'), 0.99);
    const of = ['--markets', market, '--instants', '500'];
    const { record, differences } = ask<Judged>(dir, 'evaluate', join(dir, 'elsewhere'), ...of);
    expect(record.forecasts.map((f) => f.name)).toEqual(['elsewhere', '2026-11-21-trees', 'history']);
    expect(record.from >= '2026-01-29').toBe(true);
    expect(differences.map((d) => [d.than, d.difference.verdict])).toEqual([
      ['2026-11-21-trees', 'worse'],
      ['history', 'worse'],
    ]);
  });

  it('is not judged on what it has seen', () => {
    const dir = newDir();
    const seen = {
      name: 'a',
      from: '2026-01-01T00:00:00Z',
      validationFrom: '2026-02-01T00:00:00Z',
      to: '2026-03-01T00:00:00Z',
    };
    const source = (testFrom: string) => ({ sources: [{ ...seen, testFrom }] });
    always(join(ownOf(dir), 'all'), 0.3, source('2026-03-01T00:00:00Z'));
    always(join(ownOf(dir), 'most'), 0.3, source('2026-02-02T00:00:00Z'));
    const of = ['--markets', market, '--instants', '500'];
    const refused = ebb('models', 'evaluate', 'all', '--dir', dir, ...of);
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain('was seen by a version while it was trained');
    expect(ask<Judged>(dir, 'evaluate', 'most', ...of).record.from >= '2026-02-02').toBe(true);
  });
});

describe('training', () => {
  it('takes a version that beats the one in use, and the next only if it beats that', async () => {
    const dir = newDir();
    always(join(ownOf(dir), 'silly'), 0.97);
    choose(dir, 'silly');
    const first = train(dir, '0.15', '--name', 'better', '--json');
    expect(first.stderr).not.toContain('error:');
    expect(JSON.parse(first.stdout)).toMatchObject({ version: 'better', rival: 'silly', taken: true });
    expect(await inUse(dir)).toMatchObject({
      version: 'better',
      chosen: { why: expect.stringMatching(/better than silly on \d+ days: Brier -0\.\d+ \[-/) },
    });
    const second = train(dir, '0.9', '--name', 'worse');
    expect(second.stdout).toContain('worse is not shown to be better than better, which stays');
    expect(await inUse(dir)).toMatchObject({ version: 'better' });
    // It is kept with its figures, and can be chosen by hand.
    const shown = ask<{ evaluation: { forecasts: { name: string }[] } }>(dir, 'show', 'worse');
    expect(shown.evaluation.forecasts.map((f) => f.name)).toEqual(['worse', 'better', 'history']);
    choose(dir, 'worse');
    // One as good as the one in use is no better.
    expect(JSON.parse(train(dir, '0.9', '--json').stdout)).toMatchObject({ rival: 'worse', taken: false });
  });

  it.each([
    ['fails', /exit code 3: no luck today/],
    ['damaged', /cannot be used, and is not kept[^]*SHA-256/],
  ])('that %s leaves nothing', (outcome, said) => {
    const dir = newDir();
    const { status, stderr } = train(dir, outcome);
    expect(status).toBe(9);
    expect(stderr).toMatch(said);
    expect(readdirSync(ownOf(dir))).toEqual([]);
  });

  it('is not begun where what it would be added to is damaged', () => {
    const dir = newDir();
    mkdirSync(ownOf(dir), { recursive: true });
    writeFileSync(join(ownOf(dir), 'in-use.json'), '{');
    const { status, stderr } = train(dir, '0.15');
    expect(status).toBe(9);
    expect(stderr).toMatch(/^error: .*in-use\.json.* is damaged/);
  });

  it('that dies half-way leaves no version, and the next one clears up', async () => {
    const dir = newDir();
    train(dir, 'dies');
    expect(readdirSync(ownOf(dir))).toEqual([expect.stringMatching(/^\.training-\d+$/)]);
    expect(await versions(dir)).toEqual([]);
    expect(train(dir, '0.15', '--name', 'next').status).toBe(0);
    expect(readdirSync(ownOf(dir)).filter((name) => name.startsWith('.'))).toEqual([]);
    expect(await versions(dir)).toEqual(['next']);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('stopped by %s as it draws says so, exits with %i, and has changed nothing', async (signal, code) => {
    const dir = newDir();
    const args = ['models', 'train', '--dir', dir, '--markets', market, '--python', python, '--instants', '60000'];
    const child = spawn(process.execPath, [EBB, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk) => {
      const before = said;
      said += String(chunk);
      if (said.includes('drawing samples') && !before.includes('drawing samples')) child.kill(signal);
    });
    expect(await once(child, 'close')).toEqual([code, null]);
    expect(said).toContain('stopped; nothing was changed');
    expect(readdirSync(ownOf(dir))).toEqual([]);
  });

  it('on too little history is refused, with how much there is and how much it takes', () => {
    const dir = newDir();
    const short = join(scratch, 'short.ebbmarket');
    ebb('market', 'generate', '-o', short, '--days', '20', '--types', 'm5.large', '--zones', 'us-east-1a');
    const { status, stderr } = ebb('models', 'train', '--dir', dir, '--markets', short, '--python', python);
    expect(status).toBe(2);
    expect(stderr).toMatch(/short\.ebbmarket: 20\.0 days[^]*at least 28 days/);
    expect(existsSync(ownOf(dir))).toBe(false);
  });

  it('of a directory in which no engine was asks for prices', () => {
    mkdirSync(join(scratch, 'empty'));
    const { status, stderr } = ebb('models', 'train', '--dir', join(scratch, 'empty'), '--python', python);
    expect(status).toBe(6);
    expect(stderr).toContain('--markets');
  });

  it('without a Python says what is needed', () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [EBB, 'models', 'train', '--dir', newDir(), '--markets', market],
      { encoding: 'utf8', env: { PATH: '/nowhere', HOME: scratch } },
    );
    expect(status).toBe(9);
    expect(stderr).toMatch(/Python 3\.11 or newer[^]*apt install/);
  });

  it('sees of its own market what the engine has seen, and not what is to come; what that bought is held against its forecasts', () => {
    const dir = newDir();
    writeFileSync(
      join(scratch, 'job.json'),
      JSON.stringify({
        name: 'one',
        command: 'true',
        expectedRuntime: '1m',
        resources: { cpu: 1, memory: '64MiB' },
        constraints: { purchaseOptions: ['spot'] },
      }),
    );
    const from = ['--market', market, '--from', '2026-01-20T00:00:00Z', '--speed', '600', '--set', 'forecast=model'];
    expect(ebb('run', 'job.json', '--dir', dir, ...from).status).toBe(0);
    const { stderr } = ebb('models', 'train', '--dir', dir, '--python', python);
    const { drift } = ask<{ drift: { overall: { instances: number; expected: number } } }>(dir, 'show');
    expect(drift.overall.instances).toBeGreaterThan(0);
    expect(drift.overall.expected).toBeGreaterThan(0);
    // The market began on 5 January and goes on for 32 days.
    expect(stderr).toMatch(/market\.ebbmarket: 15\.\d days/);
  });
});
