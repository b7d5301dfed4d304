import { z } from 'zod';
import { AwsFault, NotPlayed, type InputFaults } from './fault.ts';
import { matchesAny } from './wildcard.ts';

/**
 * The Query protocols: a form with dotted names in, XML out. That of EC2, and that of other services, whose lists have
 * `member` in their names (https://smithy.io/2.0/aws/protocols/aws-query-protocol.html).
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html
 * https://smithy.io/2.0/aws/protocols/aws-ec2-query-protocol.html
 */
export const EC2_VERSION = '2016-11-15';
export const ELB_VERSION = '2015-12-01';
const ELB_XMLNS = `http://elasticloadbalancing.amazonaws.com/doc/${ELB_VERSION}/`;

interface Form {
  [name: string]: string | Form;
}

/**
 * Nested form `{ Filter: [{ Value: [.., 'x'] }] }` of `Filter.1.Value.2=x`. Names that are all numbers are positions.
 */
export function decodeQuery(body: string): Readonly<Record<string, unknown>> {
  const root = Object.create(null) as Form;
  for (const [path, value] of new URLSearchParams(body)) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    let node = root;
    for (const name of names) {
      const next = (node[name] ??= Object.create(null) as Form);
      if (typeof next === 'string') throw new AwsFault('MalformedQueryString', `${path} names a value and a structure`);
      node = next;
    }
    node[last] = value;
  }
  return unfold(root) as Readonly<Record<string, unknown>>;
}

function unfold(node: string | Form): unknown {
  if (typeof node === 'string') return node;
  const entries = Object.entries(node);
  const [only] = entries;
  if (entries.length === 1 && only?.[0] === 'member') return unfold(only[1]);
  if (entries.length > 0 && entries.every(([name]) => /^\d+$/.test(name))) {
    return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, value]) => unfold(value));
  }
  return Object.fromEntries(entries.map(([name, value]) => [name, unfold(value)]));
}

/** Types of form values, which are text. */
export const form = {
  number: z.coerce.number().int(),
  boolean: z.enum(['true', 'false']).transform((text) => text === 'true'),
  date: z.iso.datetime({ offset: true }).transform((text) => new Date(text)),
};

export type XmlValue =
  | string
  | number
  | boolean
  | Date
  | XmlList
  | null
  | undefined
  | readonly XmlValue[]
  | { readonly [name: string]: XmlValue };

/** List whose members have a name other than `item`. */
export class XmlList {
  readonly member: string;
  readonly values: readonly XmlValue[];

  constructor(member: string, values: readonly XmlValue[]) {
    this.member = member;
    this.values = values;
  }
}

/** XML element. `null` and `undefined` give none; a list becomes `<name><item>..</item></name>`. */
export function xmlOf(name: string, value: XmlValue): string {
  if (value === undefined || value === null) return '';
  return `<${name}>${contentOf(value)}</${name}>`;
}

function contentOf(value: Exclude<XmlValue, undefined | null>): string {
  if (value instanceof Date) return value.toISOString();
  if (value instanceof XmlList) return value.values.map((item) => xmlOf(value.member, item)).join('');
  if (isList(value)) return value.map((item) => xmlOf('item', item)).join('');
  if (typeof value === 'object')
    return Object.entries(value)
      .map(([name, inner]) => xmlOf(name, inner))
      .join('');
  return escaped(String(value));
}

const isList = (value: XmlValue): value is readonly XmlValue[] => Array.isArray(value);

/** Text with escaped markup. Characters that XML 1.0 forbids become U+FFFD (https://www.w3.org/TR/xml/#charsets). */
const escaped = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll('\r', '&#xD;')
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');

const XMLNS = `http://ec2.amazonaws.com/doc/${EC2_VERSION}/`;

export function ec2Answer(action: string, requestId: string, content: { readonly [name: string]: XmlValue }): string {
  const inner = contentOf({ requestId, ...content });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${action}Response xmlns="${XMLNS}">${inner}</${action}Response>`;
}

export function queryAnswer(action: string, requestId: string, content: { readonly [name: string]: XmlValue }): string {
  const inner = `${xmlOf(`${action}Result`, content)}${xmlOf('ResponseMetadata', { RequestId: requestId })}`;
  return `<${action}Response xmlns="${ELB_XMLNS}">${inner}</${action}Response>`;
}

export const queryError = (fault: AwsFault, requestId: string): string =>
  `<ErrorResponse xmlns="${ELB_XMLNS}">${xmlOf('Error', { Type: 'Sender', Code: fault.code, Message: fault.message })}${xmlOf('RequestId', requestId)}</ErrorResponse>`;

/** https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/CommonErrors.html */
export const queryFaults: InputFaults = {
  unknown: (name) => new NotPlayed('ValidationError', `The double has no parameter ${name}`),
  missing: (name) => new AwsFault('ValidationError', `${name} must be specified`),
  invalid: (name, why) => new AwsFault('ValidationError', `${name}: ${why}`),
};

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html#api-error-response */
export function ec2Error(fault: AwsFault, requestId: string): string {
  const error = { Errors: { Error: { Code: fault.code, Message: fault.message } }, RequestID: requestId };
  return `<?xml version="1.0" encoding="UTF-8"?>\n${xmlOf('Response', error)}`;
}

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html#CommonErrors */
export const ec2Faults: InputFaults = {
  unknown: (name) => new NotPlayed('UnknownParameter', `The parameter ${name} is not recognized`),
  missing: (name) => new AwsFault('MissingParameter', `The request must contain the parameter ${name}`),
  invalid: (name, why) => new AwsFault('InvalidParameterValue', `Invalid value for parameter ${name}: ${why}`),
};

export const filters = z.array(z.strictObject({ Name: z.string(), Value: z.array(z.string()) })).default([]);
export const tagList = z.array(
  z.strictObject({ Key: z.string().min(1).max(128), Value: z.string().max(256).default('') }),
);
export const tagSpecifications = z.array(z.strictObject({ ResourceType: z.string(), Tag: tagList })).default([]);

/**
 * True if all filters match, each by any of its values, with wildcards `*` and `?`.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html#Filtering_Resources_CLI `valuesOf` returns
 * null for an unknown filter, which is refused.
 */
export function passes(wanted: z.infer<typeof filters>, valuesOf: (name: string) => readonly string[] | null): boolean {
  return wanted.every(({ Name, Value }) => {
    const values = valuesOf(Name);
    if (values === null) throw new NotPlayed('InvalidParameterValue', `The double has no filter '${Name}'`);
    return values.some((value) => matchesAny(Value, value));
  });
}

/** Page of a list. Tokens name positions; foreign tokens are refused. */
export function page<T>(all: readonly T[], of: { readonly token: string | undefined; readonly size: number }) {
  const from = of.token === undefined ? 0 : Number(/^page-(\d+)$/.exec(of.token)?.[1] ?? NaN);
  if (Number.isNaN(from)) throw new AwsFault('InvalidNextToken', 'The token is not valid');
  const next = from + of.size;
  return { items: all.slice(from, next), nextToken: next < all.length ? `page-${next}` : undefined };
}
