import { type ReactNode, useState } from "react";
import { CodeBlock } from "../ui/code-block.tsx";
import { Select } from "../ui/fields.tsx";
import styles from "./settings-tab.module.css";
import { type FlagToRead, type Snippet, snippets } from "./snippets.ts";

const options = snippets.map(({ id, title, package: sdk }) => ({
  value: id,
  label: title,
  ...(sdk !== undefined && { note: sdk }),
}));

type SnippetPickerProps = {
  flag: FlagToRead;
  /** More about the key that the chosen application needs. */
  children?: (keyKind: Snippet["keyKind"]) => ReactNode;
};

/** The code that reads a flag, for the kind of application that the person chooses. */
export function SnippetPicker({ flag, children }: SnippetPickerProps) {
  const [id, setId] = useState(snippets[0].id);
  const chosen = snippets.find((each) => each.id === id) ?? snippets[0];
  const { package: sdk, keyKind } = chosen;
  return (
    <div className={styles.stack}>
      <Select label="Application" value={id} onChange={setId} options={options} />
      <p className={styles.note}>{keyHints[keyKind]}</p>
      {children?.(keyKind)}
      <CodeBlock title={sdk ?? "Shell"} code={chosen.codeFor(flag, window.location.origin)} />
      {sdk !== undefined && (
        <p className={styles.note}>
          In a clone of Halyard, <code>npm ci && npm run pack:clients</code> packs{" "}
          <code>{sdk}</code> and prints the command that installs it.
        </p>
      )}
    </div>
  );
}

const keyHints: Readonly<Record<Snippet["keyKind"], ReactNode>> = {
  reader: (
    <>
      It needs a reader key (<code>hr_…</code>), which reads the rules of one environment. Keep it
      on servers.
    </>
  ),
  client: (
    <>
      It needs a client key (<code>hc_…</code>), which only reads values and may be public.
    </>
  ),
};
