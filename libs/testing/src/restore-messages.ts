import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RestartableNats } from "./test-nats.ts";

/**
 * Does some work, and then restarts the server with the stream's messages as before the work and its
 * consumers as after it. A crash can leave files like that, because the server writes them one by one.
 */
export async function restoreMessagesAfter(
  nats: RestartableNats,
  stream: string,
  work: () => Promise<void>,
): Promise<void> {
  const messages = join(nats.storeDir, "jetstream", "$G", "streams", stream, "msgs");
  const copy = join(nats.storeDir, `messages of ${stream}`);
  await nats.shutDown();
  cpSync(messages, copy, { recursive: true });
  await nats.start();
  await work();
  await nats.shutDown();
  rmSync(messages, { recursive: true });
  renameSync(copy, messages);
  await nats.start();
}
