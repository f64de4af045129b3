/**
 * The processes of one service, which get requests in turn. A process is excluded for a moment if it is unreachable,
 * breaks a connection before its response, or responds with 503 and closes the connection, as one that starts or drains
 * does.
 */
export type Upstreams = {
  /** Returns an available process. If none is available, returns the one that was excluded first. */
  next: () => URL;
  leaveOut: (origin: URL) => void;
};

/** Time for which a process is excluded: roughly the duration of a restart. */
const leftOutMs = 1_000;

export function createUpstreams(origins: readonly URL[]): Upstreams {
  /** The processes in the order of their turns. Excluded ones are last, in the order of their exclusion. */
  const turns = [...origins];
  const availableFromMs = new Map<URL, number>();
  const isAvailable = (origin: URL) => (availableFromMs.get(origin) ?? 0) <= performance.now();
  function moveToEnd(origin: URL): URL {
    turns.splice(turns.indexOf(origin), 1);
    turns.push(origin);
    return origin;
  }
  return {
    next: () => moveToEnd(turns.find(isAvailable) ?? (turns[0] as URL)),
    leaveOut(origin) {
      availableFromMs.set(origin, performance.now() + leftOutMs);
      moveToEnd(origin);
    },
  };
}
