export interface BackupOptions {
  readonly dir: string;
  readonly logs?: boolean;
}

export interface RestoreOptions {
  readonly dir: string;
}
