import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseServices } from '../../../../lib/domain/service-file/service-file.ts';
import { stringify } from 'yaml';
import { normaliseJob, parseJobFile } from '../../../../lib/domain/job-file/job-file.ts';
import type { JobSpec } from '../../../../lib/domain/job.ts';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import { raw } from '../../../../lib/kernel/units.ts';

const SEED = 20261121;
const OPTIONS = { baseDir: '/base', defaultOwner: 'ana' };
const TEXT = { ...OPTIONS, path: 'job.yaml' };

/** True when the work is done or refused with an EbbError that says what and where; anything else is thrown on. */
function isAccepted(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (!(error instanceof EbbError) || error.code === 'internal') throw error;
    expect(error.message).not.toBe('');
    return false;
  }
}

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,20}$/);
const durationText = fc.oneof(
  fc.integer({ min: 1, max: 100_000 }),
  fc
    .tuple(fc.integer({ min: 1, max: 99 }), fc.constantFrom('s', ' min', 'h', ' days'))
    .map(([n, unit]) => `${n}${unit}`),
);
const constraints = fc.record(
  {
    arch: fc.constantFrom('arm64', 'x86_64'),
    families: fc.subarray(['c5', 'm5*', 'r6g']),
    minGeneration: fc.integer({ min: 1, max: 9 }),
  },
  { requiredKeys: [] },
);
const shared = {
  env: fc.dictionary(
    fc.stringMatching(/^[A-Z][A-Z0-9_]{0,8}$/),
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean()),
    { maxKeys: 4 },
  ),
  resources: fc.record(
    {
      cpu: fc.oneof(fc.integer({ min: 1, max: 64 }), fc.constant('500m')),
      memory: fc.constantFrom('1GiB', '300MB'),
      gpu: fc.integer({ min: 0, max: 4 }),
    },
    { requiredKeys: [] },
  ),
  retries: fc.integer({ min: 0, max: 10 }),
  timeout: durationText,
  constraints,
  checkpoint: fc.record({ every: durationText, grace: fc.integer({ min: 0, max: 120 }) }, { requiredKeys: [] }),
  preferences: fc.array(fc.record({ prefer: constraints, weight: fc.double({ min: 0.01, max: 1, noNaN: true }) }), {
    maxLength: 2,
  }),
};
const command = fc.oneof(
  fc.stringMatching(/^[a-z {}"':#|>-]{1,20}$/),
  fc.array(fc.stringMatching(/^[a-z{}\n:-]{1,8}$/), { minLength: 1, maxLength: 3 }),
);
/** Stages depend on earlier ones only: never in a circle. */
const stages = fc.uniqueArray(name, { minLength: 1, maxLength: 5 }).chain((names) =>
  fc.tuple(
    ...names.map((n, i) =>
      fc.record(
        {
          name: fc.constant(n),
          dependsOn: fc.subarray(names.slice(0, i)),
          tasks: fc.integer({ min: 1, max: 10_000 }),
          gang: fc.boolean(),
          command,
          ...shared,
        },
        { requiredKeys: ['name', 'command'] },
      ),
    ),
  ),
);
const jobFile = fc.record(
  {
    name,
    owner: name,
    deadline: durationText,
    after: fc.array(name, { maxLength: 3 }),
    maxCost: fc.double({ min: 0.01, max: 1e6, noNaN: true }),
    stages,
    ...shared,
  },
  { requiredKeys: ['name', 'stages'] },
);

/** A specification written as a job file again, by hand: units as plain numbers of the base unit. */
const written = (spec: JobSpec): unknown => ({
  name: spec.name,
  owner: spec.owner,
  class: spec.class,
  ...(spec.deadline === null ? {} : { deadline: 'afterS' in spec.deadline ? spec.deadline.afterS : null }),
  after: spec.after,
  ...(spec.maxCostUsd === null ? {} : { maxCost: spec.maxCostUsd }),
  stages: spec.stages.map(({ timeoutS, expectedRuntimeS: _, checkpoint, resources, ...s }) => ({
    ...s,
    resources: {
      cpu: `${raw(resources.cpu)}m`,
      memory: `${raw(resources.memory)}MiB`,
      gpu: resources.gpus,
      disk: `${raw(resources.disk)}MiB`,
    },
    ...(timeoutS === null ? {} : { timeout: timeoutS }),
    ...(checkpoint === null
      ? {}
      : {
          checkpoint: {
            signal: checkpoint.signal,
            grace: checkpoint.graceS,
            ...(checkpoint.everyS === null ? {} : { every: checkpoint.everyS }),
          },
        }),
  })),
});

describe('job file, properties', () => {
  it('answers any JSON value with a specification or an EbbError', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (json) => {
        isAccepted(() => normaliseJob(json, OPTIONS));
      }),
      { seed: SEED, numRuns: 500 },
    );
  });

  it('answers valid files with one value replaced, or a key added, likewise', () => {
    let accepted = 0;
    fc.assert(
      fc.property(jobFile, fc.jsonValue({ maxDepth: 2 }), fc.nat(), fc.boolean(), (file, value, at, isTop) => {
        const [stage] = file.stages as Record<string, unknown>[];
        const target = (isTop ? file : stage) as Record<string, unknown>;
        const keys = [...Object.keys(target), 'command', 'deadline', 'value', 'labels', 'surprise'];
        target[keys[at % keys.length] ?? ''] = value;
        if (isAccepted(() => normaliseJob(file, OPTIONS))) accepted++;
      }),
      { seed: SEED, numRuns: 400 },
    );
    // Not vacuous: some replacements are valid, most are not.
    expect(accepted).toBeGreaterThan(5);
    expect(accepted).toBeLessThan(320);
  });

  it('answers any text with a specification or an EbbError', () => {
    const yamlish = fc.array(
      fc.constantFrom(
        'a',
        ':',
        ' ',
        '\n',
        '- ',
        '[',
        ']',
        '{',
        '}',
        '&a',
        '*a',
        '!',
        '|',
        '>',
        '"',
        "'",
        '#',
        '?',
        '<<',
        '---',
        '\t',
        '%',
        '@',
        ',',
      ),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          yamlish.map((parts) => parts.join('')),
        ),
        fc.constantFrom('yaml' as const, 'json' as const),
        (text, format) => {
          isAccepted(() => parseJobFile(text, { ...TEXT, format }));
        },
      ),
      { seed: SEED, numRuns: 800 },
    );
  });

  it('reads the same from data, from YAML and from JSON', () => {
    fc.assert(
      fc.property(jobFile, (file) => {
        const spec = normaliseJob(file, OPTIONS);
        expect(parseJobFile(stringify(file), TEXT)).toEqual(spec);
        expect(parseJobFile(JSON.stringify(file, null, '\t'), { ...TEXT, path: 'job.json' })).toEqual(spec);
      }),
      { seed: SEED, numRuns: 60 },
    );
  });

  it('round trips: a specification written as a file again gives itself', () => {
    fc.assert(
      fc.property(jobFile, (file) => {
        const spec = normaliseJob(file, OPTIONS);
        expect(normaliseJob(JSON.parse(JSON.stringify(written(spec))), OPTIONS)).toEqual(spec);
      }),
      { seed: SEED, numRuns: 60 },
    );
  });

  it('parses every example', () => {
    const folder = join(import.meta.dirname, '../../../../examples');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((f) =>
      /\.(ya?ml|job\.json)$/.test(f),
    );
    for (const file of files) {
      const path = join(folder, file);
      const text = readFileSync(path, 'utf8');
      const options = { path, baseDir: dirname(path), defaultOwner: 'ana' };
      if (text.includes('class: service')) {
        expect(parseServices(text, { ...options, scalings: ['reactive'] })).toHaveLength(1);
      } else expect(parseJobFile(text, options).stages.length).toBeGreaterThan(0);
    }
  });
});
