import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/** The pure core: decides from a snapshot and never reads the world. Time, randomness and configuration come in as values. */
const PURE = [
  'kernel',
  'domain',
  'estimate',
  'market',
  'value',
  'lineage',
  'plan',
  'acquire',
  'place',
  'share',
  'shift',
  'cycle',
];

const READS_THE_WORLD = [
  {
    selector: "CallExpression[callee.object.name='Date'][callee.property.name='now']",
    message: 'The pure core reads no clock: take the time from the snapshot or a Clock.',
  },
  {
    selector: "NewExpression[callee.name='Date'][arguments.length=0]",
    message: 'The pure core reads no clock: take the time from the snapshot or a Clock.',
  },
  {
    selector: "CallExpression[callee.object.name='Math'][callee.property.name='random']",
    message: 'The pure core draws from named seeded streams only (lib/kernel/random.ts).',
  },
  {
    selector: "CallExpression[callee.object.name='performance'][callee.property.name='now']",
    message: 'The pure core reads no clock: take the time from the snapshot or a Clock.',
  },
  {
    selector: "CallExpression[callee.object.name='crypto'][callee.property.name=/^random/]",
    message: 'The pure core draws from named seeded streams only (lib/kernel/random.ts).',
  },
];

const WORLD_GLOBALS = ['process', 'setTimeout', 'setInterval', 'setImmediate', 'fetch', 'console', 'Buffer'].map(
  (name) => ({
    name,
    message: 'The pure core does not touch the process, timers or the network: give it a port.',
  }),
);

export default tseslint.config(
  { ignores: ['dist/**', 'cdk.out/**', 'out/**', 'coverage/**', 'node_modules/**', '.ebb/**', '.cache/**'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: false },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/prefer-readonly': 'error',
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      // Nullable strings, numbers and booleans must say what they mean by absent.
      '@typescript-eslint/strict-boolean-expressions': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', ignoreRestSiblings: true, varsIgnorePattern: '^_' },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // An async function that answers an async interface need not await anything itself.
      '@typescript-eslint/require-await': 'off',
      eqeqeq: ['error', 'always'],
      'max-params': ['error', 4],
      'no-restricted-syntax': [
        'error',
        {
          selector: 'TSEnumDeclaration',
          message: 'Node runs these files by stripping types: enums cannot be stripped.',
        },
      ],
    },
  },
  {
    files: PURE.map((folder) => `lib/${folder}/**/*.ts`),
    rules: {
      'no-restricted-syntax': ['error', ...READS_THE_WORLD],
      'no-restricted-globals': ['error', ...WORLD_GLOBALS],
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['node:*', 'fs', 'fs/*', 'path', 'os', 'child_process', 'crypto'],
              message: 'The pure core has no file, process or network.',
            },
            { group: ['@aws-sdk/*'], message: 'The pure core knows no SDK.' },
          ],
        },
      ],
    },
  },
  {
    files: ['**/*.test.ts', 'test/**/*.ts'],
    rules: {
      // jest's matchers are typed with `any` in places where the test itself says what it expects.
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
    },
  },
  {
    files: ['**/*.mjs', '**/*.cjs'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
        setImmediate: 'readonly',
        URL: 'readonly',
        Buffer: 'readonly',
        module: 'writable',
      },
    },
  },
);
