import type { LiveState } from '../model/types';
import styles from './states.json';

/** The style of a state; its hatching distinguishes it without colour. */
interface Style {
  /** The legend's words. */
  readonly text: string;
  /** The style sheet's variable for the colour, and the colour without that variable. */
  readonly colour: string;
  readonly fallback: string;
  /** The fraction of a bar's height that it takes. */
  readonly height: number;
  /** An SVG path in a square of 6: strokes in one direction or the other, a grid, lines; or none. */
  readonly hatch: string;
}

/** All states, in the order of the legend; a notebook's still drawing uses them, too. */
export const STYLES: Readonly<Record<LiveState, Style>> = styles;

export const STATES = Object.keys(STYLES) as LiveState[];

/** The colours and patterns of the canvas: the theme's, for one resolution. */
export interface Theme {
  readonly fills: Readonly<Record<LiveState, string | CanvasPattern>>;
  /** For bars that are too narrow for a hatching. */
  readonly plain: Readonly<Record<LiveState, string>>;
  readonly back: string;
  readonly stripe: string;
  readonly text: string;
  readonly dim: string;
  readonly grid: string;
  readonly late: string;
  readonly chosen: string;
  readonly font: string;
}

/** Reads the colours from the style sheet, which takes them from JupyterLab's. */
export function readTheme(element: Element, ratio: number): Theme {
  const style = getComputedStyle(element);
  const colour = (name: string, fallback: string): string =>
    style.getPropertyValue(name).trim() || fallback;
  const plain = Object.fromEntries(
    STATES.map(state => [state, colour(STYLES[state].colour, STYLES[state].fallback)])
  ) as Theme['plain'];
  const fills = Object.fromEntries(
    STATES.map(state => [state, hatched(plain[state], STYLES[state].hatch, ratio) ?? plain[state]])
  ) as Theme['fills'];
  return {
    fills,
    plain,
    back: colour('--sfm-back', '#fff'),
    stripe: colour('--sfm-stripe', '#eee'),
    text: colour('--sfm-text', '#000'),
    dim: colour('--sfm-dim', '#777'),
    grid: colour('--sfm-grid', '#ccc'),
    late: colour('--sfm-late', '#d00'),
    chosen: colour('--sfm-chosen', '#06c'),
    font: style.fontFamily || 'sans-serif'
  };
}

/** A colour hatched with a stronger one: a square of 6, scaled to the screen. */
function hatched(colour: string, hatch: string, ratio: number): CanvasPattern | null {
  const size = Math.max(6, Math.round(6 * ratio));
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const context = tile.getContext('2d');
  if (!context || hatch === '') {
    return null;
  }
  context.fillStyle = context.strokeStyle = colour;
  context.globalAlpha = 0.4;
  context.fillRect(0, 0, size, size);
  context.globalAlpha = 1;
  context.lineWidth = 1.4;
  context.scale(size / 6, size / 6);
  context.stroke(new Path2D(hatch));
  return context.createPattern(tile, 'repeat');
}

/** Calls when the theme or the resolution changes; returns a function that stops this. */
export function watchTheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  const attributeFilter = ['data-jp-theme-light', 'data-jp-theme-name'];
  observer.observe(document.body, { attributes: true, attributeFilter });
  let resolution: MediaQueryList | null = null;
  const follow = (): void => {
    resolution?.removeEventListener('change', onResolution);
    resolution = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    resolution.addEventListener('change', onResolution);
  };
  const onResolution = (): void => {
    follow();
    changed();
  };
  follow();
  return () => {
    observer.disconnect();
    resolution?.removeEventListener('change', onResolution);
  };
}
