import type { ServiceSpec } from '../service.ts';
import { readDocuments, type TextOptions } from '../job-file/text.ts';
import { normaliseService, type ServiceOptions } from './normalise.ts';

/**
 * Services of a text (YAML, where several documents are several services, or JSON), at least one. Pure. Throws EbbError
 * only: `job-file.syntax`, `body-too-large`, `service-file.invalid`, each finding with its place.
 */
export const parseServices = (text: string, options: ServiceOptions & TextOptions): readonly ServiceSpec[] =>
  readDocuments(text, options).map(({ json, locate }) => normaliseService(json, options, locate));

export { isServiceFile, normaliseService, type ServiceOptions } from './normalise.ts';
