import type { Refusal } from "@halyard/service";

/** The open streams that an organization's plan allows, over all edges together. */
export type StreamSlots = {
  /**
   * Requests a slot before a stream opens. `decided` is called exactly once, possibly before `take`
   * returns. The caller returns a granted slot with `release`.
   */
  take(organizationId: string, decided: Decided): void;
  release(organizationId: string): void;
};

export type Decided = (refusal: Refusal | undefined) => void;
