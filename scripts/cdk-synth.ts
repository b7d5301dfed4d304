import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const NO_NETWORK = pathToFileURL(join(ROOT, 'scripts/no-network.mjs')).href;

export interface Synthesised {
  readonly status: number | null;
  readonly stderr: string;
  /** Network access that its processes tried. */
  readonly tried: readonly string[];
}

/**
 * `cdk synth` as a user types it, in a process without network, credentials, home and environment, except the path to
 * Node. `folder` must exist and gets the templates.
 */
export function cdkSynth(folder: string, args: readonly string[] = []): Synthesised {
  const tried = join(folder, 'tried');
  // No folder can be made below a file, by any user.
  const noFolder = join(folder, 'file');
  writeFileSync(noFolder, '');
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules/aws-cdk/bin/cdk'), 'synth', '--quiet', '--output', join(folder, 'cdk.out'), ...args],
    {
      cwd: ROOT,
      encoding: 'utf8',
      env: {
        PATH: dirname(process.execPath),
        HOME: join(noFolder, 'home'),
        NODE_OPTIONS: `--import=${NO_NETWORK}`,
        EBB_TRIED: tried,
      },
    },
  );
  return { status, stderr, tried: existsSync(tried) ? readFileSync(tried, 'utf8').trim().split('\n') : [] };
}
