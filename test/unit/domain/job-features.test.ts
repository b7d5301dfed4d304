import { describe, expect, it } from '@jest/globals';
import { FeaturesByStage, featuresOf, programOf, templateName, templateOf } from '../../../lib/domain/job-features.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import { spec, stage } from '../../support/builders.ts';

describe('templateName', () => {
  it.each([
    ['train', 'train'],
    ['train-2026-11-21', 'train-#'],
    ['train-20261121T0510Z', 'train-#'],
    ['train_2026-11-21T05:10:22.123+01:00_run7', 'train_#_run#'],
    ['render-0012', 'render-#'],
    ['Render-12-of-400', 'render-#-of-#'],
    ['sweep-3f9a1c07', 'sweep-#'],
    ['sweep-deadbeef-x', 'sweep-deadbeef-x'],
    ['etl 123e4567-e89b-12d3-a456-426614174000', 'etl #'],
    ['etl/01ARZ3NDEKTSV4RRFFQ69G5FAV', 'etl/#'],
    ['2026-11-21-12', '#'],
    ['lr=0.001', 'lr=#'],
    ['  Nightly  ', 'nightly'],
    ['', ''],
  ])('%s is %s', (name, expected) => {
    expect(templateName(name)).toBe(expected);
    expect(templateName(expected)).toBe(expected);
  });
});

describe('programOf', () => {
  it.each([
    [['/usr/bin/python3', '-u', 'src/train.py', '--epochs', '3'], 'train.py'],
    [['python', '-m', 'pytest', 'x'], 'python -m pytest'],
    [['python3', '-c', 'print(1)'], 'python3'],
    [['node', 'index.js'], 'index.js'],
    [['sh', '-c', 'LANG=C  ./bin/resize in/*.png && true'], 'resize'],
    [['bash', '-ec', 'exec env A=1 nice -n 10 ffmpeg -i x'], 'ffmpeg'],
    [['bash', 'run.sh'], 'run.sh'],
    [['timeout', '60', 'make'], 'make'],
    [['true'], 'true'],
    [[], ''],
  ] as [string[], string][])('%j runs %s', (command, program) => {
    expect(programOf(command)).toBe(program);
  });
});

it('the template of a job names owner, templated name and program', () => {
  const job = spec({ owner: 'ada', name: 'train-2026-11-21', stages: [stage({ command: ['python3', 'fit-2.py'] })] });
  expect(templateOf(job)).toBe('ada/train-#/fit-#.py');
});

it('features come from the job and the stage', () => {
  const fit = stage({ name: 'fit', command: ['./fit'] });
  const features = featuresOf(spec({ owner: 'ada', name: 'train-17' }), fit, epochMs(5));
  expect(features).toEqual({
    owner: 'ada',
    jobName: 'train-#',
    program: 'fit',
    stage: 'fit',
    resources: fit.resources,
    submittedMs: epochMs(5),
    expectedRuntimeS: fit.expectedRuntimeS,
  });
});

it('features name tasks and labels where there are any, and at most four labels', () => {
  const array = stage({ name: 'fit', tasks: 12, expectedRuntimeS: null });
  const labels = { queue: '2', site: 'a', group: 'x', 'z/last': 'no', 'b.c': 'y' };
  const features = featuresOf(spec({ labels, stages: [array] }), array, epochMs(5));
  expect(features.tasks).toBe(12);
  expect(features.labels).toEqual(['b.c=y', 'group=x', 'queue=2', 'site=a']);
  expect(features.expectedRuntimeS).toBeUndefined();
});

it('features of one stage are those of the job that asks', () => {
  const fit = stage({ name: 'fit', command: ['./fit'] });
  const known = new FeaturesByStage();
  const of = (owner: string, atMs: number) => known.of(spec({ owner, stages: [fit] }), fit, epochMs(atMs));
  expect([of('ada', 5), of('bob', 5), of('bob', 6)].map((f) => [f.owner, f.submittedMs])).toEqual([
    ['ada', 5],
    ['bob', 5],
    ['bob', 6],
  ]);
});
