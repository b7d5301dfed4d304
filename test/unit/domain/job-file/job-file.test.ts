import { OWN_FOLDER } from '../../../../lib/domain/job.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { COMPLETE_EXAMPLE } from '../../../../lib/domain/job-file/example.ts';
import {
  expandIndex,
  jobFileJsonSchema,
  normaliseJob,
  parseJobFile,
  parseJobs,
  type ParseOptions,
} from '../../../../lib/domain/job-file/job-file.ts';
import { MAX_FILE_BYTES, readDocuments } from '../../../../lib/domain/job-file/text.ts';
import type { JobSpec } from '../../../../lib/domain/job.ts';
import { EbbError } from '../../../../lib/kernel/errors.ts';

const OPTIONS: ParseOptions = { path: 'job.yaml', baseDir: '/home/ana/scenes', defaultOwner: 'ana' };
const parse = (text: string, over: Partial<ParseOptions> = {}): JobSpec => parseJobFile(text, { ...OPTIONS, ...over });

function refusal(work: () => unknown): EbbError {
  try {
    work();
  } catch (error) {
    if (error instanceof EbbError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}
const issuesOf = (text: string, over: Partial<ParseOptions> = {}): string[] =>
  refusal(() => parse(text, over)).facts.issues?.map((i) => `${i.at}: ${i.message}`) ?? [];
const issuesIn = (work: () => unknown): string[] =>
  refusal(work).facts.issues?.map((i) => `${i.at}: ${i.message}`) ?? [];
const withKeys = (...lines: string[]): string => ['name: a', 'command: run', ...lines].join('\n');

describe('job file', () => {
  it('fills in defaults for the shortest file', () => {
    expect(parse('name: hello\ncommand: echo {index}\n')).toEqual({
      name: 'hello',
      owner: 'ana',
      labels: {},
      class: 'best-effort',
      deadline: null,
      value: { onTimeUsd: null, worthlessAfterS: null },
      after: [],
      maxCostUsd: null,
      stages: [
        {
          name: 'main',
          dependsOn: [],
          tasks: 1,
          gang: false,
          command: ['sh', '-c', 'echo {index}'],
          env: {},
          workdir: '/home/ana/scenes',
          inputs: [],
          outputs: [],
          resources: { cpu: 1000, memory: 512, gpus: 0, disk: 0 },
          retries: 2,
          timeoutS: null,
          checkpoint: null,
          expectedRuntimeS: null,
          constraints: {},
          preferences: [],
        },
      ],
    });
  });

  it('resolves the units and inheritance of the complete example', () => {
    const spec = parse(COMPLETE_EXAMPLE);
    expect(spec).toMatchObject({
      name: 'scenes-2026-11-21',
      owner: 'ana@example.org',
      class: 'deadline',
      deadline: { afterS: 21_600 },
      value: { onTimeUsd: 40, worthlessAfterS: 7200 },
      after: ['download-scenes'],
      maxCostUsd: 25,
    });
    const [cut, analyse, join_] = spec.stages;
    // 50 GB are 50e9 / 2^20 = 47,683.7 MiB.
    expect(cut).toMatchObject({
      inputs: ['raw/*.tif'],
      workdir: '/home/ana/scenes/scenes',
      env: { GDAL_CACHEMAX: '512' },
      resources: { cpu: 2000, memory: 4096, gpus: 0, disk: 47_684 },
      timeoutS: 5400,
      checkpoint: null,
    });
    expect(analyse).toMatchObject({
      dependsOn: ['cut'],
      tasks: 200,
      command: ['python3', 'analyse.py', '--tile', '{index}'],
      resources: { cpu: 500, memory: 1500 },
      expectedRuntimeS: 1200,
      checkpoint: { signal: 'SIGUSR1', graceS: 30, everyS: 300 },
      constraints: { arch: ['x86_64'], families: ['c5*', 'm5*'] },
      preferences: [{ prefer: { purchaseOptions: ['spot'], zones: ['us-east-1a'] }, weight: 0.1 }],
    });
    expect(join_?.constraints).toEqual({ purchaseOptions: ['on-demand'] });
  });

  it('joins env and resources of the top and of a stage key by key', () => {
    const spec = parse(
      'name: a\ncommand: run\nenv: {A: 1, B: 2}\nresources: {cpu: 2, memory: 1GiB}\nworkdir: /data\n' +
        'stages: [{name: x, env: {B: 3}, resources: {cpu: 4}, workdir: sub}, {name: y}]',
    );
    expect(spec.stages[0]).toMatchObject({ env: { A: '1', B: '3' }, resources: { cpu: 4000, memory: 1024 } });
    expect(spec.stages.map((s) => s.workdir)).toEqual(['/home/ana/scenes/sub', '/data']);
  });

  it.each([
    ['90', 90],
    ['90s', 90],
    ['20m', 1200],
    ['1h30m', 5400],
    ['1h 30 min', 5400],
    ['2 days', 172_800],
    ['1.5h', 5400],
    ['500ms', 0.5],
    ['1w', 604_800],
  ])('reads the duration %s', (text, expected) => {
    expect(parse(withKeys(`timeout: ${text}`)).stages[0]?.timeoutS).toBe(expected);
  });

  it.each(['10 parsecs', '20M', '1h30', '-5s', '0', "''", '1 month', '5000d', '1h foo', '.inf', 'true'])(
    'refuses the duration %s and names the units',
    (text) => {
      const [issue, ...more] = issuesOf(withKeys(`timeout: ${text}`));
      expect(more).toEqual([]);
      expect(issue).toMatch(
        /^job\.yaml:3:10 timeout: must be a number of seconds or .*units ms, s, m, h, d, w.*; got /,
      );
    },
  );

  it.each([
    ['512MiB', 512],
    ['2GiB', 2048],
    ['4Gi', 4096],
    // 4e9 / 2^20 = 3814.7
    ['4GB', 3815],
    ['4G', 3815],
    ['1024KiB', 1],
    ['1TiB', 1_048_576],
    ['0.5 GiB', 512],
  ])('reads the size %s', (text, expected) => {
    expect(parse(withKeys(`resources: {memory: ${text}}`)).stages[0]?.resources.memory).toBe(expected);
  });

  it.each(['512', '4Gb', '4gib', '4 parsecs', '0MiB', '2000TiB', 'GiB'])('refuses the memory %s', (text) => {
    const [issue] = issuesOf(withKeys(`resources: {memory: ${text}}`));
    expect(issue).toMatch(/resources\.memory: must be a text with a unit such as .*KiB, MiB, GiB.*; got /);
  });

  it.each([
    ['2', 2000],
    ['0.5', 500],
    ["'500m'", 500],
    ["'1.5'", 1500],
    ['0.0001', 1],
  ])('reads the cpu %s', (text, expected) => {
    expect(parse(withKeys(`resources: {cpu: ${text}}`)).stages[0]?.resources.cpu).toBe(expected);
  });

  it.each(['0', '-1', '2 cores', '500x'])('refuses the cpu %s', (text) => {
    expect(issuesOf(withKeys(`resources: {cpu: ${text}}`))[0]).toContain('resources.cpu: must be a number of vCPUs');
  });

  it.each([
    ['2026-11-21T18:00:00+01:00', Date.UTC(2026, 10, 21, 17)],
    ['2026-11-21T18:00Z', Date.UTC(2026, 10, 21, 18)],
  ])('reads the time %s as a deadline', (text, atMs) => {
    expect(parse(withKeys(`deadline: ${text}`)).deadline).toEqual({ atMs });
  });

  it.each(['2026-11-21T18:00:00', '2026-11-21', '2026-02-30T00:00:00Z', 'tomorrow', '-3'])(
    'refuses the deadline %s',
    (text) => {
      expect(issuesOf(withKeys(`deadline: ${text}`))[0]).toContain('or a time with its zone such as 2026-11-21T18:00');
    },
  );

  it('names the class by the deadline, and refuses what contradicts it', () => {
    expect(parse(withKeys('deadline: 1h')).class).toBe('deadline');
    expect(issuesOf(withKeys('class: deadline'))).toEqual([
      'job.yaml:1:1 deadline: is missing: a job of class `deadline` has one',
    ]);
    expect(issuesOf(withKeys('class: best-effort', 'deadline: 1h'))[0]).toContain('has no deadline');
    const error = refusal(() => parse(withKeys('class: service')));
    expect(error.code).toBe('job-file.invalid');
    expect(error.message).toBe(
      'job.yaml:3:8 class: a service is no job: apply it by `ebb service apply FILE`; allowed here: deadline, best-effort',
    );
  });

  it('refuses unknown keys with the nearest one, or the place where they belong', () => {
    expect(
      issuesOf('nam: a\nname: a\ncommand: b\nmemory: 1GiB\nresources:\n  cpus: 1\nstages:\n - {name: s, taks: 3}'),
    ).toEqual(
      [
        'job.yaml:6:3 resources.cpus: unknown key "cpus"; did you mean `cpu`?',
        'job.yaml:8:14 stages[0].taks: unknown key "taks"; did you mean `tasks`?',
        'job.yaml:1:1 nam: unknown key "nam"; did you mean `name`?',
        'job.yaml:4:1 memory: unknown key "memory"; it belongs in `resources`',
      ].sort((a, b) => order(a) - order(b)),
    );
    function order(issue: string): number {
      return ['stages[0].taks', 'resources.cpus', 'nam', 'memory'].findIndex((p) => issue.includes(` ${p}: `));
    }
  });

  it('reports every fault at once, each with its place', () => {
    const text =
      'command: [1]\ntasks: 10001\nretries: -1\ngang: maybe\nenv: {1A: x, B: [1]}\ninputs: [/etc/passwd, ../x, ok]\n';
    const found = issuesOf(text).map((i) => /^job\.yaml:(\d+:\d+) ([^:]*): /.exec(i)?.slice(1, 3).join(' '));
    expect(found.sort()).toEqual(
      [
        '1:1 name',
        '1:10 command',
        '2:8 tasks',
        '3:10 retries',
        '4:7 gang',
        '5:7 env.1A',
        '5:17 env.B',
        '6:10 inputs[0]',
        '6:23 inputs[1]',
      ].sort(),
    );
  });

  it.each(['EBB_JOB', 'EBB_ATTEMPT', 'EBB_INPUTS', 'EBB_ORDER', 'EBB_TASK_INDEX', 'EBB_NEW', 'ebb_report', 'Ebb_x'])(
    'refuses the variable %s, at the top and in a stage: it is ours',
    (name) => {
      for (const text of [
        withKeys(`env: {${name}: forged}`),
        withKeys(`stages: [{name: s, env: {${name}: forged}}]`),
      ]) {
        expect(issuesOf(text)).toEqual([expect.stringContaining(`${name}: `)]);
        expect(issuesOf(text)[0]).toContain('EBB_AWS_CLI and EBB_CHECKPOINT_SYNC');
      }
    },
  );

  it.each(['EBB_AWS_CLI', 'EBB_CHECKPOINT_SYNC', 'EBB', 'EBBTIDE', 'MY_EBB_X'])('takes the variable %s', (name) => {
    expect(parse(withKeys(`env: {${name}: x}`)).stages[0]?.env).toEqual({ [name]: 'x' });
  });

  it('takes placement rules in every spelling, those of the top in every stage', () => {
    const { stages } = parse(
      withKeys(
        'labels: {app: a}\nplacement: {maxPerInstance: 2, spread: {over: zone}, affinity: []}\n' +
          'stages: [{name: s}, {name: t, placement: {antiAffinity: [{over: instance, labels: {app: a, n: 1}}]}}, {name: u, placement: {}}]',
      ),
    );
    expect(stages.map((s) => s.placement)).toEqual([
      { maxPerInstance: 2, spread: [{ over: 'zone', maxSkew: 1 }] },
      { antiAffinity: [{ over: 'instance', labels: { app: 'a', n: '1' } }] },
      undefined,
    ]);
  });

  it.each([
    ['maxPerInstance: 0', 'maxPerInstance'],
    ['spread: {over: rack}', 'with `over` (zone or instance) and `maxSkew`'],
    ['spread: {maxSkew: 2}', 'spread'],
    ['affinity: {over: zone, labels: {}}', 'must have 1 to 8 entries'],
    ['affinity: {over: zone, labels: {__proto__: x, a: b}}', 'the key __proto__ is not allowed'],
    [
      'affinity: {over: zone, labels: {a: b}}, antiAffinity: [{over: zone, labels: {a: b}}]',
      'a=b over zone in affinity and antiAffinity',
    ],
    ['affinity: {over: instance, labels: {a: b}}, antiAffinity: [{over: zone, labels: {a: b}}]', 'a=b over zone'],
    ['perInstance: 1', 'unknown key "perInstance"'],
  ])('refuses the placement rules %s', (rules, why) => {
    const issues = issuesOf(withKeys(`placement: {${rules}}`));
    expect(issues.join('\n')).toContain(why);
  });

  it('refuses what no gang can do, at its place', () => {
    const gang = (rules: string) => issuesOf(withKeys(`labels: {app: a}\ntasks: 3\ngang: true\nplacement: {${rules}}`));
    expect(gang('spread: {over: zone}')).toEqual([expect.stringContaining('placement: spreads a gang over zones')]);
    expect(gang('antiAffinity: {over: zone, labels: {app: a}}')).toEqual([expect.stringContaining('different zones')]);
    const own = 'affinity: {over: zone, labels: {app: a}}, maxPerInstance: 1';
    expect(parse(withKeys(`labels: {app: a}\ntasks: 3\ngang: true\nplacement: {${own}}`)).stages).toHaveLength(1);
  });

  it('takes secrets by name, those of the top in every stage', () => {
    const { stages } = parse(withKeys('secrets: {A: a, B: ssm:b}\nstages: [{name: s, secrets: {B: c}}, {name: t}]'));
    expect(stages.map((s) => s.secrets)).toEqual([
      { A: 'a', B: 'c' },
      { A: 'a', B: 'ssm:b' },
    ]);
    expect(parse(withKeys('')).stages[0]).not.toHaveProperty('secrets');
  });

  it.each([
    ['EBB_AWS_CLI: a', 'EBB_'],
    ['ebb_x: a', 'EBB_'],
    ['__proto__: a', '__proto__'],
    ['A: ../a', 'the name of a secret'],
    ['A: s3:a', 'the name of a secret'],
    ['A: a\n  ENV: a', 'is in `env` as well'],
  ])('refuses the secret %s, at the top and in a stage', (entry, message) => {
    const env = 'env: {ENV: x}';
    const entries = entry.replace('\n ', ',');
    for (const text of [
      withKeys(`${env}\nsecrets: {${entries}}`),
      withKeys(`${env}\nstages: [{name: s, secrets: {${entries}}}]`),
    ]) {
      expect(issuesOf(text)).toEqual([expect.stringContaining(message)]);
    }
  });

  it.each(['/abs', '..', 'a/../b', '../x', '~/x', 'C:\\x', 'a\\..\\b', "''"])('refuses the pattern %s', (glob) => {
    expect(issuesOf(withKeys(`outputs: ["${glob.replaceAll('\\', '\\\\').replaceAll("'", '')}"]`))).toHaveLength(1);
  });

  it.each(['a', 'a/**/*.csv', '..a/b', 'a..b', '{a,b}/[0-9]?.txt', 'out/{index}.json'])(
    'takes the pattern %s',
    (glob) => {
      expect(parse(withKeys(`outputs: '${glob}'`)).stages[0]?.outputs).toEqual([glob]);
    },
  );

  it.each([
    [`inputs: '${'{a,b}'.repeat(22)}'`, 'stands for 4194304 patterns'],
    ["outputs: '{{index}..9}{1..200}'", 'stands for 2000 patterns'],
    ["inputs: ['{1..600}', '{1..600}']", 'at most 1000 patterns together'],
    ["inputs: '!(a)'", 'extended pattern'],
    [`preferences: [${'{prefer: {zones: a}, weight: 0.1},'.repeat(33)}]`, 'at most 32|<=32'],
    ['preferences: [{prefer: {zones: a}}]', 'needs a `weight`, a `slowdown` or both'],
    ['preferences: [{prefer: {zones: a}, slowdown: 1}]', '>1'],
    [`preferences: [${'{prefer: {zones: a}, slowdown: 5},'.repeat(3)}]`, 'multiply to 125, at most 100'],
    [
      `preferences: [${`{prefer: {zones: [${'a*,'.repeat(200)}]}, weight: 0.1},`.repeat(11)}]`,
      'name 2200 zones, types, families and labels',
    ],
  ])('bounds what a cycle and an instance would have to match: %.40s', (keys, why) => {
    expect(issuesOf(withKeys(keys)).join()).toMatch(new RegExp(why));
  });

  it('counts patterns at the top once for each stage, braces written out', () => {
    const stages = (n: number): object => ({
      name: 'a',
      command: 'run',
      outputs: ['{0..999}' + 'x'.repeat(200)],
      stages: Array.from({ length: n }, (_, i) => ({ name: `s${i}`, ...(i === 0 ? {} : { dependsOn: `s${i - 1}` }) })),
    });
    const options = { baseDir: '/srv', defaultOwner: 'ana' };
    expect(normaliseJob(stages(20), options).stages).toHaveLength(20);
    expect(refusal(() => normaliseJob(stages(21), options)).message).toMatch(/of all stages have 4263000 characters/);
  });

  describe('outputs', () => {
    const two = (a: string, b: string, more = ''): string =>
      withKeys(`stages: [{name: a, tasks: 5, outputs: ${a}}, {name: b, tasks: 1, outputs: ${b}${more}}]`);

    it.each([
      [withKeys('tasks: 2', 'outputs: ["ok-{index}", sum.txt]'), 'outputs[1]: each of the 2 tasks of stage main'],
      [withKeys('tasks: 2', "outputs: '{a,b}.txt'"), 'each of the 2 tasks of stage main would write a.txt'],
      [two('"out/{index}"', 'out/4'), 'stages[1].outputs[0]: stages a and b would both write out/4'],
      [two('"x/{index}"', '"./x//{index}"'), 'stages[1].outputs[0]: stages a and b would both write'],
      [
        withKeys('outputs: [all.txt]', 'stages: [{name: a}, {name: b}]'),
        'outputs[0]: stages a and b would both write all.txt',
      ],
      [two('"s3://bkt/{index}"', '"s3://bkt/{index}"', ', workdir: s3://other'), 'would both write s3://bkt/{index}'],
    ])('that several tasks would write at the same time are refused: %#', (text, why) => {
      expect(issuesOf(text).join()).toContain(why);
    });

    it.each([
      withKeys('tasks: 2', 'outputs: ["sum-{index}.txt", logs/, "*.png"]'),
      withKeys('outputs: [sum.txt, sum.txt]'),
      two('"out/{index}"', 'out/5'),
      two('"out/{index}"', 'out/04'),
      two('"out/{index}"', 'out/4', ', dependsOn: a'),
      two('"out/{index}"', 'out/4', ', workdir: other'),
      withKeys('outputs: [all.txt]', 'stages: [{name: a}, {name: b, dependsOn: c}, {name: c, dependsOn: a}]'),
    ])('that cannot meet, or that nobody can know of, are taken: %#', (text) => {
      expect(parse(text).stages.length).toBeGreaterThan(0);
    });
  });

  it('names the circle that stages make', () => {
    const stages =
      'stages:\n- {name: a, dependsOn: b}\n- {name: b, dependsOn: [x, c]}\n- {name: c, dependsOn: b}\n- {name: x}';
    const error = refusal(() => parse(withKeys(stages)));
    expect(error.code).toBe('job-file.cycle');
    expect(error.message).toBe(
      'job.yaml:5:24 stages[1].dependsOn: stages depend on one another in a circle: b -> c -> b',
    );
    expect(refusal(() => parse(withKeys('stages: [{name: a, dependsOn: a}]'))).message).toContain('a -> a');
  });

  it('refuses missing and repeated stages', () => {
    const missing = refusal(() => parse(withKeys('stages: [{name: a, dependsOn: b}, {name: c}]')));
    expect(missing.code).toBe('job-file.dependency');
    expect(missing.message).toContain('there is no stage "b"; the others are: c');
    expect(issuesOf(withKeys('stages: [{name: a}, {name: a}]'))[0]).toContain(
      'stages[1].name: a stage of the name "a"',
    );
  });

  it('wants a command for each stage, and no task count beside stages', () => {
    expect(issuesOf('name: a')).toEqual(['job.yaml:1:1 command: is missing']);
    expect(issuesOf('name: a\nstages: [{name: x, command: y}, {name: z}]')[0]).toContain(
      'stages[1].command: is missing',
    );
    expect(issuesOf(withKeys('tasks: 3', 'stages: [{name: x}]'))[0]).toContain('tasks: belongs into each stage');
  });

  describe('as text', () => {
    it.each([
      ['a key twice', 'name: a\nname: b', 'job.yaml:2:1'],
      ['an unclosed list', 'name: [a', 'job.yaml:1:9'],
      ['a tag', 'name: !secret a', 'job.yaml:1:7'],
      ['a tab for indentation', 'env:\n\tA: 1', 'job.yaml:2:1'],
      ['brackets without end', '['.repeat(100_000), 'job.yaml'],
      ['indicators without end', '- '.repeat(100_000), 'job.yaml'],
      ['questions without end', '? '.repeat(50_000), 'job.yaml'],
    ])('refuses %s', (_, text, at) => {
      const error = refusal(() => parse(text));
      expect(error.code).toBe('job-file.syntax');
      expect(error.facts.issues?.[0]?.at).toBe(at);
    });

    it('refuses aliases that multiply, and takes a few', () => {
      const bomb = ['a: &a [x,x,x,x,x,x,x,x,x,x]'];
      for (let i = 0; i < 8; i++) {
        const [from, to] = ['abcdefghi'[i] ?? '', 'abcdefghi'[i + 1] ?? ''];
        bomb.push(`${to}: &${to} [${Array.from({ length: 10 }, () => `*${from}`).join(',')}]`);
      }
      expect(refusal(() => parse(bomb.join('\n'))).message).toContain('Excessive alias count');
      const spec = parse(
        'name: a\nenv: &e {A: 1}\ncommand: x\nstages: [{name: s, env: *e}, {name: t, env: {<<: *e, B: 2}}]',
      );
      expect(spec.stages.map((s) => s.env)).toEqual([{ A: '1' }, { A: '1', B: '2' }]);
    });

    it('refuses what is too large', () => {
      expect(refusal(() => parse(`name: a # ${'ü'.repeat(600_000)}`)).code).toBe('body-too-large');
      expect(refusal(() => parse('name: aaaaaaa', { maxBytes: 8 })).code).toBe('body-too-large');
    });

    it('reads JSON by its own rules, with places', () => {
      const json = '{\n\t"name": "a",\n\t"command": ["x"],\n\t"tasks": 0\n}';
      expect(issuesOf(json, { path: 'job.json' })[0]).toMatch(/^job\.json:4:11 tasks: /);
      expect(refusal(() => parse('{name: a, command: x}', { path: 'job.json' })).code).toBe('job-file.syntax');
      expect(refusal(() => parse('{"name":"a","name":"b","command":"x"}', { path: 'job.json' })).message).toContain(
        'unique',
      );
      expect(parse('{"name":"a","command":["x"]}', { path: 'x', format: 'json' }).name).toBe('a');
    });

    it.each([
      ['', 'an empty file'],
      [' \n\t\n', 'an empty file'],
      ['# nothing\n', 'comments alone'],
      ['---\n---\n', 'comments alone'],
    ])('calls %j empty', (text, got) => {
      const { code, facts } = refusal(() => parse(text));
      expect([code, facts.what, facts.got, facts.at]).toEqual([
        'job-file.syntax',
        'the job file is empty',
        got,
        'job.yaml',
      ]);
    });

    it('takes several documents as several jobs, and names the place of a fault in any of them', () => {
      const text = '# two jobs\nname: a\ncommand: x\n---\n# nothing here\n---\nname: b\ncommand: y\n---\n';
      expect(parseJobs(text, OPTIONS).map((j) => j.name)).toEqual(['a', 'b']);
      const wrong = refusal(() => parseJobs(text.replace('command: y', 'comand: y'), OPTIONS));
      expect(wrong.facts.issues?.map((i) => i.at)).toContain('job.yaml:8:1 comand');
      expect(refusal(() => parse(text)).facts.got).toBe('2 documents');
    });

    it.each([
      [
        'comments between and directives',
        '%YAML 1.2\n# one\n---\n<a>\n...\n# two\n%YAML 1.2\n---\n<b>\n...\n',
        [4, 10],
      ],
      ['markers with content and without line ends', '--- {name: a, command: x}\n--- {name: b, command: y}', [1, 2]],
      ['a document behind an end marker', '<a>\n...\n<b>\n', [1, 4]],
      ['Windows line ends', '<a>\r\n---\r\n<b>\r\n', [1, 4]],
      [
        'what only looks like markers',
        '<a>\nenv: {X: ---}\nlabels:\n  k: |-\n    a\n    ---\n    b\n---\n#---\n<b>',
        [1, 11],
      ],
    ])('finds the documents and their lines: %s', (_, form, lines) => {
      const text = form.replace('<a>', 'name: a\ncommand: x').replace('<b>', 'name: b\ncommand: y');
      const documents = readDocuments(text, { path: 'f.yaml' });
      expect(documents.map((d) => (d.json as { name: string }).name)).toEqual(['a', 'b']);
      expect(documents.map((d) => Number(d.locate(['name'], true)?.split(':')[1]))).toEqual(lines);
    });

    it('takes many documents, and bounds each and all', () => {
      const many = Array.from({ length: 1500 }, (_, i) => `name: n${i}\ncommand: x\n`);
      expect(parseJobs(many.join('---\n'), OPTIONS)).toHaveLength(1500);
      const wrong = many.with(1200, 'name: x\ncomand: y\n').join('---\n');
      expect(issuesIn(() => parseJobs(wrong, OPTIONS))).toContainEqual(
        expect.stringMatching(/^job\.yaml:3602:1 comand: /),
      );
      const large = refusal(() => parseJobs(`${many[0] ?? ''}---\nname: a # ${'x'.repeat(2 ** 20)}\n`, OPTIONS));
      expect([large.code, large.facts.at]).toEqual(['body-too-large', 'job.yaml:3']);
      expect(refusal(() => parseJobs(' '.repeat(MAX_FILE_BYTES + 1), OPTIONS)).code).toBe('body-too-large');
      expect(refusal(() => parseJobs('--- 1\n'.repeat(100_001), OPTIONS)).code).toBe('job-file.syntax');
    });

    it('takes a job on each line by name, or where the first lines are objects', () => {
      const text = '{"name":"a","command":"x"}\n\n{"name":"b","command":"y"}';
      for (const path of ['j.ndjson', 'j.jsonl', 'standard input']) {
        expect(parseJobs(text, { ...OPTIONS, path }).map((j) => j.name)).toEqual(['a', 'b']);
      }
      const wrong = text.replace('"command":"y"', '"comand":"y"');
      expect(issuesIn(() => parseJobs(wrong, { ...OPTIONS, path: 'j.ndjson' }))).toContainEqual(
        expect.stringMatching(/^j\.ndjson:3:13 comand: /),
      );
      expect(refusal(() => parseJobs('{name: a, command: x}', { ...OPTIONS, path: 'j.ndjson' })).code).toBe(
        'job-file.syntax',
      );
      expect(parseJobs('{name: a,\ncommand: x}', OPTIONS)).toHaveLength(1);
    });

    it.each(['a', '- a', 'null', '1'])('refuses %j: not an object', (text) => {
      expect(refusal(() => parse(text)).code).toBe('job-file.invalid');
    });
  });

  describe('as data', () => {
    const options = { baseDir: null, defaultOwner: 'api' };

    it('wants absolute working directories where there is no folder', () => {
      const error = refusal(() => normaliseJob({ name: 'a', command: 'x', workdir: 'sub' }, options));
      expect(error.message).toBe(
        'workdir: must be an absolute path or s3://bucket/folder, or left out: then the job has a folder of its own; got "sub"',
      );
      expect(normaliseJob({ name: 'a', command: 'x' }, options).stages[0]?.workdir).toBe(OWN_FOLDER);
      expect(normaliseJob({ name: 'a', command: 'x', workdir: '/w/./v' }, options).stages[0]?.workdir).toBe('/w/v');
    });

    it('takes a folder in S3 as it is', () => {
      const at = (workdir: string) => () =>
        normaliseJob({ name: 'a', command: 'x', workdir }, options).stages[0]?.workdir;
      expect(at('s3://my-bucket/a/b/')()).toBe('s3://my-bucket/a/b');
      expect(at('s3://my-bucket')()).toBe('s3://my-bucket');
      for (const wrong of ['s3:/my-bucket/a', 's3://My_Bucket/a', 's3://my-bucket/../b', 'S3://my-bucket/a']) {
        expect(refusal(at(wrong)).message).toContain('a URI such as s3://bucket/folder');
      }
    });

    it('refuses __proto__ wherever it stands', () => {
      for (const text of [
        '{"name":"a","command":"x","__proto__":{"gang":true}}',
        '{"name":"a","command":"x","labels":{"__proto__":"y"}}',
        '{"name":"a","command":"x","env":{"__proto__":"y"}}',
      ]) {
        const error = refusal(() => normaliseJob(JSON.parse(text), { baseDir: '/w', defaultOwner: 'o' }));
        expect(error.message).toContain('__proto__');
      }
    });
  });

  it('describes each key in the JSON Schema', () => {
    const undescribed: string[] = [];
    const visit = (schema: unknown, path: string): void => {
      const {
        properties = {},
        items,
        anyOf = [],
      } = schema as { properties?: Record<string, object>; items?: object; anyOf?: object[] };
      for (const [key, value] of Object.entries(properties)) {
        if (!('description' in value)) undescribed.push(`${path}.${key}`);
        visit(value, `${path}.${key}`);
      }
      if (items !== undefined) visit(items, `${path}[]`);
      for (const option of anyOf) visit(option, path);
    };
    visit(jobFileJsonSchema(), '');
    expect(undescribed).toEqual([]);
    expect(jobFileJsonSchema()).toMatchObject({ type: 'object', required: ['name'], additionalProperties: false });
  });

  it('has its schema in the repository as it is', () => {
    const path = join(import.meta.dirname, '../../../../docs/reference/job-file.schema.json');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(jobFileJsonSchema());
  });

  it('replaces the index', () => {
    expect(expandIndex('a{index}-{index} {Index} {{index}}', 7)).toBe('a7-7 {Index} {7}');
  });
});

describe('data nested deeper than the stack goes', () => {
  const nested = (depth: number, wrap: (inner: unknown) => unknown): unknown => {
    let value: unknown = 1;
    for (let i = 0; i < depth; i++) value = wrap(value);
    return value;
  };
  const inArrays = nested(100_000, (inner) => [inner]);
  const inObjects = nested(100_000, (a) => ({ a }));

  it.each<[string, unknown]>([
    ['command', { name: 'a', command: inArrays }],
    ['env', { name: 'a', command: 'run', env: inObjects }],
    ['nope', { name: 'a', command: 'run', nope: inObjects }],
    ['deadline', { name: 'a', command: 'run', deadline: inObjects }],
  ])('is refused with a place at %s, its beginning shown', (key, json) => {
    const { code, facts } = refusal(() => normaliseJob(json, { baseDir: '/', defaultOwner: 'ana' }));
    expect(code).toBe('job-file.invalid');
    expect(facts.issues?.map((i) => `${i.at}: ${i.message}`).join()).toContain(key);
  });

  it('is refused as a whole', () => {
    expect(refusal(() => normaliseJob(inArrays, { baseDir: '/', defaultOwner: 'ana' })).code).toBe('job-file.invalid');
  });
});

describe('the image of a stage', () => {
  const of = (text: string): (string | undefined)[] => parse(text).stages.map((s) => s.image);
  const rest = 'name: a\nclass: best-effort\nworkdir: /tmp\ncommand: ls\n';

  it('is its own, else that of the top, else none: then it is the deployment that says', () => {
    const stages = 'stages:\n  - name: one\n    image: ghcr.io/me/tool:1.2\n  - name: two\n';
    expect(of(`${rest}image: python:3.13-slim\n${stages}`)).toEqual(['ghcr.io/me/tool:1.2', 'python:3.13-slim']);
    expect(of(`${rest}${stages}`)).toEqual(['ghcr.io/me/tool:1.2', undefined]);
  });

  it('is refused when it cannot be one', () => {
    expect(() => of(`${rest}image: two words\n`)).toThrow(EbbError);
  });
});
