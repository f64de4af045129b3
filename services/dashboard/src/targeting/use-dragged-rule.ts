import { type PointerEvent, useCallback, useState } from "react";
import { type DraftRule, draggedTo } from "./draft.ts";

/** A drag: the rule, and the distance from its upper edge to the pointer. */
type Drag = { readonly uid: string; readonly grip: number };

/**
 * Moves a rule with the pointer. The list captures the pointer, because a row that moves in the document loses its
 * capture. Rules change their order during the drag, so a drop needs no indicator.
 */
export function useDraggedRule(
  rules: readonly DraftRule[],
  move: (uid: string, to: number) => void,
) {
  const [drag, setDrag] = useState<Drag>();
  const start = useCallback((uid: string, event: PointerEvent<HTMLElement>) => {
    const row = event.currentTarget.closest("li");
    if (event.button !== 0 || row == null) return;
    row.parentElement?.setPointerCapture(event.pointerId);
    setDrag({ uid, grip: event.clientY - row.getBoundingClientRect().top });
  }, []);
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    const from = rules.findIndex(({ uid }) => uid === drag?.uid);
    if (drag === undefined || from === -1) return;
    const rows = [...event.currentTarget.children];
    const edges = rows.map((row) => row.getBoundingClientRect());
    const to = draggedTo(edges, from, event.clientY - drag.grip);
    if (to === from) return;
    move(drag.uid, to);
    rows[to]?.scrollIntoView({ block: "nearest" });
  };
  return {
    dragged: drag?.uid,
    start,
    listProps: { onPointerMove, onLostPointerCapture: () => setDrag(undefined) },
  };
}
