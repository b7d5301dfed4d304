// Mutation tests: what all rooms have in common. scripts/mutation.ts adds files to mutate, tests and reports of a room.
/** @type {NonNullable<ConstructorParameters<typeof import('@stryker-mutator/core').Stryker>[0]>} */
export default {
  plugins: ['./scripts/mutation/runner.ts'],
  coverageAnalysis: 'perTest',
  // A static mutant needs its own process and all tests: minutes for constants and tables.
  ignoreStatic: true,
  // Strings are reasons for people, and names of rows. Tests name those that decide something.
  mutator: { excludedMutations: ['StringLiteral'] },
  // Stryker rewrites tsconfig.json through an API that TypeScript 7 does not have. The tests do not read that file.
  tsconfigFile: 'none',
  // Properties of plans are tested on scenarios of bench/load.
  ignorePatterns: [
    '/bench/*',
    '!/bench/load',
    ...['/bin', '/dist', '/docs', '/examples', '/lambdas', '/models', '/scripts', '/site', '.*'],
  ],
  tempDirName: '.cache/mutation/copies',
  incremental: true,
  dryRunTimeoutMinutes: 2,
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
};
