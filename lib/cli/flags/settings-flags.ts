export interface ConfigOptions {
  readonly presets?: boolean;
  readonly policies?: boolean;
  readonly schema?: boolean;
  /** Path of a file. */
  readonly settings?: string;
}
