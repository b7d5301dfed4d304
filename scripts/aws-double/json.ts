import { AwsFault, NotPlayed, type InputFaults } from './fault.ts';

/** Body of AWS JSON 1.1: https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html */
export function decodeJson(body: string): unknown {
  try {
    return JSON.parse(body === '' ? '{}' : body) as unknown;
  } catch {
    throw new AwsFault('SerializationException', 'The body is not JSON');
  }
}

/** Answer as JSON. Dates are epoch seconds in answers, and text in events. */
export const encodeJson = (value: unknown): string => JSON.stringify(secondsForDates(value));

function secondsForDates(value: unknown): unknown {
  if (value instanceof Date) return value.getTime() / 1000;
  if (Array.isArray(value)) return value.map(secondsForDates);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, secondsForDates(inner)]));
}

export const jsonError = (fault: AwsFault): string =>
  JSON.stringify({ __type: fault.code, message: fault.message, ...fault.more });

/** https://docs.aws.amazon.com/AmazonECS/latest/APIReference/CommonErrors.html */
export const jsonFaults: InputFaults = {
  unknown: (name) => new NotPlayed('InvalidParameterException', `The double has no parameter ${name}`),
  missing: (name) => new AwsFault('InvalidParameterException', `${name} must not be missing`),
  invalid: (name, why) => new AwsFault('InvalidParameterException', `${name}: ${why}`),
};
