/** The fields of a server-sent event. */
type StreamEvent = { event?: string; id?: string; data?: string; retry?: string };

/** Maximum number of characters of an event. */
const maxEventLength = 8 * 1024 * 1024;

/**
 * Returns a function that takes the text of a stream as it arrives, and returns the events that are complete. It reads
 * what the edge writes: lines that end with a line feed, and data of one line. A parser for all of server-sent events
 * would take a third of the size of this package.
 *
 * The function throws an error for an event that is too long.
 */
export function createEventReader(): (text: string) => StreamEvent[] {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop() as string;
    if (rest.length > maxEventLength) throw RangeError();
    return blocks.map((block) =>
      Object.fromEntries(
        block.split("\n").map((line) => {
          const colon = line.indexOf(": ");
          return [line.slice(0, colon), line.slice(colon + 2)];
        }),
      ),
    );
  };
}
