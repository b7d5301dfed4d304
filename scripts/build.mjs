// `npm run build`: checks the types, then writes dist/ (what the package runs).
import { ensureInstalled, projectEnv, projectNode, ROOT, run } from './toolchain.mjs';

await ensureInstalled();
const node = projectNode();
const env = projectEnv(node);
const types = await run(node, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--noEmit'], { env });
if (types !== 0) process.exit(types);
const compile = "import { compile } from './bin/compile.mjs'; console.log(`dist: ${compile(process.argv[1])} files`);";
process.exitCode = await run(
  node,
  ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', compile, ROOT],
  { env },
);
