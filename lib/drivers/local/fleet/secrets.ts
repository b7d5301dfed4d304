/**
 * Secrets of local mode: a file `secrets/NAME` in the engine's folder that its owner alone may read, else
 * `EBB_SECRET_NAME` of the engine's environment. Values are read when a program is started and go into its environment;
 * orders, journals and the store hold names only. Imported by the supervisor: node: imports only.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Variables of the engine's environment that hold secrets. No task inherits them. */
export const SECRET_VARIABLE = 'EBB_SECRET_';
const MAX_BYTES = 65_536;

/** `db-password` -> `EBB_SECRET_DB_PASSWORD` */
export const variableOf = (name: string): string =>
  `${SECRET_VARIABLE}${name.replaceAll(/[^A-Za-z0-9]/g, '_').toUpperCase()}`;

export class SecretFault extends Error {}

/** The value, without a line end at its end. Throws SecretFault, which names the secret and never its value. */
export function secretValue(dir: string, ref: string, environment: NodeJS.ProcessEnv): string {
  // Local mode has one place for both stores.
  const name = ref.replace(/^ssm:/, '');
  const path = join(dir, 'secrets', name);
  const inFile = fileValue(name, path);
  const value = inFile ?? environment[variableOf(name)];
  if (value === undefined) {
    throw new SecretFault(
      `secret ${name} is missing: no file ${path}, and no ${variableOf(name)} in the engine's environment`,
    );
  }
  if (value.includes('\0')) throw new SecretFault(`secret ${name} has a NUL, which no environment can hold`);
  return value.replace(/\r?\n$/, '');
}

function fileValue(name: string, path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (!stats.isFile()) throw new SecretFault(`secret ${name}: ${path} is no file`);
  if ((stats.mode & 0o077) !== 0) {
    throw new SecretFault(`secret ${name}: others may read ${path}; run \`chmod 600 ${path}\``);
  }
  if (stats.size > MAX_BYTES) throw new SecretFault(`secret ${name}: ${path} has more than ${MAX_BYTES} bytes`);
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new SecretFault(
      `secret ${name}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`,
    );
  }
}

/** Variables of a program out of the references of its stage. */
export const secretVariables = (
  dir: string,
  refs: Readonly<Record<string, string>>,
  environment: NodeJS.ProcessEnv,
): Record<string, string> =>
  Object.fromEntries(Object.entries(refs).map(([variable, ref]) => [variable, secretValue(dir, ref, environment)]));

/** Secrets in the engine's environment: its supervisors need them, for the tasks that name them. */
export const secretsIn = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith(SECRET_VARIABLE)));

/** The environment that tasks inherit: without secrets, which each task gets by name. */
export const withoutSecrets = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith(SECRET_VARIABLE)));
