// Mutation tests: what all rooms have in common. scripts/mutation.ts adds files to mutate, tests and reports of a room.
/** @type {NonNullable<ConstructorParameters<typeof import('@stryker-mutator/core').Stryker>[0]>} */
export default {
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner'],
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  jest: {
    configFile: 'jest.config.mjs',
    // The environment's path is relative, because `<rootDir>` stays unresolved here (stryker-js#6108).
    config: { testEnvironment: './test/support/environment.mjs', globalTeardown: null },
    enableFindRelatedTests: false,
  },
  coverageAnalysis: 'perTest',
  // A static mutant needs its own process and all tests: minutes for constants and tables.
  ignoreStatic: true,
  // Strings are reasons for people, and names of rows. Tests name those that decide something.
  mutator: { excludedMutations: ['StringLiteral'] },
  // Stryker rewrites tsconfig.json through an API that TypeScript 7 does not have. The tests do not read that file.
  tsconfigFile: 'none',
  ignorePatterns: ['/bench', '/bin', '/dist', '/docs', '/examples', '/lambdas', '/models', '/scripts', '/site', '.*'],
  tempDirName: '.cache/mutation/copies',
  incremental: true,
  dryRunTimeoutMinutes: 2,
  // Each run of jest leaves modules behind.
  maxTestRunnerReuse: 60,
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
};
