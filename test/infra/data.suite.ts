import { beforeAll, describe, expect, it } from '@jest/globals';
import { Match, type Template } from 'aws-cdk-lib/assertions';
import { SUPERSEDED_TAG, tableDefinition } from '../../lib/drivers/aws/store/keys.ts';
import { resourceNamed, resourcesOf, synthesis, type Resource } from './synthesis.ts';

describe('the stack of data', () => {
  let data: Template;
  let main: Template;
  beforeAll(() => {
    ({ data, main } = synthesis());
  });

  it('holds the table and the bucket, and the other stack none', () => {
    for (const type of ['AWS::DynamoDB::Table', 'AWS::S3::Bucket']) {
      expect(Object.keys(resourcesOf(data, type))).toHaveLength(1);
      expect(Object.keys(resourcesOf(main, type))).toHaveLength(0);
    }
  });

  it('has the table that the store describes', () => {
    const table = resourceNamed(data, 'AWS::DynamoDB::Table', 'DataTable').Properties;
    const { TableName: _, AttributeDefinitions: attributes, ...described } = tableDefinition('any');
    expect(table).toMatchObject(described);
    const byName = (a: { AttributeName?: string | undefined }[]): unknown =>
      [...a].sort((x, y) => (x.AttributeName ?? '').localeCompare(y.AttributeName ?? ''));
    expect(byName(table['AttributeDefinitions'] as [])).toEqual(byName(attributes ?? []));
  });

  it('can be restored, is encrypted, and outlives its stack', () => {
    data.hasResource('AWS::DynamoDB::Table', {
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        DeletionProtectionEnabled: true,
        TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
        StreamSpecification: { StreamViewType: 'NEW_AND_OLD_IMAGES' },
      },
    });
    data.hasResource('AWS::S3::Bucket', {
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        BucketEncryption: Match.objectLike({}),
        VersioningConfiguration: { Status: 'Enabled' },
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
      },
    });
  });

  it('are not protected as stacks: the CDK deletes one whose first deployment failed, and makes it anew', () => {
    const { stacks } = synthesis({ keepData: true });
    expect([stacks.data, stacks.main].map((stack) => stack.terminationProtection)).toEqual([false, false]);
  });

  it('keeps nothing that has a name of ours: what a failed deployment leaves is in the way of no other', () => {
    const resources = [data, main].flatMap((t) =>
      Object.values((t.toJSON() as { Resources: Record<string, Resource> }).Resources),
    );
    const kept = resources.filter((r) => r.DeletionPolicy === 'Retain');
    expect(kept.map((r) => r.Type).sort()).toEqual([
      'AWS::ApiGateway::Account',
      'AWS::DynamoDB::Table',
      'AWS::IAM::Role',
      'AWS::Logs::LogGroup',
      'AWS::S3::Bucket',
    ]);
    for (const { Properties } of kept) {
      expect(Object.keys(Properties).filter((key) => /^(?:\w+)?Name$/.test(key))).toEqual([]);
    }
  });

  it('speaks TLS only', () => {
    data.hasResourceProperties('AWS::S3::BucketPolicy', {
      PolicyDocument: Match.objectLike({
        Statement: Match.arrayWith([
          Match.objectLike({ Effect: 'Deny', Action: 's3:*', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }),
        ]),
      }),
    });
  });

  it('lets what one cycle leaves expire', () => {
    const { LifecycleConfiguration } = resourceNamed(data, 'AWS::S3::Bucket', 'DataBlobs').Properties;
    const { Rules } = LifecycleConfiguration as { Rules: Record<string, unknown>[] };
    expect(Rules).toContainEqual(
      expect.objectContaining({
        Prefix: 'archive/',
        Transitions: [{ StorageClass: 'STANDARD_IA', TransitionInDays: 30 }],
      }),
    );
    expect(Rules).toContainEqual(expect.objectContaining({ Prefix: 'cycle/', ExpirationInDays: 1, Status: 'Enabled' }));
  });

  it('lets S3 delete what the store tags as superseded, and no other object of plans and memory', () => {
    const { LifecycleConfiguration } = resourceNamed(data, 'AWS::S3::Bucket', 'DataBlobs').Properties;
    const { Rules } = LifecycleConfiguration as { Rules: Record<string, unknown>[] };
    const expiring = Rules.filter((rule) => rule['ExpirationInDays'] !== undefined);
    expect(expiring.filter((rule) => rule['Prefix'] === undefined)).toEqual([
      expect.objectContaining({ TagFilters: [SUPERSEDED_TAG], ExpirationInDays: 1, Status: 'Enabled' }),
    ]);
    const prefixes = expiring.map((rule) => JSON.stringify(rule['Prefix'] ?? ''));
    expect(prefixes.filter((prefix) => /^"(plans|memory)/.test(prefix))).toEqual([]);
  });

  it('leaves the output of tasks when the other stack goes, and no other log', () => {
    const groups = Object.entries(resourcesOf(main, 'AWS::Logs::LogGroup'));
    const kept = groups.filter(([, group]) => group.DeletionPolicy === 'Retain');
    expect(kept.map(([id]) => id)).toEqual([expect.stringMatching(/CapacityTaskLogs/)]);
    expect(kept[0]?.[1].UpdateReplacePolicy).toBe('Retain');
  });

  it('goes with its stack where that was asked for', () => {
    const { data: trial, main: stateless } = synthesis({ keepData: false });
    expect(resourceNamed(stateless, 'AWS::Logs::LogGroup', 'EbbtideCapacityTaskLogs').DeletionPolicy).toBe('Delete');
    trial.hasResource('AWS::DynamoDB::Table', {
      DeletionPolicy: 'Delete',
      Properties: { DeletionProtectionEnabled: false },
    });
    trial.hasResource('AWS::S3::Bucket', { DeletionPolicy: 'Delete' });
  });

  describe('after a restore', () => {
    const streamArn =
      'arn:aws:dynamodb:eu-central-1:123456789012:table/ebbtide-restored/stream/2026-01-05T12:00:00.000';
    const outputs = (template: Template): unknown => (template.toJSON() as { Outputs?: unknown }).Outputs;
    const named = (template: Template): string => JSON.stringify(template.toJSON());

    it('works on the restored table alone', () => {
      const { main: adopted } = synthesis({ restoredTable: streamArn });
      const table = 'table/ebbtide-restored';
      for (const policy of Object.values(resourcesOf(adopted, 'AWS::IAM::Policy'))) {
        const { Statement } = (policy.Properties['PolicyDocument'] ?? {}) as { Statement?: { Action: unknown }[] };
        for (const statement of Statement ?? []) {
          if (!/dynamodb:(?!ListStreams)/.test(JSON.stringify(statement.Action))) continue;
          expect(JSON.stringify(statement)).toContain(table);
          expect(JSON.stringify(statement)).not.toContain('ImportValue');
        }
      }
      expect(named(adopted)).toContain('"EBB_TABLE":"ebbtide-restored"');
      expect(named(adopted)).toContain(streamArn);
      expect(named(adopted)).not.toMatch(/ImportValue":"EbbtideData:ExportsOutput\w*DataTable/);
    });

    it('keeps the old table, and what a deployed stack may still import of it', () => {
      const { data: adopted } = synthesis({ restoredTable: streamArn });
      expect(resourcesOf(adopted, 'AWS::DynamoDB::Table')).toEqual(resourcesOf(data, 'AWS::DynamoDB::Table'));
      const { TableName: _, ...before } = outputs(data) as Record<string, unknown>;
      expect(outputs(adopted)).toMatchObject(before);
      expect(outputs(adopted)).toMatchObject({ TableName: { Value: 'ebbtide-restored' } });
    });

    it('takes the ARN of a stream and nothing else', () => {
      for (const restoredTable of ['ebbtide-restored', streamArn.replace(/\/stream.*/, ''), 'arn:aws:s3:::x']) {
        expect(() => synthesis({ restoredTable })).toThrow(
          /restoredTable.*is no ARN of the stream of a DynamoDB table/s,
        );
      }
    });
  });
});
