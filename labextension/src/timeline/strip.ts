/** Pixels. */
const TILE = 256;

interface Tile {
  readonly element: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
}

type Paint = (
  context: CanvasRenderingContext2D,
  range: { readonly left: number; readonly right: number }
) => void;

/**
 * A wide image of two layers, which are painted on between two frames. It is cut into tiles:
 * a browser copies a complete canvas that was shown before it paints on it again. If both layers
 * are unchanged, a tile that combines them is shown: that costs a third.
 */
export class Strip {
  /** Makes it empty. */
  reset(width: number, height: number): void {
    const count = Math.ceil(width / TILE);
    for (const tiles of [this._below, this._above, this._joined]) {
      tiles.length = Math.min(tiles.length, count);
      while (tiles.length < count) {
        tiles.push(newTile(tiles === this._above));
      }
      tiles.forEach(({ element, context }, i) => {
        element.width = TILE;
        element.height = height;
        context.setTransform(1, 0, 0, 1, -i * TILE, 0);
      });
    }
    this._changed = new Set(this._joined.keys());
  }

  /** Calls for each tile that shares a pixel with [left, right), with the pixels that it shares. */
  paint(layer: 'below' | 'above', left: number, right: number, paint: Paint): void {
    const tiles = layer === 'below' ? this._below : this._above;
    tiles.forEach(({ context }, i) => {
      const range = { left: Math.max(left, i * TILE), right: Math.min(right, (i + 1) * TILE) };
      if (range.left < range.right) {
        paint(context, range);
        this._changed.add(i);
      }
    });
  }

  /** Puts a stretch of it onto another canvas; integer pixels stay sharp. */
  show(target: CanvasRenderingContext2D, left: number, width: number): void {
    this._joined.forEach((joined, i) => {
      const x = i * TILE - left;
      if (x + TILE <= 0 || x >= width) {
        return;
      }
      if (this._changed.delete(i)) {
        joined.context.drawImage(this._below[i]!.element, i * TILE, 0);
        joined.context.drawImage(this._above[i]!.element, i * TILE, 0);
      }
      target.drawImage(joined.element, x, 0);
    });
  }

  private readonly _below: Tile[] = [];
  private readonly _above: Tile[] = [];
  private readonly _joined: Tile[] = [];
  private _changed = new Set<number>();
}

function newTile(alpha: boolean): Tile {
  const element = document.createElement('canvas');
  const context = element.getContext('2d', { alpha });
  if (!context) {
    throw new Error('This browser cannot draw a timeline: it has no 2D canvas.');
  }
  return { element, context };
}
