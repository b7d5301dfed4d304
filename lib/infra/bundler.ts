/**
 * Runs esbuild, in a process of its own because synthesis must wait for it and esbuild takes plug-ins only where nobody
 * waits: `node bundler.ts <build options as JSON>` prints the build's metafile.
 */
import { readFileSync } from 'node:fs';
import { build, type BuildOptions, type Plugin } from 'esbuild';

/**
 * The SDK describes the shapes of a service's calls in tables like `{ [_iT]: _iT }` with `const _iT = "instanceType"`.
 * A computed key may have a side effect, for all that esbuild knows, so it would keep every shape of EC2, 800 kB that
 * take a third of a cold start. With the names written out it keeps those that are used, 50 kB.
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
    // Written out, that one would set the prototype.
    return text === undefined || text === '"__proto__"' ? key : `${text}:`;
  });
}

const options = JSON.parse(process.argv[2] ?? '') as BuildOptions;
const { metafile } = await build({ ...options, metafile: true, plugins: [SHAPES] });
process.stdout.write(JSON.stringify(metafile));
