import { z } from 'zod';
import { nearestName } from '../domain/nearest-name.ts';
import { EbbError, type Issue } from '../kernel/errors.ts';

/** Text from outside, safe to show: control characters escaped, cut. */
export function quoted(text: string): string {
  const shown = text.length > 60 ? `${text.slice(0, 60)}...` : text;
  return JSON.stringify(shown.toWellFormed());
}

/** Checks texts of a path, a query or an envelope against a schema; findings go to `issues`. */
export function check<S extends z.ZodObject>(schema: S, input: unknown, where: string, issues: Issue[]): z.output<S> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  for (const found of parsed.error.issues) {
    if (found.code === 'unrecognized_keys') {
      for (const key of found.keys) issues.push({ at: `${where}.${shown(key)}`, message: unknownName(key, schema) });
    } else {
      const at = [where, ...found.path.map((p) => shown(String(p)))].join('.');
      if (!issues.some((i) => i.at === at)) issues.push({ at, message: found.message });
    }
  }
  // Not used: `refuse` throws if there are issues.
  return {} as z.output<S>;
}

const shown = (key: string): string => (/^[\w.-]{1,60}$/.test(key) ? key : quoted(key));

function unknownName(key: string, schema: z.ZodObject): string {
  const allowed = Object.keys(schema.shape);
  if (allowed.length === 0) return 'unknown; none is taken here';
  const near = nearestName(key, allowed);
  return near === null ? `unknown; allowed: ${allowed.join(', ')}` : `unknown; did you mean ${quoted(near)}?`;
}

/** Throws `usage` with all findings, if there are any. */
export function refuse(issues: readonly Issue[], what: string): void {
  const [first] = issues;
  if (first === undefined) return;
  throw new EbbError('usage', {
    what: issues.length === 1 ? `${first.at}: ${first.message}` : `${what}: ${issues.length} findings`,
    issues,
    next: 'See /api/openapi.json for what this route takes.',
  });
}

/** Names of a query schema that may be repeated. */
export function repeatable(schema: z.ZodObject): ReadonlySet<string> {
  return new Set(
    Object.entries(schema.shape)
      .filter(([, s]) => (s instanceof z.ZodOptional ? s.unwrap() : s) instanceof z.ZodArray)
      .map(([name]) => name),
  );
}

/** Query values in the form of the schema. A repeated single-valued name is a finding. */
export function queryValues(
  values: Readonly<Record<string, readonly string[] | undefined>>,
  lists: ReadonlySet<string>,
  issues: Issue[],
): Record<string, unknown> {
  const input = Object.create(null) as Record<string, unknown>;
  for (const [name, given] of Object.entries(values)) {
    if (given === undefined) continue;
    if (lists.has(name)) input[name] = given;
    else if (given.length > 1) issues.push({ at: `query.${shown(name)}`, message: 'given more than once' });
    else input[name] = given[0];
  }
  return input;
}
