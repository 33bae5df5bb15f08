import { Compartment, EditorState, Extension } from '@codemirror/state';
import { Decoration, EditorView, gutter, GutterMarker, WidgetType } from '@codemirror/view';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { CodeMirrorEditor } from '@jupyterlab/codemirror';

/** Lines, from 1, each with the text that it is marked with. */
export type Lines = ReadonlyMap<number, string>;

/** The place of the marks in the configuration of each editor that has had some. */
const marks = new Compartment();

/** Mark these lines of the editor instead of others, until its text is changed. */
export function markLines(editor: CodeEditor.IEditor, lines: Lines): void {
  const view = (editor as CodeMirrorEditor).editor;
  if (marks.get(view.state) === undefined) {
    editor.injectExtension(marks.of([]));
  }
  view.dispatch({ effects: marks.reconfigure(lines.size > 0 ? extension(lines) : []) });
}

/** A sign in the gutter, a tint, and the text behind the line: screen readers skip the gutter. */
function extension(lines: Lines): Extension {
  const sign = gutter({
    class: 'sfm-Gutter',
    lineMarker: ({ state }, { from }) => {
      const text = lines.get(state.doc.lineAt(from).number);
      return text === undefined ? null : new Sign(text);
    }
  });
  const drawn = EditorView.decorations.compute([], ({ doc }) =>
    Decoration.set(
      [...lines]
        .filter(([line]) => line >= 1 && line <= doc.lines)
        .flatMap(([line, text]) => [
          Decoration.line({ class: 'sfm-Marked' }).range(doc.line(line).from),
          Decoration.widget({ widget: new Note(text), side: 1 }).range(doc.line(line).to)
        ]),
      true
    )
  );
  // The numbers are those of the text that runs: of another text they are wrong.
  const end = EditorState.transactionExtender.of(({ docChanged }) =>
    docChanged ? { effects: marks.reconfigure([]) } : null
  );
  return [sign, drawn, end];
}

class Sign extends GutterMarker {
  constructor(private readonly _text: string) {
    super();
  }

  override eq(other: Sign): boolean {
    return other._text === this._text;
  }

  override toDOM(): HTMLElement {
    const node = document.createElement('span');
    node.className = 'sfm-Gutter-sign';
    node.title = this._text;
    return node;
  }
}

class Note extends WidgetType {
  constructor(private readonly _text: string) {
    super();
  }

  override eq(other: Note): boolean {
    return other._text === this._text;
  }

  override toDOM(): HTMLElement {
    const node = document.createElement('span');
    node.className = 'sfm-Marked-note';
    node.setAttribute('role', 'note');
    node.textContent = node.title = this._text;
    return node;
  }
}
