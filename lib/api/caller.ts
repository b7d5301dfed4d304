import type { APIGatewayProxyEvent } from 'aws-lambda';
import { MAX_CALLER_ID, type Asker, type Identity } from '../domain/caller.ts';
import { requestIdOf } from './middleware.ts';

/** Key of the request context under which the local server says who asks. No client can set it. */
const LOCAL = 'ebbtide';
/** A user is in 100 groups of a user pool at most ("Quotas in Amazon Cognito"). */
const MAX_GROUPS = 100;
type Authorizer = Readonly<Record<string, unknown>>;

export const localAuthorizer = (identity: Identity): Authorizer => ({ [LOCAL]: identity });

/**
 * Who sends a request: the principal that API Gateway has authenticated (IAM, or a user pool's token), or the user that
 * the local server has found. Null where nobody was authenticated. The request's own headers and body say nothing here.
 */
export function callerOf(event: APIGatewayProxyEvent): Asker | null {
  // A hand-made event may lack what the type promises.
  const context = event.requestContext as Partial<APIGatewayProxyEvent['requestContext']> | undefined;
  const identity = principalOf(context?.identity?.userArn) ?? ofAuthorizer(context?.authorizer ?? null);
  return identity === null ? null : { ...identity, requestId: bounded(requestIdOf(event)) };
}

const principalOf = (arn: string | null | undefined): Identity | null =>
  typeof arn === 'string' && arn !== '' ? { id: bounded(arn) } : null;

function ofAuthorizer(authorizer: Authorizer | null): Omit<Asker, 'requestId'> | null {
  const local = authorizer?.[LOCAL] as Identity | undefined;
  if (local !== undefined) return local;
  const claims = (authorizer?.['claims'] ?? {}) as Authorizer;
  // Identity tokens name the user under the first, access tokens under the second.
  const user = claims['cognito:username'] ?? claims['username'] ?? claims['sub'];
  if (typeof user !== 'string' || user === '') return null;
  return { id: bounded(`cognito:${user}`), groups: groupsIn(claims['cognito:groups']) };
}

/** API Gateway writes a list of texts as one text, with commas. */
const groupsIn = (claim: unknown): string[] =>
  (Array.isArray(claim) ? claim.map(String) : typeof claim === 'string' ? claim.split(',') : [])
    .map((group) => group.trim())
    .filter((group) => group !== '')
    .slice(0, MAX_GROUPS);

/** No control characters: the id goes to logs and terminals. */
const bounded = (text: string): string => text.replaceAll(/\p{Cc}/gu, '?').slice(0, MAX_CALLER_ID);
