import { resolve } from 'node:path';
import type { Command } from 'commander';
import { EbbError } from '../kernel/errors.ts';
import { tokenIn } from '../api/server/token.ts';
import type { Client } from './client.ts';
import type { Deployment } from './deployment.ts';
import { makeOutput, type Output } from './output.ts';

/** The process as a command sees it; tests give their own. */
export interface World {
  readonly stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
  readonly stderr: NodeJS.WritableStream & { isTTY?: boolean };
  readonly stdin: NodeJS.ReadableStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** True if the process runs this command only, so that hanging code may be ended with it. Default: false. */
  readonly isOwn?: boolean;
}

/** Options that every command has. */
export interface GlobalOptions {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly stack?: string;
  readonly profile?: string;
  readonly region?: string;
  readonly color: boolean;
  readonly json?: boolean;
}

/** Input of an action. */
export interface Context {
  readonly world: World;
  readonly output: Output;
  readonly json: boolean;
  /** Token of --token-file or EBB_TOKEN. Null: the engine's own token, if any. */
  readonly token: string | null;
  /** Engine named by --stack, --url, EBB_STACK, EBB_URL or the default. Nothing is sent before the first request. */
  readonly client: () => Promise<Client>;
}

/** Resolves to the exit code; nothing means 0. */
export type Action<O> = (context: Context, args: readonly string[], options: O) => Promise<number | undefined>;

export const DEFAULT_URL = 'http://127.0.0.1:7788';

export function makeContext(world: World, options: GlobalOptions): Context {
  const given = options.tokenFile === undefined ? null : tokenIn(resolve(world.cwd, options.tokenFile));
  const ofEnvironment = world.env['EBB_TOKEN'] ?? '';
  const token = given ?? (ofEnvironment === '' ? null : ofEnvironment);
  const url = options.url ?? world.env['EBB_URL'] ?? null;
  const base = checkedUrl(url ?? DEFAULT_URL);
  const deployment = deploymentOf(world, { ...options, token: given, url });
  return {
    world,
    output: makeOutput({ stdout: world.stdout, stderr: world.stderr, env: world.env, noColor: !options.color }),
    json: options.json === true,
    token,
    client: async () =>
      deployment === null
        ? engineAt(base, token, world.env)
        : (await import('./deployment.ts')).deploymentClient(deployment),
  };
}

/** Deployment named by --stack or EBB_STACK; null: an engine at an address. */
function deploymentOf(
  world: World,
  options: Omit<GlobalOptions, 'url'> & Pick<Deployment, 'token' | 'url'>,
): Deployment | null {
  const stack = options.stack ?? world.env['EBB_STACK'] ?? null;
  // EBB_TOKEN belongs to an engine at an address. A deployment with signed requests must not get it.
  const { profile = null, region = null, token, url } = options;
  if (stack !== null) return { stack, profile, region, url, token };
  if (profile === null && region === null) return null;
  throw new EbbError('usage', {
    what: `--${profile === null ? 'region' : 'profile'} says which AWS account to use, and nothing says which deployment`,
    next: 'name it with --stack (or EBB_STACK)',
  });
}

/** Engine at an address. Without a token, that of an engine of this user there. */
async function engineAt(base: string, token: string | null, env: World['env']): Promise<Client> {
  const { httpClient } = await import('./client.ts');
  if (token !== null) return httpClient(base, token);
  const { announcedEngine } = await import('../api/server/announcement.ts');
  const own = announcedEngine(base, env);
  return own === null ? httpClient(base, null) : httpClient(own.url, own.token);
}

/** Refuses options that name another engine, for commands with an engine in this process. */
export function refuseElsewhere(given: object, instead: string): void {
  const named = elsewhere(given);
  if (named === null) return;
  throw new EbbError('usage', {
    what: 'this command works with an engine of its own, in this process',
    got: `--${named}`,
    next: instead,
  });
}

/** Remote engine on a command line, as option and value (`stack Ebbtide`); null: none. */
export function elsewhere(given: object): string | null {
  const options: Partial<GlobalOptions> = given;
  const named = (['stack', 'profile', 'region', 'url'] as const).find((name) => options[name] !== undefined);
  return named === undefined ? null : `${named} ${options[named] ?? ''}`;
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:')) return text;
  throw new EbbError('usage', {
    what: 'the address of the engine is not an http(s) URL',
    got: text,
    allowed: `for example ${DEFAULT_URL}`,
    next: 'correct --url or EBB_URL',
  });
}

/**
 * Binds a commander command to an action that is loaded when it runs: `ebb --help` loads none. `finish` gets the exit
 * code.
 */
export function lazily<O>(
  world: World,
  finish: (code: number) => void,
  load: () => Promise<Action<O>>,
): (...args: unknown[]) => Promise<void> {
  return async (...given) => {
    const command = given.at(-1) as Command;
    const options = command.optsWithGlobals<O & GlobalOptions>();
    const args = given.slice(0, -2).flatMap((a) => (a === undefined ? [] : (a as string | string[])));
    const action = await load();
    finish((await action(makeContext(world, options), args, options)) ?? 0);
  };
}
