import { createHash } from 'node:crypto';

const hex = (text: string, digits: number): string => createHash('sha256').update(text).digest('hex').slice(0, digits);

/**
 * What an attempt is known by in ECS (`startedBy`, which takes 36 characters of few kinds) and in the names of its
 * checkpoint marks: 128 bits of a hash, so that any name of a job or stage will do.
 */
export const markOf = (attempt: string): string => hex(`attempt ${attempt}`, 32);

/** Tokens by which EC2 and ECS know a request again; they take up to 64 characters. */
export const tokenOf = (...parts: readonly string[]): string => hex(JSON.stringify(parts), 64);

/** Where the mark lies that an attempt's checkpoint was written. What is written there counts by its time alone. */
const KEPT = 'kept/';
export const keptKey = (attempt: string): string => `${KEPT}${markOf(attempt)}`;
/** The mark in a key; null for another object's. */
export const markInKey = (key: string): string | null => (key.startsWith(KEPT) ? key.slice(KEPT.length) : null);

/**
 * What the line begins with in which an attempt's entrypoint reports at its end (report.ts). Its program is not told
 * it, so that nothing a program prints of its environment or its names is taken for a report.
 */
export const endMarkOf = (attempt: string): string => `ebb-end-${hex(`end ${attempt}`, 32)}`;

/** Where the command and environment of an attempt lie that are too long for ECS. */
export const ORDERS = 'orders/';
export const orderKey = (attempt: string): string => `${ORDERS}${markOf(attempt)}`;

/** Where the values of an attempt's environment lie. ECS takes files of this ending alone. */
export const ENVIRONMENTS = 'env/';
export const environmentKey = (attempt: string): string => `${ENVIRONMENTS}${markOf(attempt)}.env`;
