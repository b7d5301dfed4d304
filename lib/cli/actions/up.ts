import { resolve } from 'node:path';
import { EbbError, messageOf } from '../../kernel/errors.ts';
import { rightsOfOthers } from '../../drivers/local/engine/engine-folder.ts';
import { announce } from '../../api/server/announcement.ts';
import { checkExposure, isLoopback } from '../../api/server/guard.ts';
import { tlsFiles, type TlsFiles } from '../../api/server/tls.ts';
import { keptToken, tokenIn } from '../../api/server/token.ts';
import type { Client } from '../client.ts';
import { refuseElsewhere, type Action, type Context } from '../context.ts';
import { embeddedOptions, NOT_BEGUN } from '../engine-options.ts';
import { json } from '../output.ts';
import { readJobSources } from '../job-source.ts';
import { beginAll } from '../service-source.ts';
import { amountText, goingOn, servicesThere, unfinishedJobs } from '../unfinished.ts';
import { endedByStop, onStopRequest, SIGNAL_EXIT, type StopSignal } from '../signals.ts';
import type { UpOptions } from '../flags/engine-flags.ts';

/** Longest wall time that a second Ctrl-C waits for processes to end. */
const AT_ONCE_MS = 3_000;

/**
 * `ebb up`: the engine until it is told to stop. A stop saves tasks and releases instances; the next `up` on the folder
 * resumes without a question, unlike `run`.
 */
export const up: Action<UpOptions> = async (context, files, options) => {
  const { world, output, json: asJson } = context;
  const sources = await readJobSources(files, { ...world, as: 'both' });
  refuseElsewhere(
    options,
    'say where it is to listen by --bind and --port; AWS gets a deployment by `npx cdk deploy` (docs/deploy.md)',
  );
  const tls = tlsOf(context, options);
  checkToken(context, options);
  const { openEmbedded } = await import('../compose.ts');
  const onInterrupted = (afterS: number): void =>
    output.note(`warning: a request kept the engine from answering for ${afterS} s and was ended; all else goes on`);
  const engine = await endedByStop(output, NOT_BEGUN, () =>
    openEmbedded({
      ...embeddedOptions(options, world.cwd),
      say: (text) => output.note(text),
      ...(world.isOwn === true && { onInterrupted }),
    }),
  );
  let unlisten = (): void => undefined;
  let unannounce = (): void => undefined;
  try {
    const dir = resolve(world.cwd, options.dir);
    const { token, tokenFile } = tokenOf(context, options, dir);
    const url = await engine.listen({ bind: options.bind, port: options.port, token, tls });
    unannounce = announced(context, { url, dir, tokenFile });
    await noteGoingOn(engine.client, output, options.dir);
    for (const warning of warnings(options, tls, dir)) output.note(`warning: ${warning}`);
    await engine.start();
    if (asJson) json(output, { url, dir: options.dir, pid: process.pid, tokenFile });
    else {
      output.line(`Ebbtide listens on ${url} (Ctrl-C to stop)`);
      if (tokenFile !== null) output.note(`the token for other clients is in ${tokenFile}`);
    }
    await beginAll(engine.client, sources, output);
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
        setTimeout(exit, AT_ONCE_MS).unref();
      });
    });
    await Promise.race([stopped, engine.failed]);
    output.note('stopped; nothing is left running. `ebb up` on the same folder goes on');
    return 0;
  } finally {
    unlisten();
    unannounce();
    await engine.stop('checkpoint');
  }
};

/** Says what the folder holds that goes on. */
async function noteGoingOn(client: Client, output: Context['output'], dir: string): Promise<void> {
  const open = await unfinishedJobs(client);
  const services = await servicesThere(client);
  if (open.length + services.length === 0) return;
  output.note(await goingOn(client, amountText(open.length, services.length), dir));
}

/** Refuses a token that cannot work, before the engine is opened and makes files. */
function checkToken({ token, world }: Context, options: UpOptions): void {
  if (options.token) {
    if (token !== null) checkExposure({ host: options.bind, token });
    return;
  }
  if (token !== null) {
    throw new EbbError('usage', {
      what: '--no-token contradicts the token that was given',
      got: (world.env['EBB_TOKEN'] ?? '') === '' ? '--token-file' : 'EBB_TOKEN',
      next: 'leave one of them out',
    });
  }
  if (isLoopback(options.bind)) return;
  throw new EbbError('usage', {
    what: 'anybody who reaches this address could run programs here',
    got: `--bind ${options.bind} --no-token`,
    allowed: '--no-token on loopback (127.0.0.1) only',
    next: 'leave out --no-token: clients elsewhere need a copy of the token, by --token-file or EBB_TOKEN',
  });
}

/** The token that was given, or the one that the engine keeps in its folder. */
function tokenOf(
  { token }: Context,
  options: UpOptions,
  dir: string,
): { readonly token: string | null; readonly tokenFile: string | null } {
  if (!options.token) return { token: null, tokenFile: null };
  if (token !== null) return { token, tokenFile: null };
  const tokenFile = keptToken(dir);
  return { token: tokenIn(tokenFile), tokenFile };
}

function tlsOf({ world }: Context, { tlsCert, tlsKey }: UpOptions): TlsFiles | null {
  const at = (path: string): string => resolve(world.cwd, path);
  return tlsFiles({
    ...(tlsCert === undefined ? {} : { cert: at(tlsCert) }),
    ...(tlsKey === undefined ? {} : { key: at(tlsKey) }),
  });
}

/** Announcement of the engine in the user's home. A home that cannot be written to is not an error. */
function announced({ output, world }: Context, engine: Parameters<typeof announce>[0]): () => void {
  try {
    return announce(engine, world.env);
  } catch (error) {
    const why = messageOf(error);
    output.note(`ebb will not find the token of this engine by itself (${why}); name it with --token-file`);
    return () => undefined;
  }
}

function warnings({ bind, token }: UpOptions, tls: TlsFiles | null, dir: string): string[] {
  const found: string[] = [];
  const rights = rightsOfOthers(dir);
  if (rights !== null) {
    found.push(
      `other users of this machine can ${rights} what is in ${dir}: jobs with their \`env\`, logs, checkpoints${rights === 'change' ? ', and so run programs as you' : ''}; \`chmod 700 ${dir}\``,
    );
  }
  if (!token) {
    found.push(
      '--no-token: every user of this machine, and every container in its network, can submit jobs that run as you',
    );
  }
  if (tls === null && !isLoopback(bind)) {
    found.push(
      `plain HTTP on ${bind}: the network can read the token and everything else, and with the token run programs here; give --tls-cert and --tls-key, or put a proxy with TLS before it`,
    );
  }
  return found;
}
