import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { kernelOf } from './notebooks';

/** Milliseconds that a kernel has to end its cell after an interrupt. */
const PATIENCE = 10_000;

const ABORTED = 'the kernel dropped it; try again';

/**
 * Run a line in the notebook's kernel, beside its cells. A busy kernel is interrupted first.
 *
 * Rejects with the line's error, or if the kernel does not end its cell.
 */
export async function runInKernel(panel: NotebookPanel, code: string): Promise<void> {
  const kernel = kernelOf(panel);
  const name = panel.title.label;
  if (!kernel) {
    throw new Error(`${name} has no kernel: start one, then try again`);
  }
  if (kernel.status === 'busy') {
    await kernel.interrupt();
    if (!(await idle(kernel))) {
      throw new Error(
        `${name} does not end its cell: restart its kernel, which ends its engines too`
      );
    }
  }
  let problem = await execute(kernel, code);
  if (problem === ABORTED) {
    problem = await execute(kernel, code); // a kernel that was just interrupted drops its queue
  }
  if (problem) {
    throw new Error(`${code}: ${problem}`);
  }
}

/** The error of a reply, in one text; empty if there is none. */
async function execute(kernel: Kernel.IKernelConnection, code: string): Promise<string> {
  const future = kernel.requestExecute({ code, store_history: false, stop_on_error: false });
  let problem = '';
  future.onIOPub = message => {
    problem = usageText(message) ?? problem;
  };
  const { content } = await future.done;
  if (content.status === 'error') {
    return content.evalue || content.ename;
  }
  return content.status === 'ok' ? problem : ABORTED;
}

/** The text of a UsageError, which IPython prints while its reply reports success. */
function usageText(message: KernelMessage.IIOPubMessage): string | null {
  if (message.header.msg_type !== 'stream') {
    return null;
  }
  const { name, text } = message.content as KernelMessage.IStreamMsg['content'];
  return name === 'stderr' && text.startsWith('UsageError:') ? text.slice(11).trim() : null;
}

function idle(kernel: Kernel.IKernelConnection): Promise<boolean> {
  return new Promise(resolve => {
    const end = (done: boolean) => {
      window.clearTimeout(timer);
      kernel.statusChanged.disconnect(check);
      resolve(done);
    };
    const check = () => {
      if (kernel.status === 'idle') {
        end(true);
      }
    };
    const timer = window.setTimeout(() => end(false), PATIENCE);
    kernel.statusChanged.connect(check);
    check();
  });
}
