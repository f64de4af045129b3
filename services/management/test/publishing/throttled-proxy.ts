import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type NatsProxy, startNatsProxy } from "@halyard/testing";

/** Starts a NATS proxy that limits the throughput from the client to the server. */
export function startThrottledProxy(natsUrl: string, bytesPerSecond: number): Promise<NatsProxy> {
  return startNatsProxy(natsUrl, (client, upstream) => {
    void forwardSlowly(client, upstream, bytesPerSecond).catch(() => upstream.destroy());
  });
}

async function forwardSlowly(from: Socket, to: Socket, bytesPerSecond: number): Promise<void> {
  for await (const bytes of from as AsyncIterable<Buffer>) {
    to.write(bytes);
    await delay((bytes.length / bytesPerSecond) * 1_000);
  }
}
