import { type ReactNode, useId } from "react";

/** Returns the attribute of an input and the element that make the browser suggest these values. */
export function useSuggestions(values: readonly string[] = []): {
  list: { list?: string };
  datalist: ReactNode;
} {
  const id = useId();
  if (values.length === 0) return { list: {}, datalist: null };
  return {
    list: { list: id },
    datalist: (
      <datalist id={id}>
        {values.map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    ),
  };
}
