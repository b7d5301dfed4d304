import type { z } from 'zod';

/** An AWS service says no: its error code, the HTTP status that goes with it, and its message. */
export class AwsFault extends Error {
  readonly code: string;
  readonly status: number;
  /** Members of the error's own shape besides the message. */
  readonly more: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, rest: { readonly status?: number; readonly more?: object } = {}) {
    super(message);
    this.name = 'AwsFault';
    this.code = code;
    this.status = rest.status ?? 400;
    this.more = { ...rest.more };
  }
}

/** AWS may well take this, and the double does not play it: said aloud, so that nobody takes it for AWS's answer. */
export class NotPlayed extends AwsFault {}

/** Input that the double does not take, as the service whose protocol it came by would say it. */
export interface InputFaults {
  unknown(name: string): AwsFault;
  missing(name: string): AwsFault;
  invalid(name: string, why: string): AwsFault;
}

/** The first finding as a fault. Unknown parameters come first: a double that ignores a parameter would lie. */
export function faultOf(error: z.ZodError, faults: InputFaults): AwsFault {
  const unknown = error.issues.find((issue) => issue.code === 'unrecognized_keys');
  if (unknown !== undefined) return faults.unknown([...unknown.path, unknown.keys[0] ?? ''].join('.'));
  const [first] = error.issues;
  const name = first?.path.join('.') ?? '';
  if (first?.code === 'invalid_type' && first.input === undefined && /undefined/.test(first.message)) {
    return faults.missing(name);
  }
  return faults.invalid(name, first?.message ?? 'invalid');
}
