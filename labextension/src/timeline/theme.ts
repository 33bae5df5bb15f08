import type { LiveState } from '../model/types';

/** How a state looks; its hatching tells it without colour. */
interface Look {
  /** What the legend says. */
  readonly text: string;
  /** Which part of a bar's height it takes. */
  readonly height: number;
  readonly hatch: 'none' | 'rising' | 'falling' | 'grid' | 'lines';
}

/** All states, in the order of the legend. The static diagram of a notebook has the same hatches. */
export const LOOKS: Readonly<Record<LiveState, Look>> = {
  running: { text: 'running', height: 1, hatch: 'none' },
  'blocked in recv': { text: 'blocked in recv', height: 0.7, hatch: 'rising' },
  'blocked in send': { text: 'blocked in send', height: 0.7, hatch: 'falling' },
  'blocked in collective': { text: 'in a collective', height: 0.7, hatch: 'grid' },
  'blocked in cell': { text: 'waits for a cell', height: 0.7, hatch: 'lines' },
  idle: { text: 'idle', height: 0.12, hatch: 'none' }
};

export const STATES = Object.keys(LOOKS) as LiveState[];

/** What the canvas is painted with: the theme's colours, for one resolution. */
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

/** Reads the colours from the style sheet, where they are taken from JupyterLab's. */
export function readTheme(element: Element, ratio: number): Theme {
  const style = getComputedStyle(element);
  const colour = (name: string, fallback: string): string =>
    style.getPropertyValue(`--sfm-${name}`).trim() || fallback;
  const plain = Object.fromEntries(
    STATES.map(state => [state, colour(state.replaceAll(' ', '-'), '#808080')])
  ) as Theme['plain'];
  const fills = Object.fromEntries(
    STATES.map(state => [state, hatched(plain[state], LOOKS[state].hatch, ratio) ?? plain[state]])
  ) as Theme['fills'];
  return {
    fills,
    plain,
    back: colour('back', '#fff'),
    stripe: colour('stripe', '#eee'),
    text: colour('text', '#000'),
    dim: colour('dim', '#777'),
    grid: colour('grid', '#ccc'),
    late: colour('late', '#d00'),
    chosen: colour('chosen', '#06c'),
    font: style.fontFamily || 'sans-serif'
  };
}

/** A colour with strokes of its own, stronger colour: a square of 6, as large as the screen's. */
function hatched(colour: string, hatch: Look['hatch'], ratio: number): CanvasPattern | null {
  if (hatch === 'none') {
    return null;
  }
  const size = Math.max(6, Math.round(6 * ratio));
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const context = tile.getContext('2d');
  if (!context) {
    return null;
  }
  context.fillStyle = context.strokeStyle = colour;
  context.globalAlpha = 0.4;
  context.fillRect(0, 0, size, size);
  context.globalAlpha = 1;
  context.lineWidth = (hatch === 'rising' || hatch === 'falling' ? 1.6 : 1.2) * (size / 6);
  context.scale(hatch === 'falling' ? -1 : 1, 1);
  context.translate(hatch === 'falling' ? -size : 0, 0);
  context.beginPath();
  if (hatch === 'grid' || hatch === 'lines') {
    context.moveTo(0, size / 2);
    context.lineTo(size, size / 2);
  } else {
    // Three strokes, so that they go on across the borders of the square.
    for (const x of [-size, 0, size]) {
      context.moveTo(x - 1, size + 1);
      context.lineTo(x + size + 1, -1);
    }
  }
  if (hatch === 'grid') {
    context.moveTo(size / 2, 0);
    context.lineTo(size / 2, size);
  }
  context.stroke();
  return context.createPattern(tile, 'repeat');
}

/** Calls when the theme or the resolution changes; returns how to stop it. */
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
