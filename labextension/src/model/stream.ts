import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import type { Part, ServerText } from './types';

/** A client's subscription. Without parts it gets only the list of worlds. */
export interface Watch {
  readonly world: string | null;
  /** The most updates a second. */
  readonly rate: number;
  readonly parts: readonly Part[];
}

/** Milliseconds before the first attempt to reconnect; each further attempt waits twice as long. */
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

/**
 * The websocket to the server extension: connects, reconnects after it was lost, and sends the
 * subscription whenever that changes.
 */
export class Stream implements IDisposable {
  constructor(settings: ServerConnection.ISettings) {
    this._settings = settings;
  }

  /** A message came from the server. */
  get received(): ISignal<this, ServerText> {
    return this._received;
  }

  /** The websocket was connected or lost. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get connected(): boolean {
    return this._socket?.readyState === WebSocket.OPEN;
  }

  /** Failed attempts to connect since the last success. */
  get failures(): number {
    return this._failures;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** Replaces the subscription; the same subscription again sends nothing. */
  watch(watch: Watch): void {
    const text = JSON.stringify({ type: 'watch', ...watch });
    if (text !== this._requested) {
      this._requested = text;
      this._send();
    }
  }

  /** Connect now instead of after the pause. */
  connect(): void {
    if (this._disposed || (this._socket && this._socket.readyState <= WebSocket.OPEN)) {
      return;
    }
    window.clearTimeout(this._timer);
    const socket = new this._settings.WebSocket(this._url());
    this._socket = socket;
    socket.onopen = () => {
      this._failures = 0;
      this._sent = null;
      this._send();
      this._changed.emit();
    };
    socket.onmessage = event => this._take(event.data);
    socket.onclose = () => this._lost(socket);
  }

  dispose(): void {
    this._disposed = true;
    window.clearTimeout(this._timer);
    this._socket?.close();
    Signal.clearData(this);
  }

  private _url(): string {
    const { wsUrl, token, appendToken } = this._settings;
    const url = URLExt.join(wsUrl, 'sfm', 'stream');
    return appendToken && token ? `${url}?token=${encodeURIComponent(token)}` : url;
  }

  private _send(): void {
    if (this.connected && this._requested !== null && this._requested !== this._sent) {
      this._socket!.send(this._requested);
      this._sent = this._requested;
    }
  }

  private _take(data: unknown): void {
    let text: ServerText;
    try {
      text = JSON.parse(String(data));
    } catch (problem) {
      console.error('sfm: the server sent a message that is no JSON', problem);
      return;
    }
    this._received.emit(text);
  }

  private _lost(socket: WebSocket): void {
    if (this._disposed || socket !== this._socket) {
      return;
    }
    this._socket = null;
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this._failures);
    this._failures++;
    // At random, so that not all clients of a restarted server connect at the same moment.
    this._timer = window.setTimeout(() => this.connect(), pause * (0.5 + Math.random()));
    this._changed.emit();
  }

  private _settings: ServerConnection.ISettings;
  private _socket: WebSocket | null = null;
  private _requested: string | null = null;
  private _sent: string | null = null;
  private _failures = 0;
  private _timer = 0;
  private _disposed = false;
  private _received = new Signal<this, ServerText>(this);
  private _changed = new Signal<this, void>(this);
}
