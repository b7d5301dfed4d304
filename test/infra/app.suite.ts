/** The CDK app by the CDK's command line, and as that runs it: a process, without credentials. */
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';
import { cdkSynth } from '../../scripts/cdk-synth.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

describe('the CDK app', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-app-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const app = (context: Record<string, unknown>): SpawnSyncReturns<string> => {
    const { context: flags } = JSON.parse(readFileSync(join(ROOT, 'cdk.json'), 'utf8')) as { context: object };
    return spawnSync(process.execPath, ['bin/app.ts'], {
      cwd: ROOT,
      encoding: 'utf8',
      env: {
        PATH: process.env['PATH'] ?? '',
        CDK_OUTDIR: join(folder, 'out'),
        // The CDK's own check of the templates takes seconds: nag.suite.ts makes it.
        CDK_VALIDATION: 'false',
        CDK_CONTEXT_JSON: JSON.stringify({ ...flags, 'aws:cdk:bundling-stacks': [], ...context }),
      },
    });
  };

  it('makes two templates by the CDK’s command line, without network, credentials, environment and home', () => {
    const { status, stderr, tried } = cdkSynth(folder, ['--no-validation']);
    expect({ status, tried, said: status === 0 ? '' : stderr }).toEqual({ status: 0, tried: [], said: '' });
    expect(readdirSync(join(folder, 'cdk.out')).filter((f) => f.endsWith('.template.json'))).toEqual([
      'Ebbtide.template.json',
      'EbbtideData.template.json',
    ]);
    // Nothing was looked up, so there is no account to be written down anywhere.
    const manifest = JSON.parse(readFileSync(join(folder, 'cdk.out', 'manifest.json'), 'utf8')) as {
      missing?: unknown;
    };
    expect(manifest.missing).toBeUndefined();
  });

  it('says everything that is wrong with the configuration, with key and fix, and no stack trace', () => {
    const file = join(folder, 'bad.yaml');
    writeFileSync(file, 'zone: 3\nfamilies: [c6i, c7g]\nzones: 9\n');
    const { status, stderr } = app({ 'ebbtide:config': file, 'ebbtide:retentionDays': '31' });
    expect(status).toBe(2);
    expect(stderr).toContain('bad.yaml with ebbtide:retentionDays has 4 keys that cannot be deployed');
    expect(stderr).toContain('zone: no such key; did you mean zones?');
    expect(stderr).toContain('families: one deployment has one architecture');
    expect(stderr).toMatch(/zones: Too big: .*<=6/);
    expect(stderr).toContain('retentionDays: must be one of');
    expect(stderr).not.toMatch(/at .*\.ts:\d+/);
  });

  it('takes a name for a second deployment', () => {
    const { status } = app({ 'ebbtide:name': 'night', 'ebbtide:region': 'eu-central-1' });
    expect(status).toBe(0);
    expect(readdirSync(join(folder, 'out'))).toEqual(
      expect.arrayContaining(['night.template.json', 'night-data.template.json']),
    );
  });
});
