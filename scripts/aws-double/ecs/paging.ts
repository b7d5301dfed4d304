import { AwsFault } from '../fault.ts';
import { page } from '../query.ts';

/** Page of a list with ECS' parameters. */
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
