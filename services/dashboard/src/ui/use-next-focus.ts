import { type RefObject, useEffect, useRef } from "react";

/**
 * Returns a part of the page, and a function that moves the focus within it after the next render: to the first field or
 * button of the element whose `data-focus` has the name. Otherwise, the focus is lost with a row that is removed.
 */
export function useNextFocus<Part extends HTMLElement>(): {
  part: RefObject<Part | null>;
  focusNext: (name: string) => void;
} {
  const part = useRef<Part>(null);
  const next = useRef<string>(undefined);
  useEffect(() => {
    if (next.current === undefined) return;
    const target = part.current?.querySelector(`[data-focus="${CSS.escape(next.current)}"]`);
    next.current = undefined;
    target?.querySelector<HTMLElement>("input, textarea, button")?.focus();
  });
  const focusNext = (name: string) => {
    next.current = name;
  };
  return { part, focusNext };
}
