import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const NO_NETWORK = pathToFileURL(join(ROOT, 'scripts/no-network.mjs')).href;

export interface Synthesised {
  readonly status: number | null;
  readonly stderr: string;
  /** What a process of it wanted of the network. */
  readonly tried: readonly string[];
}

/**
 * `cdk synth`, as a user types it, in a process that has no network, no credentials, nothing in its environment but the
 * way to Node, and no home that it could write to. `folder` gets the templates, and must be there.
 */
export function cdkSynth(folder: string, args: readonly string[] = []): Synthesised {
  const tried = join(folder, 'tried');
  // Below a file nothing can be made, whoever one is.
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
