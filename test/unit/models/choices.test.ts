import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FEATURES } from '../../../lib/market/features/names.ts';
import {
  addChoice,
  choicesFile,
  knownChoices,
  readChoices,
  standing,
  type Choice,
} from '../../../lib/models/choices.ts';
import { openForecast } from '../../../lib/models/preemption.ts';
import { modelInUse } from '../../../lib/models/versions.ts';

const made = { at: '2026-11-22T00:00:00.000Z', by: 'ada', why: 'better' };
const use = (version: string): Choice => ({ kind: 'use', version, ...made });
const rollback: Choice = { kind: 'rollback', ...made };

let root: string;
let places: { readonly shipped: string; readonly own: string };
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ebb-choices-'));
  places = { shipped: join(root, 'shipped'), own: join(root, 'models', 'preemption') };
  for (const version of ['v1', 'v2']) mkdirSync(join(places.shipped, version), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const inUse = async (): Promise<string | null> => {
  const found = await modelInUse(places);
  return found.kind === 'version' ? found.version : null;
};

describe('the version in use', () => {
  it('is the newest shipped one until another is chosen, and again when the choice is taken back', async () => {
    expect(await inUse()).toBe('v2');
    addChoice(places.own, use('v1'));
    expect(await inUse()).toBe('v1');
    addChoice(places.own, rollback);
    expect(await inUse()).toBe('v2');
  });

  it('goes back choice by choice, not to and fro', () => {
    const list = [use('a'), use('b'), use('c'), rollback, rollback];
    expect(standing(list).map((c) => c.version)).toEqual(['a']);
    expect(standing([...list, use('d'), rollback]).map((c) => c.version)).toEqual(['a']);
    expect(standing([...list, rollback, rollback])).toEqual([]);
  });

  it('is kept with who chose it, when and why, rollbacks included', () => {
    const list = [use('v1'), rollback, use('v2')];
    for (const choice of list) addChoice(places.own, choice);
    expect(knownChoices(places.own)).toEqual(list);
    expect(readdirSync(places.own)).toEqual(['in-use.json']);
  });

  it.each([
    ['is no JSON', '{"format":1,'],
    ['has another form', '{"format":2,"choices":[]}'],
    ['names something that is no version', JSON.stringify({ format: 1, choices: [use('../x')] })],
  ])('is none where the file %s: history forecasts, and says why', async (_what, text) => {
    addChoice(places.own, use('v1'));
    writeFileSync(choicesFile(places.own), text);
    expect(readChoices(places.own)).toMatchObject({ kind: 'damaged' });
    expect(await openForecast('model', places, FEATURES)).toMatchObject({ model: null, fault: 'damaged' });
    expect(() => addChoice(places.own, use('v2'))).toThrow(/is damaged/);
    // A version that is asked for by its name does not hang on it.
    expect(await openForecast('v1', places, FEATURES)).toMatchObject({ fault: 'missing' });
  });

  it('that is gone is refused by name, and none stands in for it', async () => {
    addChoice(places.own, use('v9'));
    const opened = await openForecast('model', places, FEATURES);
    expect(opened.refused).toMatch(/no model v9; there are v1, v2/);
  });

  it('is whole after a death at any moment', async () => {
    const library = fileURLToPath(new URL('../../../lib/models/choices.ts', import.meta.url));
    const program = `import { addChoice } from ${JSON.stringify(library)};
      for (let i = 0; ; i++) { addChoice(${JSON.stringify(places.own)}, { kind: 'use', version: 'v' + i, at: '${made.at}', by: 'ada', why: 'x'.repeat(2000) }); if (i === 0) process.stdout.write('begun'); }`;
    let before = 0;
    for (let death = 0; death < 4; death++) {
      const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program];
      const child = spawn(process.execPath, flags, { stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = new Promise((resolve) => child.once('exit', resolve));
      await new Promise((resolve) => child.stdout.once('data', resolve));
      await delay(7 * death + 3);
      child.kill('SIGKILL');
      await ended;
      const after = knownChoices(places.own).length;
      expect(after).toBeGreaterThan(before);
      before = after;
    }
    expect(existsSync(choicesFile(places.own))).toBe(true);
  });
});
