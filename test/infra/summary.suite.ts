/** The deployment at a glance: a change of what is made shows here, in a few lines. */
import { describe, expect, it } from '@jest/globals';
import type { Template } from 'aws-cdk-lib/assertions';
import { resourcesOf, synthesis } from './synthesis.ts';

const counts = (template: Template): string[] => {
  const all = Object.values((template.toJSON() as { Resources: Record<string, { Type: string }> }).Resources);
  return [...Map.groupBy(all, (r) => r.Type)].map(([type, of]) => `${of.length} ${type}`).sort();
};

describe('a deployment with the defaults', () => {
  const { data, main } = synthesis();

  it('is made of', () => {
    expect({ data: counts(data), main: counts(main) }).toMatchSnapshot();
  });

  it('has functions of this size', () => {
    const sizes = Object.entries(resourcesOf(main, 'AWS::Lambda::Function')).map(([id, { Properties: p }]) => {
      const name = id.replace(/^EbbtideFunctions/, '').replace(/[\dA-F]{8}$/, '');
      return `${name}: ${String(p['MemorySize'])} MB, ${String(p['Timeout'])} s`;
    });
    expect(sizes.sort()).toMatchSnapshot();
  });

  it('says where it can be reached', () => {
    expect(Object.keys(main.findOutputs('*')).sort()).toMatchSnapshot();
  });
  it.each([
    ['aws', '${region}.console.aws.amazon.com'],
    ['aws-cn', 'console.amazonaws.cn'],
    ['aws-us-gov', 'console.amazonaws-us-gov.com'],
  ])('names the console of %s', (partition, host) => {
    const { Conditions, Outputs } = main.toJSON() as {
      Conditions: Record<string, { 'Fn::Equals': [unknown, string] }>;
      Outputs: { Dashboard: { Value: unknown } };
    };
    const evaluated = (value: unknown): string => {
      if (typeof value === 'string') return value;
      const { Ref, 'Fn::If': choice, 'Fn::Join': join } = value as Record<string, [string, unknown, unknown]>;
      if (choice !== undefined) {
        const [left, right] = Conditions[choice[0]]?.['Fn::Equals'] ?? [];
        expect(left).toEqual({ Ref: 'AWS::Partition' });
        return evaluated(choice[right === partition ? 1 : 2]);
      }
      if (join !== undefined) return (join[1] as unknown[]).map(evaluated).join(join[0]);
      expect(Ref).toBe('AWS::Region');
      return '${region}';
    };
    expect(evaluated(Outputs.Dashboard.Value)).toBe(
      `https://${host}/cloudwatch/home?region=\${region}#dashboards/dashboard/ebbtide`,
    );
  });
});
