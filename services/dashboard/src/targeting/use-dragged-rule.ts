import { type KeyboardEvent, type PointerEvent, useCallback, useState } from "react";
import { type DraftRule, draggedTo } from "./draft.ts";

type Drag = {
  readonly uid: string;
  /** The position before the drag. */
  readonly origin: number;
  /** Distance from the upper edge of the rule to the pointer. */
  readonly grip: number;
};

/**
 * Moves a rule with the pointer. The list captures the pointer, because a row that moves in the document loses its
 * capture. Rules change their order during the drag, so a drop needs no indicator. Escape moves the rule back.
 */
export function useDraggedRule(
  rules: readonly DraftRule[],
  move: (uid: string, to: number) => void,
) {
  const [drag, setDrag] = useState<Drag>();
  const start = useCallback((uid: string, event: PointerEvent<HTMLElement>) => {
    const row = event.currentTarget.closest("li");
    const list = row?.parentElement;
    if (event.button !== 0 || !row || !list) return;
    list.setPointerCapture(event.pointerId);
    const origin = [...list.children].indexOf(row);
    setDrag({ uid, origin, grip: event.clientY - row.getBoundingClientRect().top });
  }, []);
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    const from = rules.findIndex(({ uid }) => uid === drag?.uid);
    if (drag === undefined || from === -1) return;
    const rows = [...event.currentTarget.children];
    const edges = rows.map((row) => row.getBoundingClientRect());
    const to = draggedTo(edges, from, event.clientY - drag.grip);
    if (to === from) return;
    move(drag.uid, to);
    // The first button of a row is its handle, which keeps a distance to the save bar.
    rows[to]?.querySelector("button")?.scrollIntoView({ block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || drag === undefined) return;
    move(drag.uid, drag.origin);
    setDrag(undefined);
  };
  return {
    dragged: drag?.uid,
    start,
    listProps: { onPointerMove, onKeyDown, onLostPointerCapture: () => setDrag(undefined) },
  };
}
