/** Resources of the deployment's template, by logical id: synthesised with defaults, services and without code. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { checkedDeployment } from '../../lib/infra/config-rules.ts';
import { ebbtideStacks } from '../../lib/infra/stacks.ts';

interface Resource {
  readonly Type: string;
  readonly Properties: Record<string, unknown>;
}
export type Resources = Readonly<Record<string, Resource>>;

export function templateResources(): Resources {
  const outdir = mkdtempSync(join(tmpdir(), 'ebb-docs-'));
  try {
    const { context } = JSON.parse(readFileSync(new URL('../../cdk.json', import.meta.url), 'utf8')) as {
      context: object;
    };
    const app = new App({ outdir, context: { ...context, 'aws:cdk:bundling-stacks': [] } });
    const { main } = ebbtideStacks(app, checkedDeployment({ services: 'internal' }, 'docs'));
    const { template } = app.synth().getStackByName(main.stackName) as { template: { Resources: Resources } };
    return template.Resources;
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}
