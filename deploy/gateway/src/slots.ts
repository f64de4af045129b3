import { createFairQueue } from "./fair-queue.ts";
import type { Upstream, Upstreams } from "./upstreams.ts";

/**
 * Bounds the concurrent requests to each process of a service. A request takes a slot before it is sent, and releases
 * it when its response begins, so that open streams and slow readers hold no slots. Requests without a slot wait in a
 * queue that serves client addresses in turn. No address holds more than half of the slots.
 *
 * A request gets a slot of the process with the fewest unanswered requests. A stuck process therefore receives a
 * request only when every other process has as many unanswered ones.
 */
export type Slots = { request: (address: string) => SlotRequest };

type SlotRequest = {
  /** Undefined if the queue is full, the wait took too long, or the request was cancelled. */
  slot: Promise<Slot | undefined>;
  cancel: () => void;
};

export type Slot = { upstream: Upstream; release: () => void };

export type SlotLimits = { perUpstream: number; maxWaiting: number; maxWaitMs: number };

type Waiting = { address: string; settle: (slot: Slot | undefined) => void };

export function createSlots(upstreams: Upstreams, limits: SlotLimits): Slots {
  const queue = createFairQueue<Waiting>(limits.maxWaiting);
  const heldAt = new Map<Upstream, number>();
  const heldBy = new Map<string, number>();
  let turn = 0;

  /** Returns the upstream with the most free slots. Upstreams with equally many take turns. */
  function freestUpstream(): Upstream | undefined {
    const candidates = upstreams.candidates();
    const held = (upstream: Upstream) => heldAt.get(upstream) ?? 0;
    let freest: Upstream | undefined;
    for (let index = 0; index < candidates.length; index++) {
      const candidate = candidates[(turn + index) % candidates.length] as Upstream;
      if (freest === undefined || held(candidate) < held(freest)) freest = candidate;
    }
    return freest !== undefined && held(freest) < limits.perUpstream ? freest : undefined;
  }

  function slotFor(address: string, upstream: Upstream): Slot {
    turn += 1;
    add(heldAt, upstream, 1);
    add(heldBy, address, 1);
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      add(heldAt, upstream, -1);
      add(heldBy, address, -1);
      grant();
    };
    return { upstream, release };
  }

  function grant(): void {
    const share = Math.ceil((upstreams.candidates().length * limits.perUpstream) / 2);
    while (queue.size() > 0) {
      const upstream = freestUpstream();
      if (upstream === undefined) return;
      const waiting = queue.takeNext((address) => (heldBy.get(address) ?? 0) < share);
      if (waiting === undefined) return;
      waiting.settle(slotFor(waiting.address, upstream));
    }
  }

  upstreams.onAvailable(grant);
  return {
    request(address) {
      const { promise, resolve } = Promise.withResolvers<Slot | undefined>();
      let timer: NodeJS.Timeout | undefined;
      const waiting: Waiting = {
        address,
        settle(slot) {
          clearTimeout(timer);
          resolve(slot);
        },
      };
      const cancel = () => {
        queue.remove(address, waiting);
        waiting.settle(undefined);
      };
      timer = setTimeout(cancel, limits.maxWaitMs).unref();
      queue.add(address, waiting)?.settle(undefined);
      grant();
      return { slot: promise, cancel };
    },
  };
}

function add<Key>(counts: Map<Key, number>, key: Key, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
