import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { ListedFlag } from "../flags/flag-search.ts";

export type Selection = {
  /** The selected flags that the list shows. A filter takes the others out. */
  readonly selected: readonly ListedFlag[];
  has: (flag: ListedFlag) => boolean;
  /** Selects a flag or takes it out. `isRange` includes the flags since the one that was chosen before. */
  choose: (id: string, isSelected: boolean, isRange: boolean) => void;
  chooseAll: (isSelected: boolean) => void;
};

/** The flags that a person selects in the list, for a change of all of them. */
export function useSelection(shown: readonly ListedFlag[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const anchor = useRef<string>(undefined);
  // Rows are rendered again only if their properties change, so `choose` must stay the same while a search is typed.
  const listed = useRef(shown);
  useEffect(() => {
    listed.current = shown;
  }, [shown]);
  const selected = useMemo(() => shown.filter(({ id }) => ids.has(id)), [shown, ids]);
  const choose = useCallback((id: string, isSelected: boolean, isRange: boolean) => {
    const chosen = isRange ? idsBetween(listed.current, anchor.current, id) : [id];
    anchor.current = id;
    setIds((before) => {
      const next = new Set(before);
      for (const each of chosen) isSelected ? next.add(each) : next.delete(each);
      return next;
    });
  }, []);
  // It stays the same while the list scrolls, so that the head is not rendered again.
  return useMemo(
    () => ({
      selected,
      has: ({ id }) => ids.has(id),
      choose,
      chooseAll: (isSelected) => setIds(new Set(isSelected ? shown.map(({ id }) => id) : [])),
    }),
    [selected, ids, choose, shown],
  );
}

/** Returns the ids from one flag of the list to another, in either direction. */
export function idsBetween(
  shown: readonly { id: string }[],
  from: string | undefined,
  to: string,
): string[] {
  const ids = shown.map(({ id }) => id);
  const [start = 0, end = 0] = [ids.indexOf(from ?? to), ids.indexOf(to)].sort((a, b) => a - b);
  return start === -1 ? [to] : ids.slice(start, end + 1);
}
