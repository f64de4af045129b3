import type { ConsumerInfo, JetStreamManager } from "@nats-io/jetstream";
import { failureName } from "./failures.ts";
import { streamPosition } from "./streams.ts";

/**
 * Decides when a read of a whole stream has caught up, which means that it has delivered the newest message of each
 * subject.
 *
 * Reaching the sequence that was the last one at the start is not enough. A message that is replaced before its
 * delivery is skipped, and its replacement has a higher sequence. After a skip, the last sequence of the stream is
 * therefore looked up again: it is not below the replacements of all messages skipped before the look-up. The read has
 * caught up when it reaches that sequence without another skip.
 *
 * The number of pending messages in a delivery does not prove this. The broker counts it in the background. While
 * messages are replaced, it can stay above zero for ever, or be zero too early.
 */
type CatchUp = {
  /** `unknown`: the caller must look up the last sequence of the stream. */
  readonly state: "behind" | "unknown" | "caught up";
  /** Reports that the read has delivered or skipped everything up to this sequence. */
  advanced(sequence: number): void;
  /** Reports that a look-up of the last sequence begins. */
  lookingUp(): void;
  /** Reports the result of the look-up. */
  found(lastSequence: number): void;
};

export function createCatchUp(start: {
  from: number;
  /** Last sequence of the stream before the read started. */
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
    advanced(sequence) {
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

/** Observes a read until it has caught up, and queries the broker if the deliveries do not show it. */
export type Progress = {
  created(consumer: ConsumerInfo): void;
  delivered(position: { sequence: number; pending: number }): void;
  /** Reports that the broker has delivered everything up to this sequence. */
  idle(sequence: number): void;
};

type ProgressOptions = {
  manager: JetStreamManager;
  stream: string;
  consumer: string;
  from: number;
  lastSequence: number;
  /** Returns the number of messages received. */
  received: () => number;
  onCaughtUp: () => void;
  onFailure: (reason: string) => void;
};

/** Observes a read of the whole stream. */
export function progressOfAll(options: ProgressOptions): Progress {
  const catchUp = createCatchUp(options);

  function settle(): void {
    if (catchUp.state === "caught up") options.onCaughtUp();
    else if (catchUp.state === "unknown") void reportFailure(lookUp, options);
  }

  async function lookUp(): Promise<void> {
    catchUp.lookingUp();
    const position = await streamPosition(options.manager, options.stream);
    if (position === undefined) {
      options.onFailure("the stream no longer exists");
      return;
    }
    catchUp.found(position.lastSequence);
    settle();
  }

  function advanced(sequence: number): void {
    catchUp.advanced(sequence);
    settle();
  }

  return { created: settle, delivered: ({ sequence }) => advanced(sequence), idle: advanced };
}

/**
 * Observes a read of some subjects. Sequences do not show how many of its messages are left, so the broker's count
 * decides. If the count in the deliveries may be wrong, the consumer is queried for it.
 */
export function progressOfSome(options: ProgressOptions): Progress {
  const { manager, stream, consumer, lastSequence } = options;
  let isQuerying = false;

  function decide({ num_pending, delivered }: ConsumerInfo): void {
    if (num_pending === 0 && delivered.consumer_seq <= options.received()) options.onCaughtUp();
  }

  async function query(): Promise<void> {
    isQuerying = true;
    decide(await manager.consumers.info(stream, consumer));
    isQuerying = false;
  }

  function queryOnce(): void {
    if (!isQuerying) void reportFailure(query, options);
  }

  return {
    created: decide,
    delivered({ sequence, pending }) {
      if (pending === 0) options.onCaughtUp();
      else if (sequence >= lastSequence) queryOnce();
    },
    idle: queryOnce,
  };
}

async function reportFailure(
  request: () => Promise<void>,
  { onFailure }: ProgressOptions,
): Promise<void> {
  try {
    await request();
  } catch (error) {
    onFailure(failureName(error));
  }
}
