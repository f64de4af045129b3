import { cpuMs } from "../processes/process-usage.ts";
import type { PostsQuestion } from "./bare-posts-process.ts";
import { payload } from "./payload.ts";
import type { BarePosts, Receiver } from "./receivers.ts";

/** Number of concurrent requests, as in the dispatcher. */
const atOnce = 192;

/** Headers of a delivery with placeholder values. */
const headers = {
  "Content-Type": "application/json",
  "User-Agent": "Halyard/0.1.0",
  "X-Service-Event": "flag.toggled",
  "X-Service-Delivery": "019a9f00-0000-7000-8000-000000000004",
  "webhook-id": "019a9f00-0000-7000-8000-000000000004",
  "webhook-timestamp": "1763640000",
  "webhook-signature": `v1,${"A".repeat(44)}`,
  "X-Service-Signature": `sha256=${"0".repeat(64)}`,
};

/** Sends the same requests to the same receiver without the dispatcher. */
export async function sendBarePosts(
  posts: BarePosts,
  options: { client: PostsQuestion["client"]; deliveries: number; receiver: Receiver },
): Promise<{ perSecond: number; senderMicroseconds: number }> {
  const { client, deliveries: count, receiver } = options;
  const expected = await receiver.expect(count);
  const beforeMs = cpuMs(posts.pid);
  const { tookMs } = await posts.post({
    client,
    urls: receiver.urls,
    count,
    atOnce,
    headers,
    body: payload,
  });
  const usedMs = cpuMs(posts.pid) - beforeMs;
  await expected.all();
  return { perSecond: (count / tookMs) * 1e3, senderMicroseconds: (usedMs * 1e3) / count };
}
