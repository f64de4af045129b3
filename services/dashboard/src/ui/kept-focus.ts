import { type RefObject, useEffect, useRef } from "react";

/**
 * Keeps the focus in a part of the page. When what had the focus disappears with a change of `content`, such as the
 * button of a deleted row, the part itself gets it. The part needs `tabIndex={-1}`.
 */
export function useKeptFocus(content: string): RefObject<HTMLDivElement | null> {
  const part = useRef<HTMLDivElement>(null);
  const before = useRef(content);
  useEffect(() => {
    if (before.current === content) return;
    before.current = content;
    if (document.activeElement === document.body) part.current?.focus({ preventScroll: true });
  }, [content]);
  return part;
}

/**
 * Moves the focus to the page if it was lost, because the button that opened a dialog is gone. Waits for the dialog to
 * return the focus first.
 */
export function keepFocus(): void {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      const { activeElement, body } = document;
      if (activeElement === null || activeElement === body)
        document.getElementById("content")?.focus({ preventScroll: true });
    }),
  );
}
