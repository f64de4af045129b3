/**
 * Decides when a reading of a whole stream has caught up: at that moment it has delivered the newest message
 * of each subject.
 *
 * Reaching the sequence that was the last one at the start is not enough. A message that is replaced before
 * its turn is skipped, and its replacement is behind that sequence. So a skipped sequence requires another
 * look at the stream: the replacements of all messages skipped before the look are at or below the last
 * sequence that it finds. The reading has caught up when it reaches such a sequence and has skipped nothing
 * since the look.
 *
 * The number of pending messages in a delivery is no such proof. The broker counts it in the background, and
 * while messages are replaced it can stay above zero for ever, or be zero too early.
 */
export type CatchUp = {
  /** `unknown`: the caller must look up the last sequence of the stream. */
  readonly state: "behind" | "unknown" | "caught up";
  /** The reading has delivered or skipped everything up to this sequence. */
  passed(sequence: number): void;
  /** The last sequence is being looked up from now on. */
  lookingUp(): void;
  /** The result of the look-up. */
  found(lastSequence: number): void;
};

export function createCatchUp(start: {
  /** First sequence of the reading. */
  from: number;
  /** The last sequence of the stream before the reading started. */
  lastSequence: number;
}): CatchUp {
  let position = start.from - 1;
  let target = start.lastSequence;
  let hasSkipped = false;
  let isLookingUp = false;
  return {
    get state() {
      if (isLookingUp || position < target) return "behind";
      return hasSkipped ? "unknown" : "caught up";
    },
    passed(sequence) {
      if (sequence <= position) return;
      if (sequence > position + 1) hasSkipped = true;
      position = sequence;
    },
    lookingUp() {
      isLookingUp = true;
      hasSkipped = false;
    },
    found(lastSequence) {
      isLookingUp = false;
      target = lastSequence;
    },
  };
}
