// `npm run build`: checks the types (`--unchecked` skips that), then writes dist/, which the package runs. It has
// compiled sources, the declarations of `import 'ebbtide'`, and the code of the Lambdas. So deploying from the package
// needs neither TypeScript nor esbuild.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureInstalled, projectEnv, projectNode, ROOT, run } from './toolchain.mjs';

const TSC = 'node_modules/typescript/bin/tsc';

await ensureInstalled();
const node = projectNode();
const env = projectEnv(node);

if (!process.argv.includes('--unchecked')) await step(TSC, '-p', 'tsconfig.build.json', '--noEmit');
const compile = "import { compile } from './bin/compile.mjs'; console.log(`dist: ${compile(process.argv[1])} files`);";
await step('--disable-warning=ExperimentalWarning', '--input-type=module', '-e', compile, ROOT);
await step('--disable-warning=ExperimentalWarning', 'scripts/prebuild.ts');
await step(TSC, '-p', 'tsconfig.types.json');
console.log(`dist: ${await publish()} declarations`);

async function step(...args) {
  const code = await run(node, args, { env });
  if (code !== 0) process.exit(code);
}

/** Declarations import one another by `.js`, as the compiled files do. */
async function publish() {
  const { SPECIFIER } = await import('../bin/compile.mjs');
  const dist = join(ROOT, 'dist');
  const files = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith('.d.ts'));
  for (const file of files) {
    const text = readFileSync(join(dist, file), 'utf8');
    writeFileSync(join(dist, file), text.replace(SPECIFIER, '$1$2.js$1'));
  }
  return files.length;
}
