/** What the engine's thread is started with; the rest it reads from the directory's world. */
export interface EngineThreadData {
  readonly dir: string;
  readonly database: string;
  readonly dumpModel: string | null;
}

/** wake: there may be something to do; drain: stop tasks, give back instances, then end; end: end now, leave all as it is. */
export type ToEngine = { readonly do: 'wake' } | { readonly do: 'drain' } | { readonly do: 'end' };

export type FromEngine =
  | { readonly is: 'ready' }
  /** `idle`: nothing is left to do until the next wake. */
  | { readonly is: 'cycle'; readonly atMs: number; readonly live: number; readonly idle: boolean }
  | { readonly is: 'fault'; readonly text: string }
  | { readonly is: 'ended' };
