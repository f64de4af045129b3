/**
 * Decides which changes that are marked as sent are lost: nobody works on them. The queue between scheduler
 * and management holds a message until its effect is recorded, and numbers what is put into it. So a change is
 * lost when it is still under way and all that was in the queue after it was sent has left it: at first what
 * was there one look after it was found under way, which has its message if it was ever sent; then what
 * was there when that had left, which has the answer. An empty queue says both at once.
 */
export type Queue = {
  /** The number of the first message that it holds; after the last one when it holds none. */
  first: number;
  /** The number of the message that was put there last, also when that has left. */
  last: number;
};

/** How far each change is that is under way. */
export type Watched = ReadonlyMap<string, "seen" | Waiting>;
type Waiting = { for: "message" | "answer"; upTo: number };

/** The queue was read before the changes: what was settled in between is in neither. */
export function findLostChanges<Change extends { id: string }>(
  underWay: readonly Change[],
  queue: Queue,
  before: Watched,
): { lost: Change[]; watched: Watched } {
  const lost: Change[] = [];
  const watched = new Map<string, "seen" | Waiting>();
  for (const change of underWay) {
    const now = advance(before.get(change.id), queue);
    if (now === "lost") lost.push(change);
    // It is going to be sent again, and then is as one that was just found.
    watched.set(change.id, now === "lost" ? "seen" : now);
  }
  return { lost, watched };
}

function advance(before: "seen" | Waiting | undefined, queue: Queue): "seen" | Waiting | "lost" {
  if (before === undefined) return "seen";
  const waiting: Waiting = before === "seen" ? { for: "message", upTo: queue.last } : before;
  if (!hasLeft(waiting.upTo, queue)) return waiting;
  if (waiting.for === "answer") return "lost";
  return advance({ for: "answer", upTo: queue.last }, queue);
}

/** A queue whose numbers are behind is another one, made anew: all that the one before held is gone. */
const hasLeft = (upTo: number, queue: Queue) => queue.first > upTo || queue.last < upTo;
