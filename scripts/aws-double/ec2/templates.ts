import { z } from 'zod';
import { action, Tokens, type Actions } from '../api.ts';
import { hexOf } from '../events.ts';
import { AwsFault } from '../fault.ts';
import { nowMs, type Place } from '../place.ts';
import type { tagList } from '../query.ts';
import { filters, form, page, tagSpecifications, XmlList, type XmlValue } from '../query.ts';

/** Version of a launch template, with its data under the names of the request. */
export interface TemplateVersion {
  readonly templateId: string;
  readonly templateName: string;
  readonly number: number;
  readonly createdMs: number;
  readonly description: string | undefined;
  readonly data: TemplateData;
}
type TemplateData = z.infer<typeof templateData>;

interface Template {
  readonly id: string;
  readonly name: string;
  readonly tags: z.infer<typeof tagList>;
  readonly versions: TemplateVersion[];
  /** Default version: 1 until ModifyLaunchTemplate sets another. */
  defaultVersion: number;
}

/** Data of a template. Parts that the double reads are typed; the rest is kept as it came. */
const templateData = z.looseObject({
  InstanceType: z.string().optional(),
  ImageId: z.string().optional(),
  /** Base64. */
  UserData: z.string().optional(),
  TagSpecification: tagSpecifications,
});

const create = z.strictObject({
  LaunchTemplateName: z.string().regex(/^[a-zA-Z0-9().\-/_]{3,128}$/),
  ClientToken: z.string().max(128).optional(),
  VersionDescription: z.string().max(255).optional(),
  LaunchTemplateData: templateData,
  TagSpecification: tagSpecifications,
});

const createVersion = z.strictObject({
  LaunchTemplateId: z.string().optional(),
  LaunchTemplateName: z.string().optional(),
  ClientToken: z.string().max(128).optional(),
  VersionDescription: z.string().max(255).optional(),
  LaunchTemplateData: templateData,
});

const modify = z.strictObject({
  LaunchTemplateId: z.string().optional(),
  LaunchTemplateName: z.string().optional(),
  /** Name of the SDK's `DefaultVersion` in a request. */
  SetDefaultVersion: z.string(),
});

const describe = z.strictObject({
  LaunchTemplateId: z.string().optional(),
  LaunchTemplateName: z.string().optional(),
  LaunchTemplateVersion: z.array(z.string()).default([]),
  MaxResults: form.number.min(1).max(200).default(200),
  NextToken: z.string().optional(),
  Filter: filters,
});

export interface TemplateName {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
}

/** Launch templates. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-launch-templates.html */
export class Templates {
  readonly #place: Place;
  readonly #byId = new Map<string, Template>();
  readonly #tokens = new Tokens<Template>();

  constructor(place: Place) {
    this.#place = place;
  }

  readonly actions: Actions<{ readonly [name: string]: XmlValue }> = {
    CreateLaunchTemplate: action(create, async (asked) => {
      // https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateLaunchTemplate.html
      const template = await this.#tokens.once(asked.ClientToken, asked, {
        answer: async () => this.#create(asked),
        mismatch: () => new AwsFault('IdempotentParameterMismatch', 'The client token was used with other parameters'),
      });
      return { launchTemplate: this.#shown(template) };
    }),
    // New version; the default version stays.
    // https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateLaunchTemplateVersion.html
    CreateLaunchTemplateVersion: action(createVersion, (asked) => {
      const template = this.#named({ id: asked.LaunchTemplateId, name: asked.LaunchTemplateName });
      const version = this.#versionOf(template, asked.LaunchTemplateData, asked.VersionDescription);
      template.versions.push(version);
      return { launchTemplateVersion: versionShown(version, template, this.#author) };
    }),
    // https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifyLaunchTemplate.html
    ModifyLaunchTemplate: action(modify, (asked) => {
      const template = this.#named({ id: asked.LaunchTemplateId, name: asked.LaunchTemplateName });
      template.defaultVersion = versionOf(template, asked.SetDefaultVersion).number;
      return { launchTemplate: this.#shown(template) };
    }),
    DescribeLaunchTemplateVersions: action(describe, (asked) => {
      if (asked.Filter.length > 0)
        throw new AwsFault('InvalidParameterValue', 'the double filters no template versions');
      const template = this.#named({ id: asked.LaunchTemplateId, name: asked.LaunchTemplateName });
      const wanted = asked.LaunchTemplateVersion;
      const versions = wanted.length === 0 ? template.versions : wanted.map((version) => versionOf(template, version));
      const { items, nextToken } = page(versions, { token: asked.NextToken, size: asked.MaxResults });
      return {
        launchTemplateVersionSet: items.map((version) => versionShown(version, template, this.#author)),
        nextToken,
      };
    }),
  };

  get #author(): string {
    return `arn:aws:iam::${this.#place.account}:root`;
  }

  /** `version`: a number, `$Latest` or `$Default`. */
  find(name: TemplateName, version: string): TemplateVersion {
    return versionOf(this.#named(name), version);
  }

  #create(asked: z.infer<typeof create>): Template {
    const name = asked.LaunchTemplateName;
    if ([...this.#byId.values()].some((known) => known.name === name)) {
      throw new AwsFault(
        'InvalidLaunchTemplateName.AlreadyExistsException',
        `Launch template name already in use: ${name}`,
      );
    }
    const id = `lt-0${hexOf(`${name}/${this.#byId.size}`, 16)}`;
    const tags = asked.TagSpecification.filter((s) => s.ResourceType === 'launch-template').flatMap((s) => s.Tag);
    const template: Template = { id, name, tags, versions: [], defaultVersion: 1 };
    template.versions.push(this.#versionOf(template, asked.LaunchTemplateData, asked.VersionDescription));
    this.#byId.set(id, template);
    return template;
  }

  /** Next version of a template. */
  #versionOf({ id, name, versions }: Template, data: TemplateData, description: string | undefined): TemplateVersion {
    const number = versions.length + 1;
    return { templateId: id, templateName: name, number, createdMs: nowMs(this.#place), description, data };
  }

  /**
   * Throws InvalidLaunchTemplate*.NotFound*:
   * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
   */
  #named({ id, name }: TemplateName): Template {
    if ((id === undefined) === (name === undefined)) {
      throw new AwsFault('InvalidParameterCombination', 'Specify either the ID or the name of the launch template');
    }
    const found = [...this.#byId.values()].find((t) => t.id === id || t.name === name);
    if (found !== undefined) return found;
    if (id !== undefined) {
      throw new AwsFault(
        'InvalidLaunchTemplateId.NotFound',
        `The specified launch template, with template ID ${id}, does not exist.`,
      );
    }
    throw new AwsFault(
      'InvalidLaunchTemplateName.NotFoundException',
      `The specified launch template, with template name ${name ?? ''}, does not exist.`,
    );
  }

  #shown(template: Template): XmlValue {
    const [first] = template.versions;
    return {
      launchTemplateId: template.id,
      launchTemplateName: template.name,
      createTime: new Date(first?.createdMs ?? 0),
      createdBy: this.#author,
      defaultVersionNumber: template.defaultVersion,
      latestVersionNumber: template.versions.length,
      tagSet: template.tags.map(({ Key, Value }) => ({ key: Key, value: Value })),
    };
  }
}

/**
 * Tags of the template's instances and of the request, which win.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-tags.html
 */
export function taggedBy(template: TemplateVersion, asked: z.infer<typeof tagSpecifications>): Map<string, string> {
  const specified = [...template.data.TagSpecification, ...asked].filter((s) => s.ResourceType === 'instance');
  return new Map([
    ...specified.flatMap((s) => s.Tag.map(({ Key, Value }): [string, string] => [Key, Value])),
    ['aws:ec2launchtemplate:id', template.templateId],
    ['aws:ec2launchtemplate:version', String(template.number)],
  ]);
}

function versionOf(template: Template, version: string): TemplateVersion {
  const number =
    version === '$Latest'
      ? template.versions.length
      : version === '$Default'
        ? template.defaultVersion
        : Number(version);
  const found = template.versions.find((v) => v.number === number);
  if (found !== undefined) return found;
  throw new AwsFault(
    'InvalidLaunchTemplateId.VersionNotFound',
    `Could not find the specified version ${version} for the launch template with ID ${template.id}.`,
  );
}

const versionShown = (version: TemplateVersion, { defaultVersion }: Template, author: string): XmlValue => ({
  launchTemplateId: version.templateId,
  launchTemplateName: version.templateName,
  versionNumber: version.number,
  versionDescription: version.description,
  createTime: new Date(version.createdMs),
  createdBy: author,
  defaultVersion: version.number === defaultVersion,
  launchTemplateData: renamed(version.data, 'LaunchTemplateData'),
});

/** Names of a request (`BlockDeviceMapping`) in the form of an answer (`blockDeviceMappingSet`). */
function renamed(data: Readonly<Record<string, unknown>>, within: string): XmlValue {
  return Object.fromEntries(
    Object.entries(data).flatMap(([name, value]) => {
      if (!Array.isArray(value)) return [[lower(name), shown(value, name)]];
      if (value.length === 0) return [];
      const items = value.map((item) => shown(item, name));
      if (name === 'SecurityGroupId' && within === 'NetworkInterface')
        return [['groupSet', new XmlList('groupId', items)]];
      return [[`${lower(name)}Set`, items]];
    }),
  );
}

const shown = (value: unknown, name: string): XmlValue =>
  typeof value === 'object' && value !== null ? renamed(value as Record<string, unknown>, name) : String(value);

const lower = (name: string): string => name.charAt(0).toLowerCase() + name.slice(1);
