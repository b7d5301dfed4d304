import { schedulerConfig, type SchedulerConfig } from '../../domain/config.ts';
import { STAGES } from '../../domain/preset-spec.ts';
import type { Decider } from '../../drivers/sim/deciders.ts';
import { jobFileJsonSchema } from '../../domain/job-file/job-file.ts';
import type { OwnPolicy } from '../../policy/own/own-policy.ts';
import type { Action } from '../context.ts';
import { json, type Output } from '../output.ts';
import { table, type Column } from '../views/text-table.ts';
import type { ConfigOptions } from '../flags/settings-flags.ts';

export const config: Action<ConfigOptions> = async ({ output, json: asJson, world: { cwd } }, _args, options) => {
  if (options.schema === true) {
    output.line(JSON.stringify(jobFileJsonSchema(), null, 2));
    return;
  }
  if (options.presets === true) {
    await presets(output, asJson, await ownOf(options, cwd));
    return;
  }
  if (options.policies === true) {
    await policies(output, asJson, await ownOf(options, cwd));
    return;
  }
  if (asJson) {
    json(output, schedulerConfig.parse({}));
    return;
  }
  const settings = Object.entries(schedulerConfig.shape).map(([name, schema]) => ({
    name,
    value: JSON.stringify(schema.parse(undefined)),
    about: schema.description ?? '',
  }));
  output.line(
    table(
      output,
      [
        { title: 'SETTING', cell: (s) => s.name },
        { title: 'DEFAULT', cell: (s) => s.value, wrap: 10 },
        { title: 'MEANING', cell: (s) => s.about, wrap: 30 },
      ],
      settings,
      'no settings',
    ),
  );
  output.note('change one for a run: ebb run --set maxLateProbability=0.01 FILE');
};

interface Own {
  readonly presets: SchedulerConfig['presets'];
  readonly policies: readonly OwnPolicy[];
}

async function ownOf(options: ConfigOptions, cwd: string): Promise<Own> {
  const { givenSettings } = await import('../engine-options.ts');
  const { loadPolicies } = await import('../../drivers/local/policies/load-policies.ts');
  const { settings } = options;
  const given = givenSettings(settings === undefined ? {} : { settings }, cwd);
  return { presets: given.presets ?? {}, policies: await loadPolicies(given) };
}

async function presets(output: Output, asJson: boolean, own: Own): Promise<void> {
  const { deciderList } = await import('../../drivers/sim/deciders.ts');
  const list = deciderList(own.presets, own.policies);
  if (asJson) {
    json(output, list);
    return;
  }
  const columns: Column<Decider>[] = [
    { title: 'PRESET', cell: (p) => p.name },
    { title: 'WHAT IT DOES', cell: (p) => p.about, wrap: 26 },
    { title: 'POLICIES', cell: policiesText, wrap: 30 },
    { title: 'SOURCE', cell: (p) => p.source, wrap: 20 },
  ];
  output.line(table(output, columns, list, 'no presets'));
}

function policiesText({ policies: of, settings = {}, common = {} }: Decider): string {
  if (of === undefined) return 'its own';
  const lines = STAGES.flatMap((stage) => {
    if (of[stage] === 'none') return [];
    const given = Object.entries(settings[stage] ?? {}).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
    return `${stage}: ${of[stage]}${given.length === 0 ? '' : ` (${given.join(', ')})`}`;
  });
  const shared = Object.entries(common).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return [...lines, ...shared].join(', ');
}

async function policies(output: Output, asJson: boolean, own: Own): Promise<void> {
  const { policyList } = await import('../../stages/registry.ts');
  const list = policyList(own.policies);
  if (asJson) {
    json(output, list);
    return;
  }
  const columns = [
    { title: 'STAGE', cell: (p: (typeof list)[number]) => p.stage },
    { title: 'POLICY', cell: (p: (typeof list)[number]) => p.name },
    { title: 'WHAT IT DOES', cell: (p: (typeof list)[number]) => p.about, wrap: 26 },
    { title: 'SOURCE', cell: (p: (typeof list)[number]) => p.source, wrap: 22 },
    { title: 'SETTINGS', cell: (p: (typeof list)[number]) => p.settings.join(', '), wrap: 18 },
  ];
  output.line(table(output, columns, list, 'no policies'));
}
