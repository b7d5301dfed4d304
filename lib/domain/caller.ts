/** Authenticated caller of the API. */
export interface Identity {
  /**
   * ARN of an IAM principal, `cognito:NAME` of a user pool, `uid:NUMBER` of this machine, or `address:IP` where no more
   * is known. At most `MAX_CALLER_ID` characters.
   */
  readonly id: string;
  /** Name for people, where the id is not one. */
  readonly name?: string;
}

/** Source of a change: the identity, and the request id in the logs of the API. */
export interface Caller extends Identity {
  readonly requestId: string;
}

/** A caller with its unrecorded part. */
export interface Asker extends Caller {
  /** Groups of the user pool. */
  readonly groups?: readonly string[];
}

/** Recorded part of a caller. */
export const recordOf = ({ id, name, requestId }: Asker): Caller => ({
  id,
  ...(name === undefined ? {} : { name }),
  requestId,
});

/** Longer ids are cut: the longest ARN of an IAM user has 64 characters of name and 512 of path. */
export const MAX_CALLER_ID = 640;

/** `alice (uid:1000)`, or the id alone. */
export const callerText = ({ id, name }: Identity): string => (name === undefined ? id : `${name} (${id})`);
