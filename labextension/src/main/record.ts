import { MainAreaWidget } from '@jupyterlab/apputils';
import { IFrame } from '@jupyterlab/ui-components';
import type { FinishedRun } from '../model/types';
import { timelineIcon } from '../widgets/icons';

/** The id of the widget that shows the record of a run. */
export const recordId = ({ id }: FinishedRun): string => `sfm-run-${id}`;

/**
 * The record of a finished run. It runs its own script, but not as a page of this server: programs
 * have written parts of it.
 */
export function recordWidget(run: FinishedRun, url: string): MainAreaWidget<IFrame> {
  const content = new IFrame({ sandbox: ['allow-scripts'] });
  content.url = url;
  content.addClass('sfm-RecordFrame');
  const { program, end } = run;
  const frame = content.node.querySelector('iframe');
  frame?.setAttribute('title', `Run of ${program}`);
  const widget = new MainAreaWidget({ content });
  widget.id = recordId(run);
  widget.title.label = program;
  widget.title.caption = `${program}, ${end} at ${new Date(run.time * 1000).toLocaleString()}`;
  widget.title.icon = timelineIcon;
  widget.title.closable = true;
  return widget;
}
