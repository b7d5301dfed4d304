import { createHash } from 'node:crypto';

const hex = (text: string, digits: number): string => createHash('sha256').update(text).digest('hex').slice(0, digits);

/**
 * Name of an attempt in ECS (`startedBy`: 36 characters of few kinds) and in keys of its checkpoint marks. 128 bits of
 * a hash, so that any name of a job or stage works.
 */
export const markOf = (attempt: string): string => hex(`attempt ${attempt}`, 32);

/** Client token of a request to EC2 or ECS; these take up to 64 characters. */
export const tokenOf = (...parts: readonly string[]): string => hex(JSON.stringify(parts), 64);

/** Prefix of checkpoint marks. A mark's content means nothing; its time counts. */
const KEPT = 'kept/';
export const keptKey = (attempt: string): string => `${KEPT}${markOf(attempt)}`;
/** Mark in a key; null for another kind of object. */
export const markInKey = (key: string): string | null => (key.startsWith(KEPT) ? key.slice(KEPT.length) : null);

/**
 * First word of an attempt's report line (report.ts). The program does not know it, so nothing that it prints can pass
 * for a report.
 */
export const endMarkOf = (attempt: string): string => `ebb-end-${hex(`end ${attempt}`, 32)}`;

/** Prefix of orders: commands and environments that are too long for ECS. */
export const ORDERS = 'orders/';
export const orderKey = (attempt: string): string => `${ORDERS}${markOf(attempt)}`;

/** Prefix of environment files. ECS requires the ending. */
export const ENVIRONMENTS = 'env/';
export const environmentKey = (attempt: string): string => `${ENVIRONMENTS}${markOf(attempt)}.env`;
