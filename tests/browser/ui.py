"""A user's actions in JupyterLab, by its visible elements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.lab import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

    from tests.browser.fake import Stream

PATIENCE = 60.0
"""Seconds that each wait may take; only a failing one needs them."""

READY = """async () => {
    while (!window.jupyterapp) await new Promise(resolve => setTimeout(resolve, 20));
    await window.jupyterapp.restored;
}"""
KERNEL = """async () => {
    while (!window.jupyterapp.shell.currentWidget?.sessionContext)
        await new Promise(resolve => setTimeout(resolve, 20));
    const context = window.jupyterapp.shell.currentWidget.sessionContext;
    await context.ready;
    await context.session.kernel.info;
    return context.session.kernel.id;
}"""


def open_lab(page: Page, lab: Lab, path: str = "") -> None:
    """Open JupyterLab with an empty layout, or with one notebook in it.

    An empty layout gets JupyterLab's launcher, which takes the focus when it comes: keys that a
    test presses before may go there.
    """
    tree = f"/tree/{path}" if path else ""
    page.goto(lab.url(f"lab{tree}?token={lab.token}&reset"))
    page.evaluate(READY)
    if not path:
        page.wait_for_function("document.activeElement?.closest('.jp-Launcher')", polling=20)


def reload(page: Page) -> None:
    """Load the page again, as a user does; the layout is restored."""
    page.reload()
    page.evaluate(READY)


def open_file(page: Page, path: str) -> None:
    """Open a file, or bring it to the front; it has the focus when this returns."""
    page.evaluate(
        """async path => {
            const {commands, shell} = jupyterapp;
            await (await commands.execute('docmanager:open', {path})).revealed;
            while (shell.currentWidget?.context?.path !== path)
                await new Promise(resolve => setTimeout(resolve, 20));
        }""",
        path,
    )


def kernel(page: Page) -> str:
    """The id of the current notebook's kernel, once it answers."""
    return str(page.evaluate(KERNEL))


def command(page: Page, name: str, **args: Any) -> None:
    """Run a command of JupyterLab, and do not wait for its end."""
    page.evaluate("([id, args]) => void jupyterapp.commands.execute(id, args)", [name, args])


def search_palette(page: Page, text: str, found: str) -> None:
    """Search the command palette until it shows a command with this label.

    It closes whenever something else takes the focus, such as a panel that has just been opened.
    """
    field = page.locator(".lm-CommandPalette-input")
    label = page.locator(".lm-CommandPalette-itemLabel", has_text=found)

    def is_found() -> bool:
        if not field.is_visible():
            command(page, "apputils:activate-command-palette")
            return False
        if field.input_value() != text:
            field.evaluate("field => field.select()")
            page.keyboard.insert_text(text)
            return False
        return label.is_visible()

    wait_until(page, is_found)


def enabled(page: Page, name: str, **args: Any) -> bool:
    """Whether a command of JupyterLab is enabled."""
    ask = "([id, args]) => jupyterapp.commands.isEnabled(id, args)"
    return bool(page.evaluate(ask, [name, args]))


def theme(page: Page, name: str) -> None:
    """Change the theme, and wait until it is applied."""
    change = "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})"
    page.evaluate(change, name)
    light = "false" if "Dark" in name else "true"
    page.locator(f"body[data-jp-theme-light='{light}']").wait_for(state="attached")


def panel(page: Page) -> Locator:
    """The side panel, which is opened unless it is."""
    found = page.locator("#sfm-panel")
    if not found.is_visible():
        command(page, "sfm:show-panel")
        found.wait_for(state="visible")
    return found


def world_menu(page: Page, title: str, item: str) -> None:
    """Choose an item of the menu of a world in the panel."""
    panel(page).get_by_role("button", name=f"More: {title}").click()
    page.locator(".lm-Menu-itemLabel", has_text=item).click()


def rows(where: Locator) -> Locator:
    """The rows of the table of processes."""
    return where.get_by_role("grid", name="Processes").locator("tr[data-uid]")


def row(where: Locator, name: str) -> Locator:
    """The rows of the processes with that name, whatever their ranks."""
    named = where.page.locator(".sfm-Row-name", has_text=re.compile(rf"^{name}(\s|$)"))
    return rows(where).filter(has=named)


def expect(where: Locator) -> Any:
    """Assertions that wait until they are true."""
    from playwright.sync_api import expect

    return expect(where)


def wait_until(page: Page, true: Callable[[], bool], what: Callable[[], object] = str) -> None:
    """Wait for an event at this end of a websocket or a request.

    Raises:
        AssertionError: it did not within PATIENCE; says what is there instead.
    """
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"it did not come; there is: {what()}"
        page.wait_for_timeout(20)


def answer(page: Page, path: str, asked: list[Any], body: object, status: int = 200) -> None:
    """Answer calls of ``sfm/worlds/path`` with this; the list gets their bodies."""
    where = f"/{path}" if path else "?"

    def handle(route: Route) -> None:
        asked.append(route.request.post_data_json)
        route.fulfill(status=status, json=body)

    page.route(f"**/sfm/worlds{where}*", handle)


def contrast(foreground: str, background: str) -> float:
    """The contrast of two colours as CSS computes them, by WCAG's formula."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        low = [
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * low[0] + 0.7152 * low[1] + 0.0722 * low[2]

    dark, bright = sorted(map(luminance, (foreground, background)))
    return (bright + 0.05) / (dark + 0.05)


def violations(page: Page, where: str) -> list[str]:
    """What axe-core finds below these elements: the rules, and the elements that break them."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    assert page.locator(where).count() > 0, where
    found = axe.Axe().run(page, context=where).response
    assert found["passes"], where
    return [f"{one['id']}: {node['html']}" for one in found["violations"] for node in one["nodes"]]


def asked(page: Page, stream: Stream, world: str | None, parts: list[str]) -> None:
    """Wait until this is the page's subscription; without parts any world is accepted."""

    def same() -> bool:
        if not stream.watches or stream.watch["parts"] != parts:
            return False
        return not parts or bool(stream.watch["world"] == world)

    wait_until(page, same, lambda: stream.watches[-3:])


def hide(page: Page, hidden: bool) -> None:
    """Make the page believe that its tab is in the background, or in front again."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, 'hidden', {get: () => hidden, configurable: true});
            document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )


def setting(page: Page, name: str, value: object) -> None:
    """Change a setting of the extension, as the settings editor does."""
    page.evaluate(
        """async ([name, value]) => {
            const services = jupyterapp.pluginRegistry._services;
            const token = [...services.keys()].find(one => one.name.endsWith(':ISettingRegistry'));
            const registry = await jupyterapp.resolveRequiredService(token);
            await registry.set('@sfm/labextension:plugin', name, value);
        }""",
        [name, value],
    )


NOTEBOOK = "[...jupyterapp.shell.widgets('main')].find(one => one.hasClass('jp-NotebookPanel'))"
"""The notebook that a test has open, whether it has the focus or not."""


def sources(page: Page) -> list[str]:
    """The sources of the notebook's cells."""
    cells = page.evaluate(f"{NOTEBOOK}.content.widgets.map(one => one.model.sharedModel.source)")
    return list(cells)


def run_cell(page: Page, index: int, wait: bool = False) -> None:
    """Run a cell of the notebook, and wait until it has ended or not."""
    page.evaluate(
        f"""([index, wait]) => {{
            const panel = {NOTEBOOK};
            jupyterapp.shell.activateById(panel.id);
            panel.content.activeCellIndex = index;
            const done = jupyterapp.commands.execute('notebook:run-cell');
            return wait ? done.then(() => null) : null;
        }}""",
        [index, wait],
    )


def output(page: Page, index: int) -> str:
    """The outputs below a cell of the notebook, as JSON without colours."""
    text = page.evaluate(
        f"index => JSON.stringify({NOTEBOOK}.content.widgets[index].model.outputs.toJSON())", index
    )
    return re.sub(r"\\u001b\[[0-9;]*m", "", text)


def cursor(page: Page) -> tuple[int, int] | None:
    """The cell and the line (both from 0) where the notebook's cursor is, if it has the focus."""
    found = page.evaluate(
        f"""() => {{
            const {{activeCellIndex, activeCell}} = {NOTEBOOK}.content;
            const editor = activeCell.editor;
            return editor?.hasFocus() ? [activeCellIndex, editor.getCursorPosition().line] : null;
        }}"""
    )
    return tuple(found) if found else None
