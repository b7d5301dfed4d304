import { CommanderError } from 'commander';
import { plainJson } from '../kernel/terminal-text.ts';
import { EbbError, ERROR_CODES, type ErrorCode } from '../kernel/errors.ts';
import { hasCode } from '../drivers/local/fleet/files.ts';
import type { Problem } from '../api/schemas.ts';
import type { Output } from './output.ts';

/** Error in four lines: what failed, what it got, what is allowed, what to do. No stack. */
export function renderError(error: EbbError, { colors }: Pick<Output, 'colors'>): string {
  const { facts } = error;
  const place = facts.at === undefined ? '' : `${facts.at}: `;
  const lines = [`${colors.red(colors.bold('error:'))} ${place}${facts.what} ${colors.dim(`(${error.code})`)}`];
  const add = (label: string, text: string | undefined): void => {
    if (text !== undefined)
      lines.push(`  ${colors.dim(`${label}:`.padEnd(8))} ${text.replaceAll('\n', '\n           ')}`);
  };
  add('got', facts.got);
  add('allowed', facts.allowed);
  // Issues that the headline already has are left out.
  const issues = (facts.issues ?? []).filter(({ message }) => !facts.what.includes(message));
  for (const issue of issues) lines.push(`  - ${issue.at === '' ? '' : `${issue.at}: `}${issue.message}`);
  add('next', facts.next);
  return lines.join('\n');
}

/** Error of a command with `--json`: its facts as one object on standard error. */
export const errorAsJson = (error: EbbError): string => {
  const { cause: _, ...facts } = error.facts;
  return plainJson(JSON.stringify({ error: { code: error.code, exit: error.exit, ...facts } }));
};

/**
 * Anything thrown, as an EbbError. Commander's complaints and refused paths are usage errors; unknown errors are
 * defects of ours.
 */
export function asEbbError(thrown: unknown): EbbError {
  if (thrown instanceof EbbError) return thrown;
  if (thrown instanceof CommanderError) return usageError(thrown);
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if (hasCode(error, 'ENOSPC', 'EDQUOT', 'EFBIG')) {
    return new EbbError('store.full', { what: error.message, next: 'free some space, then try again', cause: thrown });
  }
  if (hasCode(error, 'ENOENT', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ELOOP', 'EACCES', 'EPERM', 'EROFS')) {
    const next = 'name an existing path of that kind that you may use';
    return new EbbError('usage', { what: 'a path cannot be used', got: error.message, next, cause: thrown });
  }
  return new EbbError('internal', {
    what: 'ebb met something it was not made for',
    got: `${error.name}: ${error.message}`,
    next: 'run the same command with EBB_DEBUG=1 and report the output',
    cause: thrown,
  });
}

/** Commander's text: `error: unknown command 'sumbit'\n(Did you mean submit?)`. */
function usageError(error: CommanderError): EbbError {
  const [first = '', ...rest] = error.message.split('\n');
  const what = first.replace(/^error: /, '');
  const guess = rest.join(' ').replace(/[()]/g, '').trim();
  const next = guess === '' ? 'see `ebb --help`, or `ebb COMMAND --help`' : guess;
  return new EbbError('usage', { what, next });
}

/** Status codes of temporary faults of a proxy or API Gateway, which answer in their own words. */
const PASSING: Readonly<Record<number, ErrorCode>> = {
  429: 'too-many-requests',
  502: 'aws.unavailable',
  503: 'aws.unavailable',
  504: 'aws.unavailable',
};

/** Error behind a problem document of the API. */
export function fromProblem(problem: Partial<Problem>, status: number): EbbError {
  const known = problem.code !== undefined && Object.hasOwn(ERROR_CODES, problem.code);
  const code: ErrorCode = known && problem.code !== undefined ? problem.code : (PASSING[status] ?? 'internal');
  const { got, allowed, next, at, issues } = problem;
  return new EbbError(code, {
    what: problem.what ?? problem.detail ?? `the engine answered with HTTP status ${status}`,
    ...(got === undefined ? {} : { got }),
    ...(allowed === undefined ? {} : { allowed }),
    ...(next === undefined ? {} : { next }),
    ...(at === undefined ? {} : { at }),
    ...(issues === undefined ? {} : { issues }),
  });
}
