/**
 * Ownership of jobs where a deployment equates owner and caller. Patterns of administrators:
 *
 *     arn:aws:iam::111122223333:user/ops             one principal
 *     arn:aws:iam::111122223333:role/Ops             every session of a role
 *     arn:aws:sts::111122223333:assumed-role/Ops/*   the same; `*` stands at the end only and matches any rest
 *     cognito:ana, cognito-group:ops                 a user and a group of the user pool
 */
import type { Asker } from '../domain/caller.ts';
import type { Job, JobSpec } from '../domain/job.ts';
import { EbbError } from '../kernel/errors.ts';
import type { Access } from '../ports/backend.ts';
import { quoted } from './validate.ts';

/** Throws `forbidden` for a job with another owner. */
export function checkOwner(access: Access | undefined, { owner }: Pick<JobSpec, 'owner'>, caller: Asker | null): void {
  if (access?.ownerIsCaller !== true) return;
  if (caller === null) throw unknownCaller();
  if (owner === (caller.name ?? caller.id)) return;
  throw new EbbError('forbidden', {
    what: 'jobs of this deployment belong to who submits them',
    at: 'owner',
    got: quoted(owner),
    allowed: `no owner, or ${quoted(caller.id)}`,
    next: 'Leave `owner` out of the job file.',
  });
}

/** Something that has an owner. */
interface Owned {
  readonly kind: 'job' | 'service';
  readonly name: string;
  readonly owner: string;
  /** Id of its submitter; undefined: not known. */
  readonly submitter: string | undefined;
}

/** Throws `forbidden` unless the caller submitted the job or is an administrator. */
export const checkMayChange = (access: Access | undefined, job: Job, caller: Asker | null): void =>
  checkMayChangeOwned(
    access,
    { kind: 'job', name: job.id, owner: job.spec.owner, submitter: job.submittedBy?.id },
    caller,
  );

export function checkMayChangeOwned(access: Access | undefined, of: Owned, caller: Asker | null): void {
  if (access?.ownerIsCaller !== true) return;
  if (caller === null) throw unknownCaller();
  if (of.submitter === caller.id || isAdmin(access.admins, caller)) return;
  const does = of.kind === 'job' ? 'cancel or release' : 'change';
  throw new EbbError('forbidden', {
    what: `only its owner or an administrator may ${does} this ${of.kind}`,
    got: `${of.name} of ${quoted(of.owner)}, asked by ${quoted(caller.id)}`,
    allowed: 'its submitter, or a caller among the deployment’s `admins`',
    next: 'Ask the owner, or an administrator.',
  });
}

const unknownCaller = (): EbbError =>
  new EbbError('forbidden', {
    what: 'this deployment takes changes only from callers whom it knows',
    got: 'a request without an authenticated caller',
    allowed: 'signed requests (`auth: iam`), or those with a token of the user pool (`auth: jwt`)',
    next: 'Send the request through the API of the deployment.',
  });

export const isAdmin = (admins: readonly string[], { id, groups = [] }: Asker): boolean =>
  admins.some(
    (admin) => matches(sessionsOf(admin), id) || groups.some((group) => matches(admin, `cognito-group:${group}`)),
  );

/** Literal or prefix match, linear in the pattern. */
const matches = (pattern: string, text: string): boolean =>
  pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : text === pattern;

/** Session pattern of a role. A role calls under a session ARN, which has its name without its path. */
function sessionsOf(pattern: string): string {
  const [, partition, account, path = ''] = /^arn:([\w-]+):iam::(\d{12}):role\/(.*)$/.exec(pattern) ?? [];
  if (partition === undefined || account === undefined) return pattern;
  const name = path.slice(path.lastIndexOf('/') + 1);
  return `arn:${partition}:sts::${account}:assumed-role/${name.endsWith('*') ? name : `${name}/*`}`;
}
