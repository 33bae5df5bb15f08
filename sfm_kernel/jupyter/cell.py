"""Runs a cell on engines: ipyparallel's options and streaming, with the engines' own names."""

from __future__ import annotations

import contextlib
import contextvars
import math
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from ipyparallel import AsyncResult, error
from ipyparallel.client.client import ExecuteReply, Metadata
from ipyparallel.client.magics import ParallelMagics, exec_args, output_args
from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

from sfm_kernel.directory import Member, Name
from sfm_kernel.errors import SFMError, limits_named, printable
from sfm_kernel.jupyter import interrupted
from sfm_kernel.jupyter.failures import ABORTED, DIED, Failure, Failures, summary
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.inspection import blocked_calls, end_of
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.jupyter.observed import observed
from sfm_kernel.jupyter.watch import watched

_POLL = 0.5
"""Seconds between two checks of the controller."""

_ONCE = ("execute_result", "display_data")


class CellFailed(SFMError):
    """A cell raised an error on engines; their tracebacks were shown when it happened."""


class CellInterrupted(KeyboardInterrupt):
    """The Stop button ended a cell, in the notebook and on the engines."""


@contextmanager
def brief() -> Iterator[None]:
    """Show errors whose message says everything without the frames of this package."""
    try:
        with limits_named():
            yield
    except UsageError as problem:
        raise UsageError(printable(str(problem))) from None
    except (SFMError, CellInterrupted) as problem:
        lines = f"{type(problem).__name__}: {problem}".splitlines()
        problem._render_traceback_ = lambda: lines  # type: ignore[union-attr]
        raise


@magic_arguments("%%sfm")
@exec_args
@output_args
@argument(
    "--local", action="store_true", help="run the cell in this notebook too, after sending it"
)
@argument(
    "--no-detect", action="store_true", help="do not end a deadlock: see the panel, `%%sfm why`"
)
@argument("--watch", action="store_true", help="show what each process does while the cell runs")
@argument("--record", metavar="FILE", help="write what happened into an HTML file")
@argument("names", nargs="*", help="names or ranks of engines: A, 0, 0,2, 0:2 (default: all)")
def options(line: str) -> Any:
    """The options of ``%%sfm``, which are ipyparallel's, and the engines that the line names.

    Raises:
        UsageError: an option is unknown or has no value.
    """
    try:
        words = shlex.split(line)
        parsed = options.parser.parse_intermixed_args(words)
    except (ValueError, UsageError) as problem:
        raise UsageError(f"%%sfm: {problem}. `%sfm help` shows how to run cells") from None
    if parsed.save_name is not None and not parsed.save_name.isidentifier():
        raise UsageError(f"%%sfm: --out takes the name of a variable, not {parsed.save_name!r}")
    number = _signal(parsed.signal_on_interrupt)
    if isinstance(number, str) and number not in signal.Signals.__members__:
        raise UsageError(f"%%sfm: there is no signal {number}; SIGINT is what Stop sends")
    if parsed.groupby != "type":
        if parsed.stream:
            raise UsageError("%%sfm: grouped outputs come in the end: leave out --stream")
        parsed.stream = False
    parsed.names += [parsed.targets] if parsed.targets else []
    return parsed


class CellRunner(ParallelMagics):
    """ipyparallel's implementation of cells, with results that know the engines' names."""

    progress_after_seconds = -1  # a progress bar tells nothing about a cell that waits in recv

    def __init__(self, shell: Any, home: Home, lines: Lines) -> None:
        super().__init__(shell, None)
        self._home, self._lines = home, lines

    def run(self, cell: str, members: list[Member], args: Any) -> Any:
        """Run the cell; returns the AsyncResult if it does not block.

        Raises:
            CellFailed: the cell raised an error on an engine, which showed its traceback.
            CellInterrupted: the user interrupted the cell, and so its engines.
            WorldGone: the controller has ended, so no answer can come.
        """
        self._home.ran[self._lines.cell] = time.time()
        label = self._lines.label(before=1, failed=self._home.failed)  # 1: the magic's line
        self.view = _View(self._home, members, label, self._lines.cell[0])
        blocks = args.block is not False
        try:
            if not blocks:
                return self._run(cell, args)
            detect = not args.no_detect
            with watched(self._home, args.watch), observed(self._home, members, detect=detect):
                return self._run(cell, args)
        except BaseException:
            self._home.failed = time.time_ns()
            raise

    def _run(self, cell: str, args: Any) -> Any:
        blocks = args.block is not False
        result = self.parallel_execute(
            cell,
            block=blocks and not args.local,
            groupby=args.groupby,
            save_name=args.save_name,
            stream_output=args.stream,
            progress_after=args.progress_after_seconds,
            signal_on_interrupt=_signal(args.signal_on_interrupt),
        )
        if not blocks:
            result._fname = "%%sfm"  # its text shows this name; ipyparallel has set another
            result.show_here(errors_only=args.stream is False)
        if args.local:
            self._lines.note(cell, *self._lines.cell, before=1)
            self._home.sfm.show_running(True)
            ran = self.shell.run_cell(cell)
            if blocks:
                self._wait(result, args, isinstance(ran.error_in_exec, KeyboardInterrupt))
        return None if blocks else result

    def _wait(self, result: Any, args: Any, interrupted: bool) -> None:
        """Wait for the engines of a cell that has run or was interrupted in this notebook, too."""
        try:
            if interrupted:
                raise KeyboardInterrupt
            result.get()
        except KeyboardInterrupt:
            number = _signal(args.signal_on_interrupt) or "SIGINT"
            self.view.send_signal(number, self.view.targets, True)
            self._after_interrupt()
        except error.CompositeError as failed:
            raise self._failed(failed) from None
        finally:
            result.wait_for_output(1)
            result.display_outputs(args.groupby)

    def parallel_execute(self, cell: str, **options: Any) -> Any:
        """Run a cell as ipyparallel does, but show errors once and raise an interrupt."""
        try:
            pending = super().parallel_execute(cell, **options)
        except error.AlreadyDisplayedError as failed:
            raise self._failed(failed.original_error) from None
        except error.CompositeError as failed:
            raise self._failed(failed) from None
        if options["block"] and not (self.last_result.done() and self.last_result.successful()):
            self._after_interrupt()
        return pending

    def _failed(self, failed: Any) -> CellFailed:
        """Show the errors that have not been shown; returns the error of the cell."""
        found = _failures(failed)
        for failure in found:
            if failure.error not in (DIED, ABORTED):
                self.last_result.failures.add(failure)
        self.last_result.failures.show()
        return CellFailed(summary(found))

    def _after_interrupt(self) -> None:
        # ipyparallel has sent the signal and returns as if the cell had ended.
        result, left = self.last_result, math.inf
        while not result.wait(interrupted.PATIENCE) and len(result.unfinished()) < left:
            left = len(result.unfinished())  # wait on as long as engines end
        text = interrupted.sentences(self._home, self.view.waited, result.unfinished)
        raise CellInterrupted(text)


class CellResult(AsyncResult):
    """The AsyncResult of a cell, whose outputs and errors carry the engines' names.

    If the cell does not block, they are shown below it when they arrive.
    """

    def __init__(self, home: Home, result: AsyncResult, members: list[Member]) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._shown: dict[tuple[str, int], Any] = {}
        begun = time.time()
        names = [str(member.name) for member in members]
        self.failures = Failures(names, lambda title: home.has_told(title, begun))
        self._output_context: contextvars.Context | None = None  # of the cell that shows outputs
        self._errors_only = False
        self._members = {member.info["engine_id"]: member for member in members}
        children, targets = result._children, result._targets
        super().__init__(home.client, children, fname="%%sfm", targets=targets)

    @property
    def engine_id(self) -> list[str]:
        """The labels of outputs: the engines' names."""
        return [self._name(target) for target in self._targets]

    def show_here(self, *, errors_only: bool = False) -> None:
        """Show outputs and errors, when they arrive, below the cell that is running now.

        Returns at once. The client's thread shows them, even while other cells run.
        """
        # ipykernel stores in the context which cell an output belongs to.
        self._output_context, self._errors_only = contextvars.copy_context(), errors_only
        showing = contextlib.ExitStack()
        showing.enter_context(self.stream_output())
        self._output_future.add_done_callback(lambda _: showing.close())
        for target, child in zip(self._targets, self._children, strict=True):
            child.add_done_callback(lambda done, target=target: self._show_end(target, done))

    def unfinished(self) -> list[Member]:
        """The engines that have not answered."""
        pairs = zip(self._targets, self._children, strict=True)
        return [self._members[target] for target, child in pairs if not child.done()]

    def wait(self, timeout: float | None = -1, return_when: str | None = None) -> Any:
        forever = (timeout is None or timeout < 0) and return_when is None
        with brief(), self._home.waiting() if forever else contextlib.nullcontext():
            return self._wait(timeout, return_when)

    def _wait(self, timeout: float | None, return_when: str | None) -> Any:
        forever = timeout is None or timeout < 0
        while True:
            if not self._ready:
                self._home.check_running()
                # The engines that run this cell or another one of this notebook.
                self._home.show_waiting(self._home.at_work())
            done = super().wait(_POLL if forever else timeout, return_when)
            if self._ready or return_when is not None:
                return done
            self._home.cluster.check_controller()
            if not forever:
                return done

    def get(self, timeout: float | None = None, **kwargs: Any) -> Any:
        self.wait(timeout)
        self.wait_for_output(1)  # a streamed error is then complete and is not shown again
        try:
            results = super().get(timeout, **kwargs)
        except error.CompositeError as failed:
            if self._output_context is not None:  # the tracebacks are shown below the cell itself
                brief = [f"CompositeError: {summary(_failures(failed))}"]
                failed.render_traceback = lambda excid=None: brief
            raise
        for reply in results:
            if isinstance(reply, ExecuteReply):
                reply.metadata = self._named(reply.metadata)
        return results

    def _collect_exceptions(self, results: list[Any]) -> list[Any]:
        named = [self._explained(*pair) for pair in zip(self._targets, results, strict=True)]
        return cast("list[Any]", super()._collect_exceptions(named))

    def _explained(self, target: Any, result: Any) -> Any:
        """The result of an engine; an error gets the engine's name and says what happened."""
        name = self._name(target)
        if isinstance(result, error.TaskAborted):  # ipyparallel would take it for success
            result = error.RemoteError(ABORTED, "it did not run", "")
        if isinstance(result, error.RemoteError):
            if result.ename == DIED:
                how = end_of(self._home, name) or "ended"
                result.evalue = f"it {how}; `%sfm restart {name}` starts it again"
                self.failures.note(Failure(name, DIED, result.evalue, ""))
                result.traceback = ""  # it shows ipyparallel's frames in this process
            result.engine_info = {"method": "execute", **result.engine_info, "engine_id": name}
        return result

    def _show_end(self, target: Any, child: Any) -> None:
        """Show the error of an engine that has answered, unless the engine has shown it."""
        failed = self._explained(target, child.result())
        if not isinstance(failed, error.RemoteError):
            return
        failure = self._failure(target, failed)
        if failure.error in (DIED, ABORTED):
            self.failures.add(failure)
        else:  # the engine has shown it by then, unless that output was lost
            child.output.add_done_callback(lambda _: self.failures.add(failure))

    @contextmanager
    def stream_output(self) -> Iterator[None]:
        try:
            with super().stream_output():
                # ipyparallel shows the outputs that came before it listened, but no errors.
                for target, child in zip(self._targets, self._children, strict=True):
                    if came := child.output.metadata["error"]:
                        self.failures.add(self._failure(target, came))
                yield
        finally:
            self.failures.show()

    def _iopub_streaming_output_callback(self, target: Any, future: Any, message: Any) -> None:
        """Show one message, in the client's thread, or in the main thread if it came early."""
        if self._output_context is None:
            self._show(target, future, message)
        else:  # a copy, since both threads may enter it
            self._output_context.copy().run(self._show, target, future, message)

    def _show(self, target: Any, future: Any, message: Any) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        if self._errors_only and kind != "error":
            return
        if kind in _ONCE:
            with self._lock:  # both threads may have the message
                key = (kind, id(content))
                if key in self._shown:
                    return
                self._shown[key] = content
        name = self._name(target)
        if kind == "execute_result":
            display(ExecuteReply(future.msg_id, content, self._named(future.output.metadata)))
            return
        if kind == "error":
            text = "\n".join(content["traceback"])
            self.failures.add(Failure(name, content["ename"], content["evalue"], text))
            return
        # Early messages have no parent, and ipyparallel merges all texts without a parent.
        parent = {"msg_id": future.msg_id}
        message = {**message, "content": content, "parent_header": parent}
        super()._iopub_streaming_output_callback(name, future, message)

    def _failure(self, target: Any, failed: Any) -> Failure:
        return Failure(self._name(target), failed.ename, failed.evalue, failed.traceback or "")

    def _name(self, target: Any) -> str:
        return str(self._members[target].name) if target in self._members else str(target)

    def _named(self, metadata: Any) -> Metadata:
        named = Metadata()
        named.update(metadata, engine_id=self._name(metadata["engine_id"]))
        return named


class _View:
    """The attributes of a view and of its client that ``parallel_execute`` uses."""

    block = True

    def __init__(self, home: Home, members: list[Member], label: Any, cell: int | None) -> None:
        self.client = self
        self._label, self._cell = label, cell
        self.targets = [member.info["engine_id"] for member in members]
        self.waited: dict[Name, str] = {}
        self._home, self._members = home, members

    def execute(self, cell: str, silent: bool, block: bool) -> CellResult:
        view = self._home.client.direct_view(self.targets)
        result = view.execute(cell, silent=silent, block=block, label=self._label)
        return self._home.outputs.keep(CellResult(self._home, result, self._members), self._cell)

    def send_signal(self, signal: int | str, targets: Any, block: bool) -> None:
        """Interrupt the engines; remember first what each of them waits for."""
        self._home.cluster.check_controller()  # without a controller no answer would come
        waits, names = blocked_calls(self._home), [member.name for member in self._members]
        self.waited = {name: waits[name] for name in names if waits.get(name)}
        client, asked = self._home.client, []
        for target in targets:
            # One by one: ipyparallel sends nothing at all if one of them has died.
            with contextlib.suppress(KeyError, error.NoEnginesRegistered):
                asked.append(client.send_signal(signal, targets=[target], block=False))
        deadline = time.monotonic() + interrupted.PATIENCE
        for answers in asked:
            with contextlib.suppress(TimeoutError):  # an engine that holds its GIL does not answer
                (answer,) = answers.result(max(0.0, deadline - time.monotonic()))
                if answer["content"]["status"] != "ok":  # there is no such signal
                    raise client._unwrap_exception(answer["content"])


def _signal(text: str | None) -> int | str | None:
    return int(text) if text and text.isdigit() else text


def _failures(failed: Any) -> list[Failure]:
    """The errors in ipyparallel's CompositeError."""
    return [
        Failure(str(engine["engine_id"]), name, value, traceback or "")
        for name, value, traceback, engine in failed.elist
    ]
