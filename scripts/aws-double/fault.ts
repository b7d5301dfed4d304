import type { z } from 'zod';

/** Error of an AWS service: code, HTTP status and message. */
export class AwsFault extends Error {
  readonly code: string;
  readonly status: number;
  /** Further members of the error's shape. */
  readonly more: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, rest: { readonly status?: number; readonly more?: object } = {}) {
    super(message);
    this.name = 'AwsFault';
    this.code = code;
    this.status = rest.status ?? 400;
    this.more = { ...rest.more };
  }
}

/**
 * Input that AWS may accept and the double does not play. It complains aloud, so that nobody takes this for AWS's
 * answer.
 */
export class NotPlayed extends AwsFault {}

/** Faults for refused input, in the words of the service. */
export interface InputFaults {
  unknown(name: string): AwsFault;
  missing(name: string): AwsFault;
  invalid(name: string, why: string): AwsFault;
}

/** First finding as a fault. Unknown parameters come first, because a double that ignored one would lie. */
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
