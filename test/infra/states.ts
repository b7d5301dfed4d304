/**
 * An interpreter of the part of the Amazon States Language (JSONPath) that the cycle uses, after
 * https://states-language.net/spec.html: so that the definition in the template can be run with steps of a test.
 */
interface State {
  readonly Type: string;
  readonly Next?: string;
  readonly End?: boolean;
  readonly Resource?: string;
  readonly InputPath?: string;
  readonly ItemsPath?: string;
  readonly Parameters?: Record<string, unknown>;
  readonly ItemSelector?: Record<string, unknown>;
  readonly ResultSelector?: Record<string, unknown>;
  readonly ResultPath?: string | null;
  readonly OutputPath?: string;
  readonly Retry?: readonly { readonly ErrorEquals: readonly string[]; readonly MaxAttempts: number }[];
  readonly Catch?: readonly {
    readonly ErrorEquals: readonly string[];
    readonly Next: string;
    readonly ResultPath?: string | null;
  }[];
  readonly Choices?: readonly {
    readonly Variable: string;
    readonly BooleanEquals?: boolean;
    readonly StringEquals?: string;
    readonly Next: string;
  }[];
  /** What a Pass state gives. */
  readonly Result?: unknown;
  readonly Default?: string;
  readonly Branches?: readonly Machine[];
  readonly ItemProcessor?: Machine;
  readonly MaxConcurrency?: number;
  readonly TimeoutSeconds?: number;
}

export interface Machine {
  readonly StartAt: string;
  readonly States: Record<string, State>;
  readonly TimeoutSeconds?: number;
}

/** The states that ask a function, those within others too, by their names. */
export const tasksOf = ({ States }: Machine): (readonly [string, State])[] =>
  Object.entries(States).flatMap(([name, state]) => [
    ...(state.Type === 'Task' ? [[name, state] as const] : []),
    ...[...(state.Branches ?? []), ...(state.ItemProcessor === undefined ? [] : [state.ItemProcessor])].flatMap(
      tasksOf,
    ),
  ]);

/** Runs the function that `resource` names. A thrown error's name is what Retry and Catch see. */
export type Invoke = (resource: string, input: unknown) => unknown;

export interface Ending {
  readonly state: string;
  readonly path: readonly string[];
}

/** The state in which it ends, and the states on the way there. Throws what no Catch catches. */
export function run(machine: Machine, input: unknown, invoke: Invoke): Ending {
  const path: string[] = [];
  const { state } = walk(machine, input, { invoke, path });
  return { state, path };
}

interface World {
  readonly invoke: Invoke;
  readonly path: string[];
}

function walk(machine: Machine, input: unknown, world: World): { state: string; output: unknown } {
  let name = machine.StartAt;
  let value = input;
  for (let steps = 0; steps < 1000; steps++) {
    const state = machine.States[name];
    if (state === undefined) throw new Error(`no state ${name}`);
    world.path.push(name);
    if (state.Type === 'Succeed' || state.Type === 'Fail') return { state: name, output: value };
    if (state.Type === 'Choice') {
      const found = state.Choices?.find((c) => at(c.Variable, value) === (c.BooleanEquals ?? c.StringEquals));
      name = found?.Next ?? state.Default ?? '';
      continue;
    }
    try {
      value = output(
        state,
        value,
        retried(state, () => result(state, value, world)),
      );
    } catch (error) {
      const caught = state.Catch?.find((c) => matches(c.ErrorEquals, error));
      if (caught === undefined) throw error;
      const fault = { Error: (error as Error).name, Cause: (error as Error).message };
      value = placed(caught.ResultPath, value, fault);
      name = caught.Next;
      continue;
    }
    if (state.End === true) return { state: name, output: value };
    name = state.Next ?? '';
  }
  throw new Error('does not end');
}

/** What every state may know of the execution. */
const CLOCK = {
  Execution: { StartTime: '2026-01-05T12:00:00.000Z' },
  State: { EnteredTime: '2026-01-05T12:00:07.500Z' },
};

function result(state: State, value: unknown, world: World): unknown {
  switch (state.Type) {
    case 'Task':
      return world.invoke(
        state.Resource ?? '',
        state.Parameters === undefined ? value : filled(state.Parameters, value, CLOCK),
      );
    case 'Pass':
      return state.Result;
    case 'Parallel':
      return (state.Branches ?? []).map((branch) => walk(branch, value, world).output);
    case 'Map':
      return (at(state.ItemsPath ?? '$', value) as unknown[]).map((item) => {
        const given =
          state.ItemSelector === undefined
            ? item
            : filled(state.ItemSelector, value, { Map: { Item: { Value: item } } });
        if (state.ItemProcessor === undefined) throw new Error('a Map without states');
        return walk(state.ItemProcessor, given, world).output;
      });
    default:
      throw new Error(`states of type ${state.Type} are not used`);
  }
}

function retried(state: State, attempt: () => unknown): unknown {
  for (let tries = 0; ; tries++) {
    try {
      return attempt();
    } catch (error) {
      const retry = state.Retry?.find((r) => matches(r.ErrorEquals, error));
      if (retry === undefined || tries >= retry.MaxAttempts) throw error;
    }
  }
}

/**
 * Errors that `States.ALL` does not mean:
 * https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
 */
const TERMINAL = new Set(['States.DataLimitExceeded', 'States.Runtime']);

const matches = (names: readonly string[], error: unknown): boolean => {
  const { name } = error as Error;
  return names.includes(name) || (names.includes('States.ALL') && !TERMINAL.has(name));
};

function output(state: State, input: unknown, raw: unknown): unknown {
  const selected = state.ResultSelector === undefined ? raw : filled(state.ResultSelector, raw);
  return placed(state.ResultPath, input, selected);
}

/** `null`: the input stays as it is. */
function placed(path: string | null | undefined, input: unknown, result: unknown): unknown {
  if (path === null) return input;
  if (path === undefined || path === '$') return result;
  const key = /^\$\.(\w+)$/.exec(path)?.[1];
  if (key === undefined) throw new Error(`ResultPath ${path} is not used`);
  return { ...(input as object), [key]: result };
}

function filled(template: Record<string, unknown>, value: unknown, context: unknown = {}): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(template).map(([key, of]) => {
      if (!key.endsWith('.$')) return [key, of];
      const path = of as string;
      return [key.slice(0, -2), path.startsWith('$$.') ? at(path.slice(1), context) : at(path, value)];
    }),
  );
}

/** As in Step Functions, a path that is not there is an error. */
function at(path: string, value: unknown): unknown {
  let found: unknown = value;
  for (const [, key = '', index = ''] of path.matchAll(/\.(\w+)|\[(\d+)\]/g)) {
    const step = key === '' ? index : key;
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, step)) {
      throw Object.assign(new Error(`${path} is not there`), { name: 'States.Runtime' });
    }
    found = (found as Record<string, unknown>)[step];
  }
  return found;
}
