/**
 * The rights of each role as the template gives them: read from the template alone, not from the code that wrote it.
 */
import type { Template } from 'aws-cdk-lib/assertions';
import { resourcesOf, type Resource } from './synthesis.ts';

export interface Statement {
  readonly sid: string | null;
  readonly effect: string;
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: Record<string, Record<string, unknown>>;
  readonly raw: Record<string, unknown>;
}

export interface Role {
  readonly id: string;
  readonly description: string;
  readonly trusted: readonly string[];
  readonly managed: readonly string[];
  readonly statements: readonly Statement[];
}

export function rolesOf(template: Template): readonly Role[] {
  const policies = Object.values(resourcesOf(template, 'AWS::IAM::Policy'));
  return Object.entries(resourcesOf(template, 'AWS::IAM::Role')).map(([id, { Properties }]) => ({
    id,
    description: (Properties['Description'] as string | undefined) ?? '',
    trusted: documentOf(Properties['AssumeRolePolicyDocument']).flatMap((s) =>
      Object.values(s.raw['Principal'] as Record<string, unknown>).flatMap((p) => shown(p)),
    ),
    managed: ((Properties['ManagedPolicyArns'] ?? []) as unknown[]).map(shown),
    statements: [
      ...policies.filter((p) => isOf(p, id)).flatMap((p) => documentOf(p.Properties['PolicyDocument'])),
      ...((Properties['Policies'] ?? []) as { PolicyDocument: unknown }[]).flatMap((p) => documentOf(p.PolicyDocument)),
    ],
  }));
}

const isOf = (policy: Resource, role: string): boolean =>
  (policy.Properties['Roles'] as { Ref?: string }[]).some((r) => r.Ref === role);

const documentOf = (document: unknown): Statement[] =>
  (document as { Statement: Record<string, unknown>[] }).Statement.map((raw) => ({
    sid: (raw['Sid'] as string | undefined) ?? null,
    effect: raw['Effect'] as string,
    actions: [raw['Action']].flat() as string[],
    resources: [raw['Resource'] ?? []].flat().map(shown),
    conditions: (raw['Condition'] ?? {}) as Statement['conditions'],
    raw,
  }));

/** A value of a template, references by the id of what they name. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value;
  const [entry] = Object.entries(value as Record<string, unknown>);
  if (entry === undefined) return '';
  const [kind, of] = entry;
  if (kind === 'Ref') return `{${String(of)}}`;
  if (kind === 'Fn::GetAtt') return `{${(of as string[]).join('.')}}`;
  if (kind === 'Fn::ImportValue') return `{${shown(of)}}`;
  if (kind === 'Fn::Join')
    return [(of as [string, unknown])[1]]
      .flat()
      .map(shown)
      .join((of as [string])[0]);
  if (kind === 'Fn::Split') return shown((of as [string, unknown])[1]).replaceAll((of as [string])[0], '|');
  if (kind === 'Fn::Select') return `{${shown((of as unknown[])[1])}.${String((of as unknown[])[0])}}`;
  if (kind === 'Fn::GetAZs') return 'zones';
  return JSON.stringify(value);
}

export interface AccessRequest {
  readonly action: string;
  readonly resource: string;
  /** Values of condition keys; one that is not here is not in the request. */
  readonly context: Readonly<Record<string, string>>;
}

/**
 * Whether statements that only allow do allow a request: IAM User Guide, "Policy evaluation logic", "IAM JSON policy
 * elements: Condition operators". References of the template are replaced by `names`, by the beginning of what they
 * name; account, region and partition by anything. Throws for an operator that it does not know.
 */
export const isAllowed = (
  statements: readonly Statement[],
  { action, resource, context }: AccessRequest,
  names: Readonly<Record<string, string>>,
): boolean =>
  statements.some(
    (s) =>
      s.actions.includes(action) &&
      s.resources.some((r) => isLike(named(r, names), resource)) &&
      Object.entries(s.conditions).every(([operator, keys]) =>
        Object.entries(keys).every(([key, wanted]) =>
          isMet(
            operator,
            context[key],
            [wanted].flat().map((w) => named(shown(w), names)),
          ),
        ),
      ),
  );

function isMet(operator: string, value: string | undefined, wanted: readonly string[]): boolean {
  const [, plain = '', ifExists] = /^(\w+?)(IfExists)?$/.exec(operator) ?? [];
  if (value === undefined) return ifExists !== undefined;
  switch (plain) {
    case 'StringEquals':
      return wanted.includes(value);
    case 'StringLike':
    case 'ArnLike':
    case 'ArnEquals':
      return wanted.some((w) => isLike(w, value));
    default:
      throw new Error(`the condition operator ${operator} is not known here`);
  }
}

const named = (text: string, names: Readonly<Record<string, string>>): string =>
  text.replaceAll(/\{AWS::\w+\}/g, '*').replaceAll(/\{(\w+)[^}]*\}/g, (whole, id: string) => {
    const start = Object.keys(names).find((n) => id.startsWith(n));
    return start === undefined ? whole : (names[start] ?? '');
  });

const isLike = (pattern: string, text: string): boolean =>
  new RegExp(
    `^${pattern
      .replaceAll(/[.+^$(){}|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  ).test(text);
