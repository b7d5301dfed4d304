export interface ConfigOptions {
  readonly presets?: boolean;
  readonly policies?: boolean;
  readonly schema?: boolean;
  /** File. */
  readonly settings?: string;
}
