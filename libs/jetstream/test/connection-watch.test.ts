import { EventEmitter, on } from "node:events";
import { watchConnection } from "@halyard/jetstream";
import { describe, expect, it } from "@jest/globals";
import type { NatsConnection } from "@nats-io/transport-node";

/** Events that the client emits. */
type Event = "disconnect" | "reconnect";

/** A connection whose events the test emits. */
function fakeConnection() {
  const emitter = new EventEmitter();
  const closing = new AbortController();
  async function* status() {
    const events: AsyncIterable<Event[]> = on(emitter, "status", { signal: closing.signal });
    try {
      for await (const [type] of events) yield { type };
    } catch {
      // Closed.
    }
  }
  const connection = { info: {}, isClosed: () => false, status } as unknown as NatsConnection;
  return {
    watch: watchConnection(connection),
    emit: (type: Event) => void emitter.emit("status", type),
    close: () => closing.abort(),
  };
}

/** Returns all sequences of events up to a length. */
function sequences(length: number): Event[][] {
  if (length === 0) return [[]];
  const shorter = sequences(length - 1);
  const longest = shorter.filter((events) => events.length === length - 1);
  const events: Event[] = ["disconnect", "reconnect"];
  return [...shorter, ...events.flatMap((event) => longest.map((rest) => [event, ...rest]))];
}

/** Waits until the watch has processed the emitted events. */
const processed = () => new Promise((resolve) => setImmediate(resolve));

describe("given any order of events", () => {
  it("is connected after a reconnect, and disconnected after a disconnect", async () => {
    for (const events of sequences(5)) {
      const { watch, emit } = fakeConnection();
      for (const event of events) emit(event);
      await processed();
      expect([events, watch.isConnected()]).toEqual([events, events.at(-1) !== "disconnect"]);
    }
  });

  it("ends all waits with the next reconnect", async () => {
    const { signal } = new AbortController();
    for (const events of sequences(5)) {
      const { watch, emit } = fakeConnection();
      const waiting: Promise<boolean>[] = [];
      for (const event of events) {
        emit(event);
        await processed();
        waiting.push(watch.connected(signal));
      }
      emit("reconnect");
      expect(await Promise.all(waiting)).not.toContain(false);
    }
  });
});

describe("given a disconnected connection", () => {
  it("ends waits when the connection is closed or the signal is aborted", async () => {
    const { watch, emit, close } = fakeConnection();
    emit("disconnect");
    await processed();
    const controller = new AbortController();
    const aborted = watch.connected(controller.signal);
    const closed = watch.connected(new AbortController().signal);
    controller.abort();
    expect(await aborted).toBe(false);
    close();
    expect(await closed).toBe(false);
    expect(await watch.connected(new AbortController().signal)).toBe(false);
  });

  it("calls the listeners of losses until they are removed", async () => {
    const { watch, emit } = fakeConnection();
    let losses = 0;
    const stopListening = watch.onLoss(() => {
      losses += 1;
    });
    emit("disconnect");
    emit("reconnect");
    emit("disconnect");
    await processed();
    stopListening();
    emit("disconnect");
    await processed();
    expect(losses).toBe(2);
  });
});
