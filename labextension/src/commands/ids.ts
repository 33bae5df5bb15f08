/** The commands, and the category under which the palette lists them. */
export const CATEGORY = 'SFM';

export const ID = {
  showPanel: 'sfm:show-panel',
  /** Opens the view of the argument `kind`. */
  open: 'sfm:open',
  start: 'sfm:start',
  run: 'sfm:run-program',
  /** Opens the record of the run with the id of the argument `run`, or of the last one. */
  openRun: 'sfm:open-run',
  /** Deletes the record of that run; without an argument all of them. */
  deleteRuns: 'sfm:delete-runs',
  stop: 'sfm:stop',
  restart: 'sfm:restart',
  rescale: 'sfm:rescale',
  interrupt: 'sfm:interrupt',
  interruptStuck: 'sfm:interrupt-stuck',
  interruptProcess: 'sfm:interrupt-process',
  restartProcess: 'sfm:restart-process',
  stopProcess: 'sfm:stop-process',
  insert: 'sfm:insert-code',
  pin: 'sfm:pin',
  copyDiagnosis: 'sfm:copy-diagnosis',
  jump: 'sfm:jump',
  trace: 'sfm:download-trace',
  firstSteps: 'sfm:first-steps',
  classroom: 'sfm:classroom'
} as const;
