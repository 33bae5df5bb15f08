import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

/** The open notebooks, by their kernels, and the one that has or last had the focus. */
export class Notebooks {
  constructor(tracker: INotebookTracker) {
    this._tracker = tracker;
    tracker.currentChanged.connect(this._follow, this);
    this._follow();
  }

  /** The current notebook, or its kernel, has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get current(): NotebookPanel | null {
    return this._tracker.currentWidget;
  }

  /** The id of the current notebook's kernel; empty for a notebook without a kernel. */
  get kernel(): string | null {
    return this.current && (kernelOf(this.current)?.id ?? '');
  }

  /** The open notebooks of these kernels, the current one first. */
  of(kernels: readonly string[]): NotebookPanel[] {
    return this.all().filter(panel => kernels.includes(kernelOf(panel)?.id ?? ''));
  }

  /** All open notebooks, the current one first. */
  all(): NotebookPanel[] {
    const panels: NotebookPanel[] = [];
    this._tracker.forEach(panel => panels.push(panel));
    return panels.sort((a, b) => Number(b === this.current) - Number(a === this.current));
  }

  private _follow(): void {
    const context = this.current?.sessionContext ?? null;
    if (context !== this._context) {
      this._context?.kernelChanged.disconnect(this._emit, this);
      context?.kernelChanged.connect(this._emit, this);
      this._context = context;
    }
    this._emit();
  }

  private _emit(): void {
    this._changed.emit();
  }

  private _tracker: INotebookTracker;
  private _context: ISessionContext | null = null;
  private _changed = new Signal<this, void>(this);
}

export function kernelOf(panel: NotebookPanel): Kernel.IKernelConnection | null {
  return panel.sessionContext.session?.kernel ?? null;
}
