/** A bounded queue that serves its keys in turn, so that a key with many items delays only its own items. */
type FairQueue<Item> = {
  /** Adds an item. Returns the item dropped because the queue was full: the newest one of the longest line. */
  add: (key: string, item: Item) => Item | undefined;
  /** Removes the oldest item of the next eligible key. */
  takeNext: (isEligible: (key: string) => boolean) => Item | undefined;
  remove: (key: string, item: Item) => void;
  size: () => number;
};

export function createFairQueue<Item>(maxItems: number): FairQueue<Item> {
  /** Items by key. The order of the map is the order of service. */
  const lines = new Map<string, Item[]>();
  let size = 0;

  function shrink(key: string, line: Item[]): void {
    size -= 1;
    if (line.length === 0) lines.delete(key);
  }

  function dropNewestOfLongest(): Item | undefined {
    const [key, line] = [...lines].reduce((longest, other) =>
      other[1].length > longest[1].length ? other : longest,
    );
    const dropped = line.pop();
    shrink(key, line);
    return dropped;
  }

  return {
    add(key, item) {
      const line = lines.get(key);
      if (line === undefined) lines.set(key, [item]);
      else line.push(item);
      size += 1;
      return size > maxItems ? dropNewestOfLongest() : undefined;
    },

    takeNext(isEligible) {
      for (const [key, line] of lines) {
        if (!isEligible(key)) continue;
        const item = line.shift();
        // The key's next item waits until every other key has been served.
        lines.delete(key);
        if (line.length > 0) lines.set(key, line);
        size -= 1;
        return item;
      }
      return undefined;
    },

    remove(key, item) {
      const line = lines.get(key) ?? [];
      const index = line.indexOf(item);
      if (index === -1) return;
      line.splice(index, 1);
      shrink(key, line);
    },

    size: () => size,
  };
}
