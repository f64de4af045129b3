import { useEffect, useState } from "react";

/** The address changes once nobody has typed for this long. */
const pauseMs = 250;

/**
 * The text of a search field whose search is in the address. The address follows when typing pauses, because a change of
 * it renders the whole page (bench `dashboard`, rows "typing a search"). If the address changes otherwise, for example by
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
