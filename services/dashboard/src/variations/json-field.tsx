import { lazy, Suspense, use } from "react";
import { DialogContext } from "../ui/dialog-context.ts";
import styles from "./variations.module.css";

/** The editor is as large as the rest of the page, so only pages with objects load it. */
const JsonEditor = lazy(async () => ({ default: (await import("./json-editor.tsx")).JsonEditor }));

type JsonFieldProps = {
  label: string;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
};

/** A field for a JSON object. */
export function JsonField({ label, value, error, onChange }: JsonFieldProps) {
  const { markInput } = use(DialogContext);
  const change = (text: string) => {
    // The keys that the editor handles cause no event of the browser.
    markInput();
    onChange(text);
  };
  return (
    <div className={styles.json}>
      <span className={styles.label} aria-hidden>
        {label}
      </span>
      <Suspense fallback={<pre className={styles.loading}>{value}</pre>}>
        <JsonEditor label={label} value={value} error={error} onChange={change} />
      </Suspense>
      {error !== undefined && <p className={styles.problem}>{error}</p>}
    </div>
  );
}
