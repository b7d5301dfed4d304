/** Accepted findings of cdk-nag (pack AwsSolutions), each with its reason. docs/security.md lists them. */
import { Stack, Validations } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type { IConstruct } from 'constructs';

/** Reasons by rule, or by rule with the finding in brackets. */
export type Reasons = Readonly<Record<string, string>>;

export function acknowledge(construct: IConstruct, reasons: Reasons): void {
  for (const [id, reason] of Object.entries(reasons)) Validations.of(construct).acknowledge({ id, reason });
}

/**
 * Reasons why statements of a role name more than one resource, by `Sid`. `rest`: for statements of the CDK, which have
 * none. Each resource is acknowledged on its own, so a new wildcard is a new finding.
 */
export function acknowledgeWildcards(role: iam.Role, bySid: Reasons, rest?: string): void {
  // Validation phase: cdk-nag names findings by the template's resources, which are known once references are resolved.
  role.node.addValidation({
    validate: () => {
      for (const { sid, resources } of statementsOf(role)) {
        const reason = sid === undefined ? rest : bySid[sid];
        if (reason === undefined) continue;
        for (const resource of resources.filter((r) => r.includes('*'))) {
          acknowledge(role, { [`AwsSolutions-IAM5[Resource::${resource}]`]: reason });
        }
      }
      return [];
    },
  });
}

interface Statement {
  readonly sid: string | undefined;
  /** References are written as `<LogicalId.Attribute>`. */
  readonly resources: readonly string[];
}

function statementsOf(role: iam.Role): Statement[] {
  const policies = role.node.findAll().filter((c) => c instanceof iam.CfnPolicy);
  return policies.flatMap((policy) => {
    const document = Stack.of(role).resolve(policy.policyDocument) as { Statement: Record<string, unknown>[] };
    return document.Statement.map(({ Sid, Resource }) => ({
      sid: typeof Sid === 'string' ? Sid : undefined,
      resources: [Resource].flat().map(flattened),
    }));
  });
}

/** Value of a template in one line, with joins resolved and references in angle brackets. */
export function flattened(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return String(value);
  const [[kind, of] = ['', undefined]] = Object.entries(value) as [string, unknown][];
  switch (kind) {
    case 'Ref':
      return `<${String(of)}>`;
    case 'Fn::GetAtt':
      return `<${(of as string[]).join('.')}>`;
    case 'Fn::ImportValue':
      return flattened(of);
    case 'Fn::Join': {
      const [delimiter, parts] = of as [string, unknown[]];
      return parts.map(flattened).join(delimiter);
    }
    default:
      return JSON.stringify(value);
  }
}
