import { AwsFault } from '../fault.ts';
import { page } from '../query.ts';

/** A page of a list, asked for as ECS asks. */
export function pageOf<T>(
  all: readonly T[],
  asked: { readonly nextToken?: string | undefined; readonly maxResults: number },
) {
  try {
    return page(all, { token: asked.nextToken, size: asked.maxResults });
  } catch (error) {
    if (error instanceof AwsFault) throw new AwsFault('InvalidParameterException', 'Invalid token.');
    throw error;
  }
}
