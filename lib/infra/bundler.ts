/**
 * Run of esbuild in a separate process: synthesis is synchronous, and esbuild accepts plug-ins only in its asynchronous
 * API. `node bundler.ts <build options as JSON>` prints the build's metafile.
 */
import { readFileSync } from 'node:fs';
import { build, type BuildOptions, type Plugin } from 'esbuild';

/**
 * Plug-in against unused SDK shapes. The SDK describes a service's calls in tables like `{ [_iT]: _iT }` with `const
 * _iT = "instanceType"`. A computed key may have side effects, so esbuild would keep all shapes of EC2: 800 kB, a third
 * of a cold start. With literal names it keeps the used ones, 50 kB.
 */
const SHAPES: Plugin = {
  name: 'shapes',
  setup: (into) => {
    into.onLoad({ filter: /[\\/]@aws-sdk[\\/].*[\\/]schemas_\d+\.js$/ }, ({ path }) => ({
      contents: withNames(readFileSync(path, 'utf8')),
      loader: 'js',
    }));
  },
};

function withNames(source: string): string {
  const names = new Map([...source.matchAll(/^const (_\w+) = ("\w+");$/gm)].map(([, name = '', text]) => [name, text]));
  return source.replace(/\[(_\w+)\]:/g, (key, name: string) => {
    const text = names.get(name);
    // Exception: written out, this name would set the prototype.
    return text === undefined || text === '"__proto__"' ? key : `${text}:`;
  });
}

const options = JSON.parse(process.argv[2] ?? '') as BuildOptions;
const { metafile } = await build({ ...options, metafile: true, plugins: [SHAPES] });
process.stdout.write(JSON.stringify(metafile));
