/**
 * What stands in an organization's entry for this edge's lease, as far as this edge knows. It counts on
 * no more than what certainly stands there: what a claim adds counts once it is acknowledged, and what
 * one takes away does not count from when it is sent.
 */
export type WrittenSlots = {
  /** Whether one more than `open` streams may be open. */
  hasFree(open: number): boolean;
  /** Whether it is to be written or read again, whatever is needed. */
  readonly isUnsure: boolean;
  /** What stands there; undefined while nobody knows whether the last claim was written. */
  readonly told: number | undefined;
  /** A claim is sent that leaves so many. */
  keepAtMost(slots: number): void;
  /** So many stand there. */
  settle(slots: number): void;
  /** What is or becomes free is not to be used: it may be too much for the limit. */
  distrust(): void;
  /** Nobody answered the last claim. */
  unsettle(): void;
  /** It may not be what is needed, or may have been lost, and is to be read again. */
  doubt(): void;
  /** Whether it was in doubt; from now on it is not. */
  takeDoubt(): boolean;
  /** There is another lease, or none. */
  clear(): void;
};

export function createWrittenSlots(): WrittenSlots {
  let held = 0;
  let told: number | undefined = 0;
  let isTrusted = true;
  let isDoubted = false;

  return {
    hasFree: (open) => isTrusted && open < held,
    get isUnsure() {
      return told === undefined || isDoubted;
    },
    get told() {
      return told;
    },
    keepAtMost: (slots) => {
      held = Math.min(held, slots);
    },
    settle(slots) {
      held = slots;
      told = slots;
      isTrusted = true;
    },
    distrust: () => {
      isTrusted = false;
    },
    unsettle: () => {
      told = undefined;
    },
    doubt: () => {
      isDoubted = true;
    },
    takeDoubt() {
      const wasDoubted = isDoubted;
      isDoubted = false;
      return wasDoubted;
    },
    clear() {
      held = 0;
      told = 0;
      isDoubted = false;
    },
  };
}
