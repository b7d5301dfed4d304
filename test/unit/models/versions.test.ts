import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FEATURES } from '../../../lib/market/features/names.ts';
import { openForecast } from '../../../lib/models/preemption.ts';
import { modelInUse, modelVersions } from '../../../lib/models/versions.ts';

let places: { readonly shipped: string; readonly own: string };
beforeEach(() => {
  const root = mkdtempSync(join(tmpdir(), 'ebb-versions-'));
  places = { shipped: join(root, 'shipped'), own: join(root, 'own') };
  for (const version of ['2026-9-1', '2026-11-21']) mkdirSync(join(places.shipped, version), { recursive: true });
});
afterEach(() => rmSync(join(places.own, '..'), { recursive: true, force: true }));

describe('versions of a model', () => {
  it('are listed by their numbers, shipped and own; what is no version is left out', async () => {
    for (const version of ['2026-10-3', '.building']) mkdirSync(join(places.own, version), { recursive: true });
    writeFileSync(join(places.own, 'notes.txt'), '');
    expect((await modelVersions(places)).map(({ version, from }) => [version, from])).toEqual([
      ['2026-9-1', 'shipped'],
      ['2026-10-3', 'own'],
      ['2026-11-21', 'shipped'],
    ]);
  });

  it('the newest shipped one is used, whatever one has of one’s own', async () => {
    mkdirSync(join(places.own, '2027-1-1'), { recursive: true });
    expect(await modelInUse(places)).toEqual({ kind: 'version', version: '2026-11-21', chosen: null });
  });

  it('one’s own of the name of a shipped one, or the very same folder, changes nothing about which is the newest', async () => {
    expect(await modelInUse({ ...places, own: places.shipped })).toMatchObject({ version: '2026-11-21' });
  });

  it('there are none where there is no folder', async () => {
    const nowhere = { shipped: join(places.shipped, 'x'), own: null };
    expect(await modelVersions(nowhere)).toEqual([]);
    expect(await modelInUse(nowhere)).toEqual({ kind: 'none' });
  });
});

describe('a forecast that is chosen', () => {
  it('by history asks no model and refuses nothing', async () => {
    const opened = await openForecast('history', places, FEATURES);
    expect(opened).toMatchObject({ chosen: 'history', model: null, refused: null, fault: null });
  });

  it('by regime opens its model with the first question, and is refused in words from then on', async () => {
    const opened = await openForecast('by-regime', places, FEATURES);
    expect(opened).toMatchObject({ chosen: 'by-regime', byRegime: true, refused: null, fault: null });
    expect(await opened.model?.run(new Float32Array(FEATURES.length))).toMatchObject({ kind: 'failed' });
    expect(opened.refused).toMatch(/lacks a file/);
    expect(opened.fault).toBe('missing');
    await opened.close();
  });

  it.each([
    ['a version that is not there', '2025-1-1', /no model 2025-1-1; there are 2026-9-1, 2026-11-21/],
    ['a version without its files', '2026-9-1', /lacks a file/],
    ['the model in use, without its files', 'model', /lacks a file/],
  ])('by %s is refused in words', async (_what, chosen, why) => {
    const opened = await openForecast(chosen, places, FEATURES);
    expect(opened).toMatchObject({ chosen, model: null, fault: 'missing' });
    expect(opened.refused).toMatch(why);
  });
});
