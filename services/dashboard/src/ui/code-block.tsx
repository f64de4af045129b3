import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { Button, IconButton } from "./button.tsx";
import styles from "./code-block.module.css";

/** Duration of the confirmation after a copy. */
const confirmMs = 2_000;

/**
 * A button that copies a text, such as a new API key. With a label it is an icon beside the text. Pages over plain HTTP
 * have no clipboard, and no such button.
 */
export function CopyButton({ text, label }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), confirmMs);
  };
  if (navigator.clipboard === undefined) return null;
  const Icon = isCopied ? Check : Copy;
  if (label !== undefined)
    return (
      <>
        <IconButton
          icon={Icon}
          iconSize={14}
          label={label}
          size="small"
          onPress={() => void copy()}
        />
        <span aria-live="polite" className="visually-hidden">
          {isCopied && "Copied"}
        </span>
      </>
    );
  return (
    <Button size="small" onPress={() => void copy()}>
      <Icon size={14} aria-hidden />
      <span aria-live="polite">{isCopied ? "Copied" : "Copy"}</span>
    </Button>
  );
}

type CodeBlockProps = { title: string; code: string; wraps?: boolean };

/** A command or a piece of code to copy. `wraps` shows long lines whole, such as that of a key. */
export function CodeBlock({ title, code, wraps = false }: CodeBlockProps) {
  return (
    <figure className={styles.block}>
      <figcaption className={styles.head}>
        <span>{title}</span>
        <CopyButton text={code} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <pre className={`${styles.code} ${wraps ? styles.wraps : ""}`} tabIndex={0}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}
