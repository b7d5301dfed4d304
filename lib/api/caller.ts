import type { APIGatewayProxyEvent } from 'aws-lambda';
import { MAX_CALLER_ID, type Asker, type Identity } from '../domain/caller.ts';
import { requestIdOf } from './middleware.ts';

/** Key of the request context with the caller that the local server found. Clients cannot set it. */
const LOCAL = 'ebbtide';
/** Most groups of a user ("Quotas in Amazon Cognito"). */
const MAX_GROUPS = 100;
type Authorizer = Readonly<Record<string, unknown>>;

export const localAuthorizer = (identity: Identity): Authorizer => ({ [LOCAL]: identity });

/**
 * Caller of a request: the principal that API Gateway authenticated (IAM, or a user pool's token), or the user that the
 * local server found. Null without authentication. Headers and body of the request are not used.
 */
export function callerOf(event: APIGatewayProxyEvent): Asker | null {
  // A hand-made event may lack fields that its type promises.
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
  // The user's name is the first claim in identity tokens, the second in access tokens.
  const user = claims['cognito:username'] ?? claims['username'] ?? claims['sub'];
  if (typeof user !== 'string' || user === '') return null;
  return { id: bounded(`cognito:${user}`), groups: groupsIn(claims['cognito:groups']) };
}

/** Groups of a claim: API Gateway joins a list of texts with commas. */
const groupsIn = (claim: unknown): string[] =>
  (Array.isArray(claim) ? claim.map(String) : typeof claim === 'string' ? claim.split(',') : [])
    .map((group) => group.trim())
    .filter((group) => group !== '')
    .slice(0, MAX_GROUPS);

/** Id without control characters, for logs and terminals. */
const bounded = (text: string): string => text.replaceAll(/\p{Cc}/gu, '?').slice(0, MAX_CALLER_ID);
