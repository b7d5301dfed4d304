/**
 * Version meant by `model` in a directory: the last standing choice of `in-use.json`, beside the directory's own
 * versions. A rollback is a choice as well: it undoes the last standing one. Without any, the newest shipped version.
 * Crash points: the file is replaced in one step, so it is never partial.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { EbbError } from '../kernel/errors.ts';
import { versionName } from './manifest.ts';

const made = { at: z.iso.datetime(), by: z.string(), why: z.string() };
const choice = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('use'), version: versionName, ...made }),
  z.strictObject({ kind: z.literal('rollback'), ...made }),
]);
const file = z.strictObject({ format: z.literal(1), choices: z.array(choice) });

/** `at`: ISO 8601; `by`: the person; `why`: for people. */
export type Choice = z.output<typeof choice>;
export type Use = Extract<Choice, { kind: 'use' }>;

export type Choices =
  | { readonly kind: 'choices'; readonly list: readonly Choice[] }
  | { readonly kind: 'damaged'; readonly what: string };

/** `own`: the folder of a directory's own versions; it may be absent. */
export const choicesFile = (own: string): string => join(own, 'in-use.json');

/** All choices, oldest first. */
export function readChoices(own: string): Choices {
  const path = choicesFile(own);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isAbsent(error)) return { kind: 'choices', list: [] };
    return { kind: 'damaged', what: `${path} cannot be read: ${String(error)}` };
  }
  const parsed = file.safeParse(parsedOrNull(text));
  if (parsed.success) return { kind: 'choices', list: parsed.data.choices };
  return { kind: 'damaged', what: `${path}, which says what version is in use, is damaged` };
}

const isAbsent = (error: unknown): boolean => (error as { code?: string } | null)?.code === 'ENOENT';

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Choices that stand, oldest first: a rollback takes back the newest. The last is in force. */
export function standing(choices: readonly Choice[]): readonly Use[] {
  const stack: Use[] = [];
  for (const each of choices) {
    if (each.kind === 'use') stack.push(each);
    else stack.pop();
  }
  return stack;
}

/** Adds a choice; durable and whole when it returns. Throws `store.corrupt` where those before it cannot be read. */
export function addChoice(own: string, added: Choice): void {
  const before = knownChoices(own);
  const path = choicesFile(own);
  const temporary = `${path}.${process.pid}.tmp`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    const content = { format: 1, choices: [...before, choice.parse(added)] };
    writeFileSync(temporary, `${JSON.stringify(content, null, 1)}\n`, { flush: true });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** All choices, oldest first. Throws `store.corrupt`. */
export function knownChoices(own: string): readonly Choice[] {
  const known = readChoices(own);
  if (known.kind === 'choices') return known.list;
  throw new EbbError('store.corrupt', {
    what: known.what,
    next: 'remove it: the newest version that was shipped is used then, until another is chosen with `ebb models use`',
  });
}
