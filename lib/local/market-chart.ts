export interface Panel {
  readonly title: string;
  /** Name of the horizontal axis. */
  readonly unit: string;
  readonly curves: readonly { readonly name: string; readonly points: readonly (readonly [number, number])[] }[];
}
export async function distributionCharts(_panels: readonly Panel[]): Promise<string> { return ''; }
