import type { Refusal } from "@halyard/service";

/**
 * The right to keep streams open. An organization's plan says how many it may have, over all edges
 * together, so a slot is taken before a stream is opened and given back when it has closed.
 */
export type StreamSlots = {
  /**
   * Takes a slot. `decided` is called exactly once: at once where this edge holds a free slot, else
   * when the others have been asked. Whoever was given one gives it back by `release`.
   */
  take(organizationId: string, decided: (refusal: Refusal | undefined) => void): void;
  release(organizationId: string): void;
  /**
   * How often everything that this edge held was lost. Who was given a slot before it was raised, and
   * had no stream to close yet, must not open it any more.
   */
  readonly losses: number;
  /**
   * `close` is called when this edge has lost its slots: all streams of the organizations of which
   * `isLost` says so must end at once. Each still gives its slot back when it has closed.
   */
  onLost(close: (isLost: (organizationId: string) => boolean) => void): void;
};
