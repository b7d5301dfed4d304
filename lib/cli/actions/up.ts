import type { UpOptions } from '../commands/running.ts';
import { refuseElsewhere, type Action } from '../context.ts';
import { embeddedOptions, NOT_BEGUN } from '../engine-options.ts';
import { EbbError } from '../../kernel/errors.ts';
import { json } from '../output.ts';
import { goingOn, unfinishedJobs } from '../unfinished.ts';
import { endedByStop, onStopRequest, SIGNAL_EXIT, type StopSignal } from '../signals.ts';

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/**
 * `ebb up`: the engine until it is told to stop. Unlike `run` it leaves a clean stop resumable without a word: tasks
 * save, instances go back, and the next `up` on the same folder goes on.
 */
export const up: Action<UpOptions> = async ({ world, output, json: asJson, token }, _args, options) => {
  refuseElsewhere(
    options,
    'say where it is to listen by --bind and --port; AWS gets a deployment by `npx cdk deploy` (docs/deploy.md)',
  );
  if (!LOOPBACK.has(options.bind) && (token === null || token === '')) {
    throw new EbbError('usage', {
      what: 'anybody who reaches this address could run programs here',
      got: `--bind ${options.bind} without a token`,
      allowed: 'loopback (127.0.0.1), or another address with --token or EBB_TOKEN',
      next: 'add --token, e.g. --token "$(openssl rand -hex 16)"',
    });
  }
  const { openEmbedded } = await import('../compose.ts');
  const engine = await endedByStop(output, NOT_BEGUN, () => openEmbedded(embeddedOptions(options, world.cwd)));
  let unlisten = (): void => undefined;
  try {
    const url = await engine.listen({ bind: options.bind, port: options.port, token });
    const open = await unfinishedJobs(engine.client);
    if (open.length > 0) output.note(await goingOn(engine.client, open.length, options.dir));
    await engine.start();
    if (asJson) json(output, { url, dir: options.dir, pid: process.pid });
    else output.line(`Ebbtide listens on ${url} (Ctrl-C to stop)`);
    const stopped = new Promise<StopSignal>((resolve) => {
      unlisten = onStopRequest((count, signal) => {
        if (count === 1) {
          output.note('asking the tasks to save their state (Ctrl-C again stops at once) ...');
          engine.stop('checkpoint').then(
            () => resolve(signal),
            () => resolve(signal),
          );
          return;
        }
        const exit = (): never => process.exit(SIGNAL_EXIT[signal]);
        engine.stop('at-once').then(exit, exit);
      });
    });
    await Promise.race([stopped, engine.failed]);
    output.note('stopped; nothing is left running. `ebb up` on the same folder goes on');
    return 0;
  } finally {
    unlisten();
    await engine.stop('checkpoint');
  }
};
