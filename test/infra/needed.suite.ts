/** What preflight asks about is what the templates make. */
import { describe, expect, it } from '@jest/globals';
import { neededBy } from '../../lib/drivers/aws/preflight/needed.ts';
import type { DeploymentConfigInput } from '../../lib/infra/config.ts';
import { checkedDeployment } from '../../lib/infra/config-rules.ts';
import { synthesis } from './synthesis.ts';

const typesOf = (input: DeploymentConfigInput): string[] => {
  const { data, main } = synthesis(input);
  const resources = [data, main].flatMap((t) =>
    Object.values((t.toJSON() as { Resources: Record<string, { Type: string }> }).Resources),
  );
  return [...new Set(resources.map((r) => r.Type))].sort();
};

describe('the rights that preflight asks for', () => {
  it.each<[string, DeploymentConfigInput]>([
    ['the defaults', {}],
    ['services', { services: 'internal' }],
    [
      'a VPC that is there, tokens and mail',
      {
        vpc: { id: 'vpc-0a1b2c3d', subnets: { 'eu-central-1a': 'subnet-0a1b2c3d' } },
        auth: 'jwt',
        userPoolArn: 'arn:aws:cognito-idp:eu-central-1:111122223333:userpool/eu-central-1_abc',
        alarmEmail: 'me@example.com',
      },
    ],
  ])('are of each type of resource that is made, and of no other: %s', (_, input) => {
    const needed = neededBy(checkedDeployment(input, 'test'));
    expect(Object.keys(needed).sort()).toEqual(typesOf(input));
    for (const actions of Object.values(needed)) {
      expect(actions.length).toBeGreaterThan(0);
      expect(actions.filter((a) => !/^[a-z\d]+:[A-Z]\w+$/.test(a))).toEqual([]);
    }
  });
});
