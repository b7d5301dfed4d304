/** Sources of the CDK app's configuration: a file, overridden by context values. */
import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { EbbError } from '../kernel/errors.ts';
import type { DeploymentConfig } from './config.ts';
import { checkedDeployment, mappingOf } from './config-rules.ts';

export const CONFIG_FILE = 'ebbtide.config.yaml';
/** Prefix of context values: `-c ebbtide:budgetUsdPerDay=20`; `-c ebbtide:config=PATH` names another file. */
export const CONTEXT_PREFIX = 'ebbtide:';
/** Largest configuration. A much larger file is some other file. */
const MAX_BYTES = 65_536;

export interface ConfigSources {
  /** Values of `-c` and of cdk.json. */
  readonly context: Readonly<Record<string, unknown>>;
  /** Text of a file, or null if there is none. */
  readonly read?: (path: string) => string | null;
  /** Account and region of the credentials, for keys without a value. */
  readonly account?: string | undefined;
  readonly region?: string | undefined;
}

/** Throws `usage` with all findings of the file and the context values. */
export function readDeployment(sources: ConfigSources): DeploymentConfig {
  const read = sources.read ?? readIfThere;
  const named = sources.context[`${CONTEXT_PREFIX}config`];
  const path = typeof named === 'string' ? named : CONFIG_FILE;
  const text = read(path);
  if (text === null && named !== undefined) {
    throw new EbbError('usage', {
      what: 'the configuration file cannot be read',
      got: `${path}: no such file`,
      next: `correct -c ${CONTEXT_PREFIX}config=..., or leave it out to take the defaults`,
    });
  }
  const fromFile = text === null ? {} : mapping(text, path);
  // Misspelt names stay: the schema reports them.
  const given = Object.entries(sources.context).flatMap(([name, value]) => {
    const key = name.startsWith(CONTEXT_PREFIX) ? name.slice(CONTEXT_PREFIX.length) : 'config';
    return key === 'config' || value === undefined ? [] : [[key, ofContext(key, value)] as const];
  });
  const environment = { account: sources.account, region: sources.region };
  const input = { ...withoutUndefined(environment), ...fromFile, ...Object.fromEntries(given) };
  const where = given.length === 0 ? path : `${path} with ${given.map(([k]) => `${CONTEXT_PREFIX}${k}`).join(', ')}`;
  return checkedDeployment(input, where);
}

/**
 * Value from the command line, which gives text only. Lists are separated by commas, other text is read as YAML,
 * `account` stays text.
 */
function ofContext(key: string, value: unknown): unknown {
  if (typeof value !== 'string' || key === 'account') return value;
  if (key === 'families' || key === 'reservations') return value.split(',').map((name) => name.trim());
  return parsed(value, `-c ${CONTEXT_PREFIX}${key}`);
}

function mapping(text: string, path: string): Record<string, unknown> {
  if (text.length > MAX_BYTES) {
    throw new EbbError('usage', {
      what: 'this is too large for a configuration',
      got: `${path}: ${text.length} characters`,
    });
  }
  return mappingOf(parsed(text, path) ?? {}, path);
}

function parsed(text: string, path: string): unknown {
  const document = parseDocument(text, { prettyErrors: true });
  const [fault] = document.errors;
  if (fault === undefined) return document.toJS({ maxAliasCount: 10 });
  throw new EbbError('usage', {
    what: 'the configuration is not valid YAML',
    got: `${path}: ${fault.message}`,
    next: 'correct the place named',
    cause: fault,
  });
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new EbbError('usage', {
      what: 'the configuration file cannot be read',
      got: `${path}: ${String(error)}`,
      cause: error,
    });
  }
}

const withoutUndefined = (o: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined));
