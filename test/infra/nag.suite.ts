import { describe, expect, it } from '@jest/globals';
import { Stack, type App } from 'aws-cdk-lib';
import { AccountRootPrincipal, PolicyStatement, Role } from 'aws-cdk-lib/aws-iam';
import { CfnBucket } from 'aws-cdk-lib/aws-s3';
import { AwsSolutionsChecks } from 'cdk-nag';
import type { DeploymentConfigInput } from '../../lib/infra/config.ts';
import { checkedDeployment } from '../../lib/infra/config-rules.ts';
import { ebbtideStacks } from '../../lib/infra/stacks.ts';
import { validated } from './synthesis.ts';

const nag = (app: App): AwsSolutionsChecks => new AwsSolutionsChecks(app);

/** Between them, every branch of the configuration that changes what is made. */
const CASES: readonly (readonly [string, DeploymentConfigInput])[] = [
  ['the defaults', {}],
  ['services that the internet reaches', { services: 'public' }],
  [
    'a known region, a VPC that is there, services, tokens, reservations, a trial on ARM',
    {
      account: '123456789012',
      region: 'eu-central-1',
      vpc: {
        id: 'vpc-0a1b2c3d',
        subnets: { 'eu-central-1a': 'subnet-0a1b2c3d', 'eu-central-1b': 'subnet-0a1b2c3e' },
      },
      services: 'internal',
      servicesCertificateArn: 'arn:aws:acm:eu-central-1:123456789012:certificate/0a1b2c3d',
      auth: 'jwt',
      userPoolArn: 'arn:aws:cognito-idp:eu-central-1:123456789012:userpool/eu-central-1_abc',
      alarmEmail: 'ops@example.com',
      families: ['c7g'],
      keepData: false,
      reservations: ['cr-0a1b2c3d4e5f60718'],
    },
  ],
];

describe('cdk-nag (AwsSolutions) and the CDK’s own validation', () => {
  it.each(CASES)('find nothing without a written reason: %s', (_, input) => {
    // Synthesis throws when a validation finds anything.
    const assembly = validated(nag, (app) => ebbtideStacks(app, checkedDeployment(input, 'test')));
    expect(assembly.stacks).toHaveLength(2);
  });

  it('do look: no encryption in transit, a new wildcard and a property that there is not are found', () => {
    const findings = (): unknown =>
      validated(nag, (app) => {
        const stack = new Stack(app, 'Wrong');
        new CfnBucket(stack, 'Open').addPropertyOverride('NoSuchProperty', true);
        const wide = new PolicyStatement({ actions: ['s3:GetObject'], resources: ['arn:aws:s3:::other/*'] });
        new Role(stack, 'Role', { assumedBy: new AccountRootPrincipal() }).addToPolicy(wide);
      });
    const said = messageOf(findings);
    expect(said).toMatch(/AwsSolutions-S10/);
    expect(said).toMatch(/AwsSolutions-IAM5\[Resource::arn:aws:s3:::other\/\*\]/);
    expect(said).toMatch(/NoSuchProperty/);
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
