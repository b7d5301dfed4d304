/** Colours of the report in two themes: hues of Okabe and Ito, distinct also without colour vision. */
export interface Palette {
  readonly background: string;
  readonly panel: string;
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly accent: string;
  readonly bad: string;
  readonly good: string;
  readonly work: string;
  readonly wasted: string;
  readonly speculative: string;
  readonly moved: string;
  readonly idle: string;
  readonly reserved: string;
  readonly onDemand: string;
  readonly spot: string;
  /** Colours of presets, in their order. */
  readonly series: readonly string[];
}

export type Theme = 'light' | 'dark';

export const PALETTES: Readonly<Record<Theme, Palette>> = {
  light: {
    background: '#ffffff',
    panel: '#f5f6f9',
    text: '#1f2430',
    faint: '#5a6273',
    line: '#dfe3ea',
    accent: '#00609a',
    bad: '#b3261e',
    good: '#00694f',
    work: '#0072b2',
    wasted: '#d55e00',
    speculative: '#cc79a7',
    moved: '#009e73',
    idle: '#b8bfcc',
    reserved: '#7a8294',
    onDemand: '#e69f00',
    spot: '#0072b2',
    series: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b58900', '#56b4e9', '#1f2430'],
  },
  dark: {
    background: '#14171f',
    panel: '#1c202a',
    text: '#e8ebf2',
    faint: '#a2abbd',
    line: '#303644',
    accent: '#7cc4f0',
    bad: '#ff8a80',
    good: '#4fd1a5',
    work: '#56b4e9',
    wasted: '#e8743b',
    speculative: '#d994bb',
    moved: '#2fc796',
    idle: '#5c6577',
    reserved: '#8b94a7',
    onDemand: '#e69f00',
    spot: '#56b4e9',
    series: ['#56b4e9', '#e8743b', '#2fc796', '#d994bb', '#f0e442', '#8fa8ff', '#e8ebf2'],
  },
};

export const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
