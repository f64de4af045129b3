import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RestartableNats } from "./test-nats.ts";

/**
 * Runs some work, then restarts the server with the messages of the stream before the work and its consumers after it.
 * A crash can leave the files in such a state, because the server writes them one by one.
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
