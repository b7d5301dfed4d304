/**
 * Expressions of DynamoDB, as far as Ebbtide uses them. Others are refused. Grammar: "Expressions in DynamoDB",
 * Developer Guide.
 */
import { isDeepStrictEqual } from 'node:util';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';

export type Item = Readonly<Record<string, AttributeValue>>;

/** Values of `#name` and `:value`. */
export interface Bindings {
  readonly names?: Readonly<Record<string, string>> | undefined;
  readonly values?: Readonly<Record<string, AttributeValue>> | undefined;
}

const TOKEN = /\s*(?:(<=|>=|<>|[=<>(),+])|([#:]?[A-Za-z_][\w]*))/y;

/** Tokens of one expression, in order. */
class Tokens {
  readonly #list: string[] = [];
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    TOKEN.lastIndex = 0;
    for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
      this.#list.push(found[1] ?? found[2] ?? '');
      if (TOKEN.lastIndex >= text.trimEnd().length) return;
    }
    throw this.refusal('a sign that is not known');
  }

  get isDone(): boolean {
    return this.#at >= this.#list.length;
  }

  peek(): string {
    return this.#list[this.#at] ?? '';
  }

  next(): string {
    return this.#list[this.#at++] ?? '';
  }

  /** Takes `word` if it comes next. */
  take(word: string): boolean {
    const isNext = this.peek().toUpperCase() === word;
    if (isNext) this.#at += 1;
    return isNext;
  }

  expect(word: string): void {
    if (!this.take(word)) throw this.refusal(`"${this.peek()}" where "${word}" should be`);
  }

  refusal(why: string): Error {
    return new Error(`the DynamoDB double does not play this expression, ${why}: ${this.#text}`);
  }
}

const COMPARED = new Set(['=', '<>', '<', '<=', '>', '>=']);

/** True if a condition, or a query's key condition, holds for an item. */
export function holds(expression: string, item: Item | undefined, bindings: Bindings): boolean {
  const tokens = new Tokens(expression);
  const answer = either(tokens, item ?? {}, bindings);
  if (!tokens.isDone) throw tokens.refusal(`"${tokens.peek()}" behind its end`);
  return answer;
}

function either(tokens: Tokens, item: Item, bindings: Bindings): boolean {
  let answer = both(tokens, item, bindings);
  // Both sides are parsed, whatever the first says.
  while (tokens.take('OR')) answer = both(tokens, item, bindings) || answer;
  return answer;
}

function both(tokens: Tokens, item: Item, bindings: Bindings): boolean {
  let answer = one(tokens, item, bindings);
  while (tokens.take('AND')) answer = one(tokens, item, bindings) && answer;
  return answer;
}

function one(tokens: Tokens, item: Item, bindings: Bindings): boolean {
  if (tokens.take('NOT')) return !one(tokens, item, bindings);
  if (tokens.take('(')) {
    const answer = either(tokens, item, bindings);
    tokens.expect(')');
    return answer;
  }
  const first = tokens.next();
  if (tokens.take('(')) {
    const path = item[nameOf(tokens.next(), bindings)];
    if (first === 'begins_with') {
      tokens.expect(',');
      const prefix = valueOf(tokens.next(), item, bindings)?.S ?? '';
      tokens.expect(')');
      return path?.S?.startsWith(prefix) === true;
    }
    tokens.expect(')');
    if (first === 'attribute_exists') return path !== undefined;
    if (first === 'attribute_not_exists') return path === undefined;
    throw tokens.refusal(`the function ${first}`);
  }
  const left = valueOf(first, item, bindings);
  const right = (): AttributeValue | undefined => valueOf(tokens.next(), item, bindings);
  if (tokens.take('IN')) {
    tokens.expect('(');
    let isIn = false;
    do isIn = compared(left, '=', right()) || isIn;
    while (tokens.take(','));
    tokens.expect(')');
    return isIn;
  }
  if (tokens.take('BETWEEN')) {
    const isFrom = compared(left, '>=', right());
    tokens.expect('AND');
    return compared(left, '<=', right()) && isFrom;
  }
  const sign = tokens.next();
  if (!COMPARED.has(sign)) throw tokens.refusal(`the sign "${sign}"`);
  return compared(left, sign, right());
}

/** Comparison. Missing values and values of another type equal nothing and have no order. */
function compared(a: AttributeValue | undefined, sign: string, b: AttributeValue | undefined): boolean {
  if (a === undefined || b === undefined) return sign === '<>' && a !== b;
  if (sign === '=') return isDeepStrictEqual(plain(a), plain(b));
  if (sign === '<>') return !isDeepStrictEqual(plain(a), plain(b));
  const order = orderOf(a, b);
  if (order === null) return false;
  return sign === '<' ? order < 0 : sign === '<=' ? order <= 0 : sign === '>' ? order > 0 : order >= 0;
}

/** Order of numbers by value and of texts by bytes; null without an order. */
export function orderOf(a: AttributeValue, b: AttributeValue): number | null {
  if (a.N !== undefined && b.N !== undefined) return Number(a.N) - Number(b.N);
  if (a.S !== undefined && b.S !== undefined) return Buffer.compare(Buffer.from(a.S), Buffer.from(b.S));
  return null;
}

const plain = (value: AttributeValue): unknown =>
  value.N !== undefined ? { N: Number(value.N) } : value.B !== undefined ? { B: Buffer.from(value.B) } : value;

function nameOf(token: string, { names = {} }: Bindings): string {
  if (!token.startsWith('#')) return token;
  const name = names[token];
  if (name === undefined) throw new Error(`the DynamoDB double: no name is given for ${token}`);
  return name;
}

function valueOf(token: string, item: Item, bindings: Bindings): AttributeValue | undefined {
  if (!token.startsWith(':')) return item[nameOf(token, bindings)];
  const value = bindings.values?.[token];
  if (value === undefined) throw new Error(`the DynamoDB double: no value is given for ${token}`);
  return value;
}

/** Item after an update: SET with values and `if_not_exists`, ADD of numbers, REMOVE. */
export function updated(expression: string, before: Item, bindings: Bindings): Item {
  const tokens = new Tokens(expression);
  const item: Record<string, AttributeValue> = { ...before };
  let verb = '';
  do {
    const word = tokens.peek().toUpperCase();
    if (word === 'SET' || word === 'REMOVE' || word === 'ADD') verb = tokens.next().toUpperCase();
    const name = nameOf(tokens.next(), bindings);
    if (verb === 'REMOVE') Reflect.deleteProperty(item, name);
    else if (verb === 'ADD') item[name] = sum(before[name], valueOf(tokens.next(), before, bindings));
    else if (verb === 'SET') item[name] = assigned(tokens, before, bindings);
    else throw tokens.refusal(`"${name}" outside of SET, ADD and REMOVE`);
    tokens.take(',');
  } while (!tokens.isDone);
  return item;
}

function assigned(tokens: Tokens, before: Item, bindings: Bindings): AttributeValue {
  tokens.expect('=');
  let value: AttributeValue | undefined;
  if (tokens.take('IF_NOT_EXISTS')) {
    tokens.expect('(');
    value = before[nameOf(tokens.next(), bindings)];
    tokens.expect(',');
    const other = valueOf(tokens.next(), before, bindings);
    tokens.expect(')');
    value ??= other;
  } else value = valueOf(tokens.next(), before, bindings);
  if (value === undefined) throw tokens.refusal('an attribute that is not there');
  return tokens.take('+') ? sum(value, valueOf(tokens.next(), before, bindings)) : value;
}

const sum = (a: AttributeValue | undefined, b: AttributeValue | undefined): AttributeValue => {
  if (b?.N === undefined) throw new Error('the DynamoDB double adds numbers only');
  return { N: String(Number(a?.N ?? 0) + Number(b.N)) };
};
