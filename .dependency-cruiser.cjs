/**
 * The dependency directions of the architecture, as errors (docs/architecture.md draws them):
 * kernel <- domain <- {market models lineage} <- policy <- stages <- {ports cycle} <- {workload report} <- drivers <-
 * api <- {lambdas cli bin}.
 */
/** Each room with the rooms that it may import from, besides itself. A room inherits nothing. */
const ROOMS = {
  kernel: [],
  domain: ['kernel'],
  market: ['kernel', 'domain'],
  models: ['kernel', 'domain'],
  lineage: ['kernel', 'domain'],
  policy: ['kernel', 'domain', 'market', 'lineage'],
  stages: ['kernel', 'domain', 'market', 'lineage', 'policy'],
  ports: ['kernel', 'domain'],
  cycle: ['kernel', 'domain', 'market', 'lineage', 'policy', 'stages', 'ports'],
  workload: ['kernel', 'domain', 'market', 'stages'],
  report: ['kernel', 'domain', 'market', 'policy'],
  drivers: [
    'kernel',
    'domain',
    'market',
    'models',
    'lineage',
    'policy',
    'stages',
    'ports',
    'cycle',
    'workload',
    'report',
  ],
  api: ['kernel', 'domain', 'market', 'policy', 'stages', 'ports', 'cycle', 'drivers'],
  // Names and checks of settings; no logic.
  infra: ['kernel', 'domain', 'market', 'stages', 'drivers/aws', 'api'],
  cli: [
    'kernel',
    'domain',
    'market',
    'models',
    'policy',
    'stages',
    'ports',
    'cycle',
    'workload',
    'report',
    'drivers',
    'api',
    'infra',
  ],
};
/** Everything of this repository that code may be imported from; `ebbtide` is the package under its own name. */
const OURS = '^(lib|lambdas|bin|test|bench|scripts|examples|docs|models|dist|ebbtide)(/|$)';
/** Drivers do not know one another; each may use the solver's and what the stores share. */
const DRIVERS = ['aws', 'local', 'sim', 'solver', 'stores'];
/** Stages share types through lib/policy and lib/domain, never each other; the list of presets knows all. */
const STAGES = ['estimate', 'value', 'appraise', 'plan', 'move', 'order', 'place', 'queue', 'speculate', 'scale'];

/** The API in one process is made of the functions that AWS runs. */
const EXCEPT = { cli: ['^lambdas/(api|intake)/handler\\.ts$'] };

const only = (room, allowed) => ({
  name: `${room}-imports`,
  comment: `lib/${room} may import from: ${[room, ...allowed].join(', ')}`,
  severity: 'error',
  from: { path: `^lib/${room}/` },
  to: { path: OURS, pathNot: [`^lib/(${[room, ...allowed].join('|')})/`, ...(EXCEPT[room] ?? [])] },
});

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Types count.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    ...Object.entries(ROOMS).map(([room, allowed]) => only(room, allowed)),
    {
      name: 'rooms-are-listed',
      comment: 'A new room of lib needs a line in ROOMS.',
      severity: 'error',
      from: { path: '^lib/', pathNot: `^lib/(${Object.keys(ROOMS).join('|')})/` },
      to: { path: OURS },
    },
    ...STAGES.map((stage) => ({
      name: `${stage}-is-a-stage`,
      severity: 'error',
      from: { path: `^lib/stages/${stage}/` },
      to: { path: '^lib/stages/', pathNot: `^lib/stages/${stage}/` },
    })),
    ...DRIVERS.map((driver) => ({
      name: `${driver}-is-a-driver`,
      severity: 'error',
      from: { path: `^lib/drivers/${driver}/` },
      to: { path: '^lib/drivers/', pathNot: `^lib/drivers/(${driver}|solver|stores)/|^lib/drivers/[^/]+$` },
    })),
    {
      name: 'drivers-are-listed',
      comment: 'A new driver needs a place in DRIVERS; files beside the drivers know none of them.',
      severity: 'error',
      from: { path: '^lib/drivers/', pathNot: `^lib/drivers/(${DRIVERS.join('|')})/` },
      to: { path: '^lib/drivers/.+/' },
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
      from: { path: '^lib/(kernel|domain|market|lineage|policy|stages|ports|cycle)/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'product-does-not-import-tests',
      severity: 'error',
      from: { path: '^(lib|bin|lambdas)/' },
      to: { path: '^(test|bench|scripts)/' },
    },
    {
      name: 'bench-and-scripts-stand-alone',
      severity: 'error',
      from: { path: '^(bench|scripts)/' },
      to: { path: '^test/' },
    },
    {
      name: 'lambdas-are-on-aws',
      severity: 'error',
      from: { path: '^lambdas/' },
      to: { path: '^lib/(drivers/(local|sim)|cli|infra|report|workload)/', reachable: true },
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
