/** The most bins; more are joined in pairs. */
const MOST = 300;
/** The initial length of a bin in seconds. */
const FINEST = 1e-6;

/**
 * The number of messages over time, for the overview: counts in bins that become wider as the
 * time grows. Adding one costs O(1) at any length of the history.
 */
export class Density {
  /** The length of each bin in seconds. */
  get width(): number {
    return this._width;
  }

  add(time: number, late: boolean): void {
    if (this._counts.size === 0) {
      this._width = FINEST;
      this._first = this._last = Math.floor(time / FINEST);
    }
    let bin = Math.floor(time / this._width);
    while (Math.max(this._last, bin) - Math.min(this._first, bin) >= MOST) {
      this._widen();
      bin = Math.floor(time / this._width);
    }
    this._first = Math.min(this._first, bin);
    this._last = Math.max(this._last, bin);
    const count = this._counts.get(bin);
    if (count) {
      count.all++;
      count.late += Number(late);
    } else {
      this._counts.set(bin, { all: 1, late: Number(late) });
    }
  }

  remove(time: number, late: boolean): void {
    const bin = Math.floor(time / this._width);
    const count = this._counts.get(bin);
    if (!count) {
      return;
    }
    count.all--;
    count.late -= Number(late);
    if (count.all <= 0) {
      this._counts.delete(bin);
      while (this._first < this._last && !this._counts.has(this._first)) {
        this._first++;
      }
    }
  }

  /** The begin of each bin with messages, and the numbers of its messages and of the late ones. */
  visit(take: (begin: number, all: number, late: number) => void): void {
    this._counts.forEach(({ all, late }, bin) => take(bin * this._width, all, late));
  }

  private _widen(): void {
    const old = [...this._counts];
    this._width *= 2;
    this._counts.clear();
    for (const [bin, { all, late }] of old) {
      const half = Math.floor(bin / 2);
      const count = this._counts.get(half) ?? { all: 0, late: 0 };
      this._counts.set(half, { all: count.all + all, late: count.late + late });
    }
    this._first = Math.floor(this._first / 2);
    this._last = Math.floor(this._last / 2);
  }

  private _width = FINEST;
  private _first = 0;
  private _last = 0;
  private readonly _counts = new Map<number, { all: number; late: number }>();
}
