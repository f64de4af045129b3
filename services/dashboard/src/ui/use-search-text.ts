import { useEffect, useState } from "react";

/** Pause in typing after which the address changes. */
const pauseMs = 250;

/**
 * The text of a search field that is also in the address. The address follows when typing pauses, because each change
 * of the address renders the whole page (bench `dashboard`, rows "typing a search"). If the address changes otherwise, for example by
 * the browser's Back, the text follows.
 */
export function useSearchText(
  inAddress: string,
  write: (text: string) => void,
): [text: string, setText: (text: string) => void] {
  const [text, setText] = useState(inAddress);
  const [seen, setSeen] = useState(inAddress);
  const [written, setWritten] = useState(inAddress);
  if (inAddress !== seen) {
    setSeen(inAddress);
    if (inAddress !== written) {
      setWritten(inAddress);
      setText(inAddress);
    }
  }
  useEffect(() => {
    if (text === written) return;
    const timer = setTimeout(() => {
      setWritten(text);
      write(text);
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [text, written, write]);
  return [text, setText];
}
