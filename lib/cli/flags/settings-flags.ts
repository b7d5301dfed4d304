export interface ConfigOptions {
  readonly presets?: boolean;
  readonly schema?: boolean;
}
