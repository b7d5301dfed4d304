/**
 * Changes of a rehearsal to the app's synthesised template. LocalStack 4.9.2 makes no clusters, launch templates and
 * dashboards, and would resolve references to them as `unknown`. So they are removed; the double has the first two, and
 * references get their names. The runtime nodejs24.x is replaced too, because LocalStack refuses it; functions run on
 * the local Node anyway.
 */

interface Resource {
  readonly Type: string;
  readonly Properties?: Readonly<Record<string, unknown>>;
  readonly DependsOn?: string | readonly string[];
}

export interface Template {
  readonly Resources: Readonly<Record<string, Resource>>;
}

export interface Changes {
  /** Values of `Ref` (`Ref`) and `Fn::GetAtt` (attribute) for each removed type. */
  readonly elsewhere: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Variables of every function of Ebbtide, over those of the construct. */
  readonly functions: Readonly<Record<string, string>>;
  /** Period of every schedule: a rehearsal cannot wait ten minutes for prices. */
  readonly schedule: string;
}

const KNOWN_RUNTIME = 'nodejs22.x';

export function rehearsed(template: Template, { elsewhere, functions, schedule }: Changes): Template {
  const gone = new Map(
    Object.entries(template.Resources).flatMap(([id, { Type }]) =>
      elsewhere[Type] === undefined ? [] : [[id, elsewhere[Type]] as const],
    ),
  );
  const { Resources, ...rest } = resolved(template, gone) as Template;
  const kept = Object.entries(Resources).filter(([id]) => !gone.has(id));
  const changed = kept.map(([id, resource]) => {
    const { DependsOn = [], ...own } = changedResource(resource, { functions, schedule });
    const depends = [DependsOn].flat().filter((other) => !gone.has(other));
    return [id, depends.length === 0 ? own : { ...own, DependsOn: depends }] as const;
  });
  return { ...rest, Resources: Object.fromEntries(changed) };
}

function changedResource(resource: Resource, { functions, schedule }: Omit<Changes, 'elsewhere'>): Resource {
  const { Type, Properties = {} } = resource;
  switch (Type) {
    case 'AWS::Lambda::Function': {
      const { Variables = {} } = (Properties['Environment'] ?? {}) as { Variables?: Record<string, unknown> };
      // Marker of our functions; those of the CDK have other variables.
      const isOurs = 'POWERTOOLS_SERVICE_NAME' in Variables;
      const Environment = isOurs ? { Variables: { ...Variables, ...functions } } : Properties['Environment'];
      return { ...resource, Properties: { ...Properties, Runtime: KNOWN_RUNTIME, Environment } };
    }
    case 'AWS::Events::Rule':
      if (Properties['ScheduleExpression'] === undefined) return resource;
      return { ...resource, Properties: { ...Properties, ScheduleExpression: schedule } };
    default:
      return resource;
  }
}

type Attributes = Readonly<Record<string, string>>;

/** Value with references to removed resources replaced. */
function resolved(value: unknown, gone: ReadonlyMap<string, Attributes>): unknown {
  if (Array.isArray(value)) return value.map((item) => resolved(item, gone));
  if (typeof value !== 'object' || value === null) return value;
  const { Ref: ref, 'Fn::GetAtt': attribute } = value as { Ref?: string; 'Fn::GetAtt'?: readonly [string, string] };
  const [id, name] = attribute ?? [ref ?? '', 'Ref'];
  const attributes = gone.get(id);
  if (attributes === undefined) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolved(inner, gone)]));
  }
  const known = attributes[name];
  if (known === undefined) throw new Error(`the template asks for ${name} of ${id}, which is not in it`);
  return known;
}

/** Data of the launch template as CreateLaunchTemplate takes it; CloudFormation uses the same names. */
export function launchTemplateData(template: Template, elsewhere: Changes['elsewhere']): Record<string, unknown> {
  const found = Object.values(template.Resources).filter(({ Type }) => Type === 'AWS::EC2::LaunchTemplate');
  if (found.length !== 1) throw new Error(`${found.length} launch templates`);
  const gone = new Map(
    Object.entries(template.Resources).map(([id, { Type }]) => [
      id,
      // Resources that the double ignores: roles, security groups.
      elsewhere[Type] ?? { Ref: id, Arn: id, GroupId: id },
    ]),
  );
  return evaluated(resolved(found[0]?.Properties?.['LaunchTemplateData'], gone)) as Record<string, unknown>;
}

/** Value of CloudFormation functions, as far as a launch template uses them. */
function evaluated(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(evaluated);
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, evaluated(part)]));
  if ('Fn::Base64' in inner) return Buffer.from(String(inner['Fn::Base64'])).toString('base64');
  if (!('Fn::Join' in inner)) return inner;
  const [separator, parts] = inner['Fn::Join'] as [string, string[]];
  return parts.join(separator);
}
