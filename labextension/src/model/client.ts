import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

/** The number of engines to start, or their names. */
export type Engines = { readonly engines: number } | { readonly names: readonly string[] };

/** The options of a program: its number of processes, and arguments as typed in a shell. */
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

  /** Start a cluster whose owner is the server; `progress` is called for each engine that comes. */
  async start(
    engines: Engines,
    progress: (came: number, of: number) => void
  ): Promise<{ world: string; cluster: string }> {
    return this._send(['worlds'], { ...engines, progress: true }, {
      early: line => {
        const { came, of } = JSON.parse(line);
        progress(came, of);
      }
    });
  }

  /** Interrupt these engines, or all of the world. */
  async interrupt(world: string, uids: readonly string[] | null): Promise<void> {
    await this._send(['worlds', world, 'interrupt'], { uids });
  }

  /** Stop these engines, or the whole cluster. */
  async stop(world: string, uids: readonly string[] | null): Promise<void> {
    await this._send(['worlds', world, 'stop'], { uids });
  }

  async restart(world: string, uids: readonly string[] | null): Promise<void> {
    await this._send(['worlds', world, 'restart'], { uids });
  }

  async rescale(world: string, engines: number): Promise<void> {
    await this._send(['worlds', world, 'rescale'], { engines });
  }

  /**
   * The line that runs a program in a terminal whose folder is the program's; and whether the shell
   * of this terminal waits for a line.
   */
  async line(
    path: string,
    run: Run,
    terminal: string | null
  ): Promise<{ line: string; free: boolean }> {
    return this._send(['programs'], { path, terminal, ...run });
  }

  /** Copy the notebooks unless they are there; the path of the first one in the file browser. */
  async notebooks(): Promise<{ path: string }> {
    return this._send(['notebooks'], {});
  }

  /** Delete the record of a finished run, or all of them. */
  async deleteRuns(run: string | null): Promise<void> {
    await this._send(run === null ? ['runs'] : ['runs', run], undefined, { method: 'DELETE' });
  }

  /** The url of the page with the record of a finished run. */
  recordUrl(run: string): string {
    return this._url(['runs', run, 'record']);
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

  /** The answer; `early` is called for each line before the last one, as soon as it has come. */
  private async _send<T>(
    path: readonly string[],
    body?: object,
    { method = 'POST', early = (_line: string): void => undefined } = {}
  ): Promise<T> {
    const init = { method, body: JSON.stringify(body) };
    const response = await ServerConnection.makeRequest(this._url(path), init, this._settings);
    const text = await lastLine(response, response.ok ? early : () => undefined);
    const message = messageOf(text);
    if (!response.ok || message !== null) {
      throw new Error(message ?? explanation(response));
    }
    return (text ? JSON.parse(text) : null) as T;
  }

  private _settings: ServerConnection.ISettings;
}

async function lastLine(response: Response, early: (line: string) => void): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    const lines = (text + part.value).split('\n');
    text = lines.pop() ?? '';
    lines.forEach(early);
  }
  return text;
}

function messageOf(text: string): string | null {
  try {
    const { message } = JSON.parse(text);
    return typeof message === 'string' ? message : null;
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
