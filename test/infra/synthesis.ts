/** The deployment's templates, for tests to look at. Without code unless it is asked for: bundling takes seconds. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { App, Validations, type IPolicyValidationPlugin } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import type { CloudAssembly } from 'aws-cdk-lib/cx-api';
import type { DeploymentConfigInput } from '../../lib/infra/config.ts';
import { checkedDeployment } from '../../lib/infra/config-rules.ts';
import { ebbtideStacks, type EbbtideStacks } from '../../lib/infra/stacks.ts';

const ROOT = new URL('../../', import.meta.url);

export interface Synthesis {
  readonly stacks: EbbtideStacks;
  readonly data: Template;
  readonly main: Template;
}

/** No code. */
const QUICK = { 'aws:cdk:bundling-stacks': [] };

/**
 * A new app with the flags of cdk.json, in a folder of its own. The CDK's check against CloudFormation's schemas takes
 * seconds and is made where asked for (nag.suite.ts).
 */
export function newApp({ isChecked = false } = {}): App {
  const { context: flags } = JSON.parse(readFileSync(new URL('cdk.json', ROOT), 'utf8')) as {
    context: Record<string, unknown>;
  };
  const outdir = mkdtempSync(join(tmpdir(), 'ebb-cdk-'));
  folders.push(outdir);
  // Where each construct was made: nobody reads it here, and in jest it is dear.
  const stackTraces = false;
  return new App({ outdir, stackTraces, builtinCloudFormationValidation: isChecked, context: { ...flags, ...QUICK } });
}

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const made = new Map<string, Synthesis>();

/** Templates are only read: tests of one file share them. */
export function synthesis(input: DeploymentConfigInput = {}): Synthesis {
  const key = JSON.stringify(input);
  const before = made.get(key) ?? synthesised(input);
  made.set(key, before);
  return before;
}

function synthesised(input: DeploymentConfigInput): Synthesis {
  const stacks = ebbtideStacks(newApp(), checkedDeployment(input, 'test'));
  return { stacks, data: Template.fromStack(stacks.data), main: Template.fromStack(stacks.main) };
}

/**
 * Synthesises what `fill` puts into an app, with a validation plug-in; returns the assembly, or throws what is found.
 */
export function validated(plugin: (app: App) => IPolicyValidationPlugin, fill: (app: App) => void): CloudAssembly {
  const app = newApp({ isChecked: true });
  Validations.of(app).addPlugins(plugin(app));
  fill(app);
  return app.synth();
}

export interface Resource {
  readonly Type: string;
  readonly Properties: Record<string, unknown>;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
}

/** Resources of a type, by logical id. */
export const resourcesOf = (template: Template, type: string): Record<string, Resource> =>
  template.findResources(type) as Record<string, Resource>;

/** The one whose logical id begins so. */
export function resourceNamed(template: Template, type: string, start: string): Resource {
  const found = Object.entries(resourcesOf(template, type)).filter(([id]) => id.startsWith(start));
  const [only] = found;
  if (found.length !== 1 || only === undefined) {
    throw new Error(`${found.length} resources of ${type} begin with ${start}: ${found.map(([id]) => id).join()}`);
  }
  return only[1];
}
