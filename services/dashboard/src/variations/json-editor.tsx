import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, linter } from "@codemirror/lint";
import { Annotation, Compartment, type Text, Transaction } from "@codemirror/state";
import { EditorView, keymap, lineNumbers, type ViewUpdate } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useEffectEvent, useRef } from "react";
import { jsonProblem } from "./json-text.ts";

type JsonEditorProps = {
  label: string;
  value: string;
  /** The message about the value, for screen readers. */
  error: string | undefined;
  onChange: (value: string) => void;
};

/**
 * A code editor for JSON. Tab leaves it. It is in a shadow root, because CodeMirror uses constructed style sheets only
 * there: in the document, it inserts a `style` element, which the content security policy forbids.
 */
export function JsonEditor({ label, value, error, onChange }: JsonEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(undefined);
  const change = useEffectEvent(onChange);
  useEffect(() => {
    if (host.current === null) return;
    const created = createEditor(host.current, (text) => change(text));
    editor.current = created;
    return () => created.view.destroy();
  }, []);
  useEffect(() => editor.current?.setText(value), [value]);
  useEffect(() => editor.current?.describe(label, error), [label, error]);
  // A dialog moves the focus only to elements of the document, and this one delegates it to the editor.
  // biome-ignore lint/a11y/noNoninteractiveTabindex: the shadow root delegates the focus to the editor.
  return <div ref={host} tabIndex={0} data-invalid={error !== undefined || undefined} />;
}

type Editor = ReturnType<typeof createEditor>;

/** Marks a text that was set, which is no input. */
const wasSet = Annotation.define<true>();

function createEditor(host: HTMLElement, onInput: (text: string) => void) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open", delegatesFocus: true });
  // References by id do not leave a shadow root.
  const help = document.createElement("span");
  help.id = "help";
  help.hidden = true;
  root.replaceChildren(help);
  const described = new Compartment();
  const report = ({ docChanged, state, transactions }: ViewUpdate) => {
    if (docChanged && transactions.every((each) => each.annotation(wasSet) === undefined))
      onInput(state.doc.toString());
  };
  const view = new EditorView({
    ...{ parent: root, root },
    extensions: [extensions, described.of([]), EditorView.updateListener.of(report)],
  });
  // The first focusable element gets a delegated focus, and that is the element around the text.
  view.scrollDOM.addEventListener("focus", () => view.focus());
  return {
    view,
    /** Shows a text, unless the editor contains it already. */
    setText(text: string): void {
      const { doc } = view.state;
      const insert = view.state.toText(text);
      if (insert.eq(doc)) return;
      const annotations = [wasSet.of(true), Transaction.addToHistory.of(false)];
      view.dispatch({ changes: { from: 0, to: doc.length, insert }, annotations });
    },
    describe(label: string, error: string | undefined): void {
      help.textContent = error ?? "";
      const attributes = {
        "aria-label": label,
        "aria-invalid": String(error !== undefined),
        "aria-describedby": help.id,
      };
      view.dispatch({
        effects: described.reconfigure(EditorView.contentAttributes.of(attributes)),
      });
    },
  };
}

/** Returns the first mistake in a text, at its position. */
function diagnosticsOf(doc: Text): Diagnostic[] {
  const problem = jsonProblem(doc.toString());
  if (problem === undefined) return [];
  const from = doc.line(problem.line).from + problem.column - 1;
  const to = Math.min(from + 1, doc.length);
  return [{ from, to, severity: "error", message: problem.text }];
}

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--color-accent)" },
  { tag: tags.string, color: "var(--color-on)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--color-warning)" },
]);

/** The look of a text field. Contrast modes draw no shadows, and give a transparent outline a color. */
const theme = EditorView.theme({
  "&": {
    minHeight: "2.125rem",
    maxHeight: "24rem",
    border: "1px solid var(--field-border, var(--color-border-strong))",
    borderRadius: "var(--radius)",
    background: "var(--color-surface)",
    color: "var(--color-text)",
    fontSize: "var(--text-small)",
    overflow: "hidden",
  },
  "&.cm-focused": {
    outline: "2px solid transparent",
    borderColor: "var(--color-accent)",
    boxShadow: "0 0 0 3px var(--color-accent-soft)",
  },
  "&:has([aria-invalid=true])": { borderColor: "var(--color-danger)" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--color-text)" },
  ".cm-gutters": {
    borderRight: "1px solid var(--color-border)",
    background: "var(--color-sunken)",
    color: "var(--color-muted)",
  },
  ".cm-tooltip": {
    border: "1px solid var(--color-border-strong)",
    background: "var(--color-raised)",
    color: "var(--color-text)",
  },
});

const extensions = [
  theme,
  lineNumbers(),
  history(),
  json(),
  syntaxHighlighting(colors),
  linter(({ state }) => diagnosticsOf(state.doc)),
  EditorView.lineWrapping,
  // Without a binding, Tab leaves the editor.
  keymap.of([...defaultKeymap, ...historyKeymap]),
];
