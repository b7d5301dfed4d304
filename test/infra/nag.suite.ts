import { describe, expect, it } from '@jest/globals';
import { Bucket } from 'aws-cdk-lib/aws-s3';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { AwsSolutionsChecks } from 'cdk-nag';
import type { App } from 'aws-cdk-lib';
import type { DeploymentConfigInput } from '../../lib/infra/config.ts';
import { validated } from './synthesis.ts';

const nag = (app: App): AwsSolutionsChecks => new AwsSolutionsChecks(app);

/** Between them, every branch of the configuration that changes what is made. */
const CASES: readonly (readonly [string, DeploymentConfigInput])[] = [
  ['the defaults', {}],
  [
    'a known region, a VPC that is there, tokens, a trial on ARM',
    {
      account: '123456789012',
      region: 'eu-central-1',
      vpc: { id: 'vpc-0a1b2c3d', subnets: { 'eu-central-1a': 'subnet-0a1b2c3d' } },
      auth: 'jwt',
      userPoolArn: 'arn:aws:cognito-idp:eu-central-1:123456789012:userpool/eu-central-1_abc',
      alarmEmail: 'ops@example.com',
      families: ['c7g'],
      keepData: false,
    },
  ],
];

describe('cdk-nag (AwsSolutions) and the CDK’s own validation', () => {
  it.each(CASES)('find nothing without a written reason: %s', (_, input) => {
    // Synthesis throws when a validation finds anything.
    expect(validated(input, nag).stacks).toHaveLength(2);
  });

  it('do look: a bucket without encryption in transit and a new wildcard are found', () => {
    const findings = (): unknown =>
      validated({}, nag, ({ main }) => {
        new Bucket(main, 'Open');
        main.ebbtide.functions.api.addToRolePolicy(
          new PolicyStatement({ sid: 'New', actions: ['s3:GetObject'], resources: ['arn:aws:s3:::other/*'] }),
        );
      });
    const said = messageOf(findings);
    expect(said).toMatch(/AwsSolutions-S10/);
    expect(said).toMatch(/AwsSolutions-IAM5\[Resource::arn:aws:s3:::other\/\*\]/);
  });
});

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  return '';
}
