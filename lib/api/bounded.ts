/**
 * Answers within Lambda's limit of 6 MiB for JSON text, in which the body is a string ("Lambda quotas"). A page of
 * large items holds fewer than requested. The middleware refuses larger bodies (middleware.ts).
 */
import { EbbError } from '../kernel/errors.ts';

/** Longest list of items in one answer, bytes of JSON. As a string it is longer by some tenths. */
export const MAX_PAGE_BYTES = 4_000_000;
/** Longest body, bytes as a JSON string: Lambda's limit less its envelope and headers. */
export const MAX_ANSWER_BYTES = 6_200_000;

interface Listed<V> {
  readonly items: readonly V[];
  readonly next: string | null;
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/**
 * Page of at most `limit` items within MAX_PAGE_BYTES, or of one larger item. `ask` reads a page. It is called again
 * with a smaller limit, because only the list knows the cursor behind an item.
 */
export async function boundedPage<V, P extends Listed<V>>(
  limit: number,
  ask: (limit: number) => Promise<P>,
  maxBytes = MAX_PAGE_BYTES,
): Promise<P> {
  let page = await ask(limit);
  for (let fitting = countFitting(page.items, maxBytes); fitting < page.items.length;) {
    page = await ask(fitting);
    // Later items may be larger.
    fitting = Math.min(countFitting(page.items, maxBytes), page.items.length);
  }
  return page;
}

/** Number of first items that fit, at least one. */
function countFitting(items: readonly unknown[], maxBytes: number): number {
  let bytes = 0;
  for (const [i, item] of items.entries()) {
    bytes += sizeOf(item) + 1;
    if (bytes > maxBytes) return Math.max(1, i);
  }
  return items.length;
}

/** Throws `answer-too-large` for a body above Lambda's limit. Free for short bodies. */
export function checkAnswerSize(body: string): void {
  // A UTF-16 unit is at most six bytes of a JSON string.
  if (body.length * 6 <= MAX_ANSWER_BYTES) return;
  const bytes = sizeOf(body);
  if (bytes <= MAX_ANSWER_BYTES) return;
  throw new EbbError('answer-too-large', {
    what: 'the answer is larger than a function can send',
    got: `${bytes} bytes`,
    allowed: `at most ${MAX_ANSWER_BYTES} bytes`,
    next: 'Ask for less at a time with `limit`, and follow `next`.',
  });
}
