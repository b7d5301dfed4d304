/**
 * The dependency directions of the architecture, as errors (docs/architecture.md draws them):
 * kernel <- domain <- {estimate market value plan acquire place} <- {ports cycle} <- {api} <- {local sim aws} <- {lambdas cli bin}
 */
const STAGES = ['estimate', 'market', 'value', 'lineage', 'plan', 'acquire', 'place', 'share', 'shift'];
const stages = STAGES.join('|');

/** @param {string} name @param {string} from @param {string[]} allowed folders under lib/ besides its own */
const only = (name, from, allowed) => ({
  name,
  severity: 'error',
  from: { path: `^lib/${from}/` },
  to: { path: '^(lib|lambdas|bin|test|bench|scripts)/', pathNot: `^lib/(${[from, ...allowed].join('|')})/` },
});

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    only('kernel-imports-nothing', 'kernel', []),
    only('domain-imports-kernel', 'domain', ['kernel']),
    // Sibling stages share types through lib/domain, never each other.
    ...STAGES.map((stage) => only(`${stage}-is-a-stage`, stage, ['kernel', 'domain'])),
    // A port may name a stage's types; it holds no logic.
    only('ports-are-interfaces', 'ports', ['kernel', 'domain', ...STAGES]),
    only('cycle-knows-no-driver', 'cycle', ['kernel', 'domain', 'ports', ...STAGES]),
    only('api-stands-on-ports', 'api', ['kernel', 'domain', 'ports', 'cycle', ...STAGES]),
    only('local-is-a-driver', 'local', ['kernel', 'domain', 'ports', 'cycle', 'api', 'models', ...STAGES]),
    only('models-are-opened-and-asked', 'models', ['kernel', 'domain']),
    only('sim-is-a-driver', 'sim', ['kernel', 'domain', 'ports', 'cycle', ...STAGES]),
    only('aws-is-a-driver', 'aws', ['kernel', 'domain', 'ports', 'cycle', 'api', ...STAGES]),
    {
      name: 'cli-is-on-top',
      severity: 'error',
      from: { path: '^lib/(?!cli/)' },
      to: { path: '^(lib/cli|lambdas|bin)/' },
    },
    {
      name: 'only-infra-knows-the-cdk',
      severity: 'error',
      from: { path: '^(lib|bin|lambdas)/', pathNot: '^(lib/infra/|bin/app\\.ts)' },
      to: { path: '^node_modules/(aws-cdk-lib|constructs|esbuild)/' },
    },
    {
      name: 'pure-core-has-no-node',
      comment: 'The pure core decides; it reads no file, process or network.',
      severity: 'error',
      from: { path: `^lib/(kernel|domain|${stages}|cycle|ports)/` },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'product-does-not-import-tests',
      severity: 'error',
      from: { path: '^(lib|bin|lambdas)/' },
      to: { path: '^(test|bench|scripts)/' },
    },
    {
      name: 'no-dev-dependency-in-product',
      severity: 'error',
      comment:
        'Who deploys brings the CDK and esbuild, who has a trained model ONNX Runtime: peers of the package, and development dependencies here.',
      from: { path: '^(lib|bin|lambdas)/' },
      to: {
        dependencyTypes: ['npm-dev'],
        dependencyTypesNot: ['type-only'],
        pathNot: '^node_modules/(aws-cdk-lib|constructs|esbuild|onnxruntime-node)/',
      },
    },
    // That every import resolves is the compiler's to check: it also knows packages that only have types.
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    parser: 'swc',
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.mjs', '.js', '.json'],
    },
  },
};
