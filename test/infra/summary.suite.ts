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
});
