import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { World } from './types';

/** The number of engines to start, or their names. */
export type Engines = { readonly engines: number } | { readonly names: readonly string[] };

/** How to run a program: the number of processes, and arguments as typed in a shell. */
export interface Run {
  readonly ranks: number;
  readonly arguments: string;
}

/**
 * The requests to the server extension. Each call resolves when the server has answered, and
 * rejects with the sentence of the server's error.
 */
export class Client {
  constructor(settings: ServerConnection.ISettings) {
    this._settings = settings;
  }

  async worlds(): Promise<readonly World[]> {
    return (await this._ask<{ worlds: World[] }>('GET', [])).worlds;
  }

  /** Start a cluster whose owner is the server. */
  async start(engines: Engines): Promise<{ world: string; cluster: string }> {
    return this._ask('POST', [], engines);
  }

  /** Interrupt these engines, or all of the world. */
  async interrupt(world: string, uids: readonly string[] | null): Promise<void> {
    await this._ask('POST', [world, 'interrupt'], { uids });
  }

  /** Stop these engines, or the whole cluster. */
  async stop(world: string, uids: readonly string[] | null): Promise<void> {
    await this._ask('POST', [world, 'stop'], { uids });
  }

  async restart(world: string, uids: readonly string[] | null): Promise<void> {
    await this._ask('POST', [world, 'restart'], { uids });
  }

  async rescale(world: string, engines: number): Promise<void> {
    await this._ask('POST', [world, 'rescale'], { engines });
  }

  /** The line that runs a program in a terminal whose folder is the program's. */
  async line(path: string, run: Run): Promise<string> {
    const { line } = await this._send<{ line: string }>('POST', ['programs'], { path, ...run });
    return line;
  }

  /** The url of the world's trace, for Chrome's and Perfetto's viewers. */
  traceUrl(world: string): string {
    return this._url(['worlds', world, 'trace']);
  }

  /** The page of the worlds that are shared with this server's user. */
  get classroomUrl(): string {
    return this._url(['classroom']) + '/';
  }

  private _url(path: readonly string[]): string {
    return URLExt.join(this._settings.baseUrl, 'sfm', ...path.map(encodeURIComponent));
  }

  private _ask<T>(method: string, path: readonly string[], body?: object): Promise<T> {
    return this._send<T>(method, ['worlds', ...path], body);
  }

  private async _send<T>(method: string, path: readonly string[], body?: object): Promise<T> {
    const init = { method, body: body && JSON.stringify(body) };
    const response = await ServerConnection.makeRequest(this._url(path), init, this._settings);
    const text = await response.text();
    if (!response.ok) {
      throw new Error(message(text) ?? explanation(response));
    }
    return (text ? JSON.parse(text) : null) as T;
  }

  private _settings: ServerConnection.ISettings;
}

function message(text: string): string | null {
  try {
    const said = JSON.parse(text).message;
    return typeof said === 'string' ? said : null;
  } catch {
    return null;
  }
}

function explanation({ status, statusText }: Response): string {
  return status === 404
    ? 'the server does not know sfm-kernel: `jupyter server extension list` shows whether its ' +
        'extension is enabled; then restart JupyterLab'
    : `the server answered ${status} ${statusText}`;
}
