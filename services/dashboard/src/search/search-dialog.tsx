import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useRef, useState } from "react";
import { useFlags } from "../flags/flag-queries.ts";
import { Badge } from "../ui/badge.tsx";
import { Dialog } from "../ui/dialog.tsx";
import fields from "../ui/fields.module.css";
import { findResults, type Result, type SearchedPage } from "./find-results.ts";
import styles from "./search.module.css";

type SearchDialogProps = { pages: readonly SearchedPage[]; onClose: () => void };

/** Finds flags and pages while a person types. The arrow keys choose a result, and Enter opens it. */
export function SearchDialog({ pages, onClose }: SearchDialogProps) {
  const [text, setText] = useState("");
  const query = useDeferredValue(text);
  const [chosen, setChosen] = useState(0);
  const { data: flags, error } = useFlags();
  const navigate = useNavigate();
  const id = useId();
  const results = findResults(query, pages, flags ?? []);
  const current = Math.min(chosen, results.length - 1);
  const open = ({ flag, page }: Result) => {
    onClose();
    if (flag !== undefined) void navigate({ to: "/flags/$flagKey", params: { flagKey: flag.key } });
    else if (page !== undefined) void navigate({ to: page.to });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = steps[event.key];
    // The list can be that of an earlier text while the person types.
    const result = query === text ? results[current] : findResults(text, pages, flags ?? [])[0];
    if (step !== undefined && results.length > 0) {
      event.preventDefault();
      setChosen((current + step + results.length) % results.length);
    } else if (event.key === "Enter" && result !== undefined) {
      event.preventDefault();
      open(result);
    }
  };
  return (
    <Dialog title="Search" onClose={onClose}>
      <input
        autoFocus
        role="combobox"
        aria-label="Search flags and pages"
        aria-expanded={results.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        {...(results.length > 0 && { "aria-activedescendant": `${id}-${current}` })}
        className={fields.input}
        placeholder="A key, a name, a tag or a page"
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <p role="status" className={results.length > 0 ? "visually-hidden" : ""}>
        {statusText(results.length, { isReading: flags === undefined && error === null, error })}
      </p>
      <div role="listbox" id={id} aria-label="Results" className={styles.results}>
        {results.map((result, index) => (
          <Option
            key={result.path}
            id={`${id}-${index}`}
            result={result}
            isChosen={index === current}
            onOpen={() => open(result)}
          />
        ))}
      </div>
    </Dialog>
  );
}

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

function statusText(
  found: number,
  { isReading, error }: { isReading: boolean; error: Error | null },
): string {
  if (error !== null) return `The flags cannot be read. ${error.message}`;
  if (isReading) return "Reading the flags…";
  if (found === 0) return "Nothing matches. Try other words.";
  return found === 1 ? "1 result" : `${found} results`;
}

type OptionProps = { id: string; result: Result; isChosen: boolean; onOpen: () => void };

function Option({ id, result: { title, note, flag }, isChosen, onOpen }: OptionProps) {
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isChosen) row.current?.scrollIntoView({ block: "nearest" });
  }, [isChosen]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys.
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the chosen option.
    <div
      ref={row}
      role="option"
      id={id}
      aria-selected={isChosen}
      className={styles.result}
      onClick={onOpen}
    >
      {flag === undefined ? <span>{title}</span> : <code className={styles.key}>{title}</code>}
      <span className={styles.note}>{flag === undefined ? "Page" : note}</span>
      {flag !== undefined && flag.archived_at !== null && <Badge tone="warning">Archived</Badge>}
      {flag?.tags.map((tag) => (
        <Badge key={tag}>{tag}</Badge>
      ))}
    </div>
  );
}
