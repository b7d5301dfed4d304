import { resolve } from 'node:path';
import { backUp, restore as restoreFrom } from '../../drivers/local/engine/backup.ts';
import { refuseElsewhere, type Action } from '../context.ts';
import { plural } from '../format.ts';
import { json, type Output } from '../output.ts';
import { resumeCommand } from '../unfinished.ts';
import type { BackupOptions, RestoreOptions } from '../flags/upkeep-flags.ts';

const ON_AWS = 'a deployment on AWS is backed up by DynamoDB: see docs/deploy.md, "Restore"';

export const backup: Action<BackupOptions> = async ({ world, output, json: asJson }, [file = ''], options) => {
  refuseElsewhere(options, ON_AWS);
  const path = resolve(world.cwd, file);
  const saved = backUp(resolve(world.cwd, options.dir), path, { logs: options.logs === true });
  if (asJson) json(output, { file: path, ...saved });
  else output.line(`saved ${options.dir} to ${file}: the database and ${plural(saved.files, 'file')}`);
  sayMarket(output, saved.market);
  return 0;
};

export const restore: Action<RestoreOptions> = async ({ world, output, json: asJson }, [file = ''], options) => {
  refuseElsewhere(options, ON_AWS);
  const dir = resolve(world.cwd, options.dir);
  const restored = await restoreFrom(resolve(world.cwd, file), dir);
  if (asJson) json(output, { dir, ...restored });
  else {
    output.line(`restored ${options.dir} with ${plural(restored.unfinishedJobs, 'unfinished job')}`);
    if (restored.unfinishedJobs > 0) output.note(`go on with: ${resumeCommand(options.dir, world.env)}`);
  }
  sayMarket(output, restored.market);
  return 0;
};

function sayMarket(output: Output, market: string | null): void {
  if (market !== null)
    output.note(`the market is a file of its own, which the engine needs at the same place: ${market}`);
}
